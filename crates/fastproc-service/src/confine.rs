//! What a service never does once it is open is forbidden to it: whoever takes it over finds no program to execute and no
//! file to write.

use std::io;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long,
    sock_filter,
};

/// `AUDIT_ARCH_*`, and from which number on system calls are of another ABI.
#[cfg(target_arch = "x86_64")]
const ARCH: (u32, u32) = (0xc000_003e, 0x4000_0000);
#[cfg(target_arch = "aarch64")]
const ARCH: (u32, u32) = (0xc000_00b7, u32::MAX);
#[cfg(target_arch = "riscv64")]
const ARCH: (u32, u32) = (0xc000_00f3, u32::MAX);

/// Not at all: to execute a program, to open a file in a way that its flags do not tell here, and to reach into other processes.
const FORBIDDEN: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_io_uring_setup,
    libc::SYS_ptrace,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
];

/// Only for reading: the call, and which of its arguments has the flags.
const OPENING: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// What writing takes.
const WRITING: u32 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;

// Places in `seccomp_data`; of an argument its lower half.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn argument(number: u32) -> u32 {
    let high_first = if cfg!(target_endian = "big") { 4 } else { 0 };
    16 + 8 * number + high_first
}

const fn step(code: u32, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

/// Goes on after so many steps, where the condition holds and where it does not.
const fn jump(code: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k,
    }
}

const fn load(place: u32) -> sock_filter {
    step(BPF_LD | BPF_W | BPF_ABS, place)
}

const fn refuse(error: i32) -> sock_filter {
    step(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | error as u32)
}

/// Not at all for who has everything open that it needs: to open, connect to or listen at anything more, and to touch other
/// processes or the system.
const NEEDLESS: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_process_vm_readv,
    libc::SYS_pidfd_open,
    libc::SYS_kill,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
];

fn filter(needless: &[c_long]) -> Vec<sock_filter> {
    let allow = step(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW);
    let is = BPF_JMP | BPF_JEQ | BPF_K;
    let mut filter = vec![
        load(ARCHITECTURE),
        jump(is, ARCH.0, 1, 0),
        refuse(libc::ENOSYS),
        load(NUMBER),
        jump(BPF_JMP | BPF_JGE | BPF_K, ARCH.1, 0, 1),
        refuse(libc::ENOSYS),
    ];
    for &call in FORBIDDEN.iter().chain(needless) {
        filter.extend([jump(is, call as u32, 0, 1), refuse(libc::EPERM)]);
    }
    for &(call, flags) in OPENING {
        filter.extend([
            jump(is, call as u32, 0, 4),
            load(argument(flags)),
            jump(BPF_JMP | BPF_JSET | BPF_K, WRITING, 0, 1),
            refuse(libc::EACCES),
            allow,
        ]);
    }
    filter.push(allow);
    filter
}

/// Forbids to this process, for good, to execute programs, to open files for writing, and to reach into other processes.
///
/// It takes `no_new_privs`, which it sets. After [`Service::open`](crate::Service::open).
///
/// # Errors
/// The kernel has no filters of system calls.
pub fn confine() -> io::Result<()> {
    forbid(&[])
}

/// The same, and to open files and sockets at all: for a process that has open what it needs, and accepts connections.
///
/// # Errors
/// The kernel has no filters of system calls.
pub fn confine_to_descriptors() -> io::Result<()> {
    forbid(NEEDLESS)
}

fn forbid(needless: &[c_long]) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let mut filter = filter(needless);
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which lives until then, and changes nothing but which system calls are allowed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    match result {
        0 => Ok(()),
        // A thread has a filter of its own that does not go with this one.
        thread if thread > 0 => Err(io::ErrorKind::ResourceBusy.into()),
        _ => Err(io::Error::last_os_error()),
    }
}
