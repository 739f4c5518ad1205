//! Forbids the system calls that an open service never makes. A taken-over service can neither execute programs nor
//! write files.

use std::io;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long,
    sock_filter,
};

/// `AUDIT_ARCH_*`, and the first number of system calls of another ABI.
#[cfg(target_arch = "x86_64")]
const ARCH: (u32, u32) = (0xc000_003e, 0x4000_0000);
#[cfg(target_arch = "aarch64")]
const ARCH: (u32, u32) = (0xc000_00b7, u32::MAX);
#[cfg(target_arch = "riscv64")]
const ARCH: (u32, u32) = (0xc000_00f3, u32::MAX);

/// Refused altogether: executing a program, opening a file in ways whose flags a filter cannot see, reaching into other
/// processes, changing anything that has a path, and another scheduling policy.
const FORBIDDEN: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_io_uring_setup,
    libc::SYS_ptrace,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_truncate,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mknodat,
    libc::SYS_mkdirat,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    // The units allow it for the time slice, which is set by now.
    libc::SYS_sched_setattr,
];

/// The same by system calls that newer architectures lack.
#[cfg(target_arch = "x86_64")]
const OLD: &[c_long] = &[
    libc::SYS_creat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mknod,
    libc::SYS_mkdir,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(target_arch = "aarch64")]
const OLD: &[c_long] = &[libc::SYS_renameat];
#[cfg(target_arch = "riscv64")]
const OLD: &[c_long] = &[];

// Since Linux 6.6 and 6.13, with the same numbers on all architectures.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;

/// Allowed only for reading: the call, and which of its arguments has the flags.
const OPENING: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// Instead of a folder: the present one.
const HERE: u32 = libc::AT_FDCWD as u32;

/// Flags for writing.
const WRITING: u32 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;

// Offsets in `seccomp_data`; for an argument, of its lower half.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn argument(number: u32) -> u32 {
    let high_first = if cfg!(target_endian = "big") { 4 } else { 0 };
    16 + 8 * number + high_first
}

const fn step(code: u32, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

/// Skips `yes` steps if the condition holds, otherwise `no` steps.
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

/// Refused for a process that has everything open that it needs: opening, connecting or listening, and touching other
/// processes or the system.
const NEEDLESS: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_process_vm_readv,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    // Threads are created by clone(2).
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
];

/// Since Linux 6.15, with the same number on all architectures.
const OPEN_TREE_ATTR: c_long = 467;

const CLONE_NEW: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

const IS: u32 = BPF_JMP | BPF_JEQ | BPF_K;
const HAS: u32 = BPF_JMP | BPF_JSET | BPF_K;
const ALLOW: sock_filter = step(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW);

/// A program of filters, which checks for one system call after the other.
struct Filter(Vec<sock_filter>);

impl Filter {
    /// Refuses a call altogether.
    fn refuse(&mut self, call: c_long, error: i32) {
        self.0.extend([jump(IS, call as u32, 0, 1), refuse(error)]);
    }

    /// Decides about a call by one of its arguments. The steps must end by allowing or refusing it.
    fn by_argument<const N: usize>(&mut self, call: c_long, number: u32, steps: [sock_filter; N]) {
        const { assert!(N < u8::MAX as usize) };
        self.0.push(jump(IS, call as u32, 0, N as u8 + 1));
        self.0.push(load(argument(number)));
        self.0.extend(steps);
    }
}

/// Allowed for a process that writes to a folder: the call, whose first argument is a folder.
const WRITING_BELOW: &[c_long] = &[
    #[cfg(not(target_arch = "riscv64"))]
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
];

/// What a process still does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Still {
    /// It reads.
    Reads,
    /// It uses what it has open.
    UsesDescriptors,
    /// It reads, and writes below folders that it has open.
    WritesBelow,
}

/// The filter for a process.
fn filter(still: Still) -> Vec<sock_filter> {
    let only_descriptors = still == Still::UsesDescriptors;
    let mut filter = Filter(vec![
        load(ARCHITECTURE),
        jump(IS, ARCH.0, 1, 0),
        refuse(libc::ENOSYS),
        load(NUMBER),
        jump(BPF_JMP | BPF_JGE | BPF_K, ARCH.1, 0, 1),
        refuse(libc::ENOSYS),
    ]);
    let needless = if only_descriptors { NEEDLESS } else { &[] };
    let below = if still == Still::WritesBelow {
        WRITING_BELOW
    } else {
        &[]
    };
    for &call in below {
        let steps = [jump(IS, HERE, 0, 1), refuse(libc::EPERM), ALLOW];
        filter.by_argument(call, 0, steps);
    }
    for call in FORBIDDEN.iter().chain(OLD).chain(needless) {
        if !below.contains(call) {
            filter.refuse(*call, libc::EPERM);
        }
    }
    for &(call, flags) in OPENING {
        if still == Still::WritesBelow && call == libc::SYS_openat {
            let steps = [
                jump(HAS, WRITING, 1, 0),
                ALLOW,
                load(argument(0)),
                jump(IS, HERE, 0, 1),
                refuse(libc::EACCES),
                ALLOW,
            ];
            filter.by_argument(call, flags, steps);
            continue;
        }
        let steps = [jump(HAS, WRITING, 0, 1), refuse(libc::EACCES), ALLOW];
        filter.by_argument(call, flags, steps);
    }
    // Typing into a terminal.
    let typing = [
        jump(IS, libc::TIOCSTI as u32, 1, 0),
        jump(IS, libc::TIOCLINUX as u32, 0, 1),
        refuse(libc::EPERM),
        ALLOW,
    ];
    filter.by_argument(libc::SYS_ioctl, 1, typing);
    if only_descriptors {
        let own = std::process::id();
        let only_own = [jump(IS, own, 0, 1), ALLOW, refuse(libc::EPERM)];
        filter.by_argument(libc::SYS_tgkill, 0, only_own);
        filter.by_argument(libc::SYS_tkill, 0, only_own);
        let own_or_0 = [
            jump(IS, own, 1, 0),
            jump(IS, 0, 0, 1),
            ALLOW,
            refuse(libc::EPERM),
        ];
        filter.by_argument(libc::SYS_prlimit64, 0, own_or_0);
        let only_threads = [
            jump(HAS, CLONE_NEW as u32, 1, 0),
            jump(HAS, libc::CLONE_THREAD as u32, 1, 0),
            refuse(libc::EPERM),
            ALLOW,
        ];
        filter.by_argument(libc::SYS_clone, 0, only_threads);
        // The flags of clone3(2) are in memory, which a filter cannot read. The C library then falls back to clone(2).
        filter.refuse(libc::SYS_clone3, libc::ENOSYS);
    }
    filter.0.push(ALLOW);
    filter.0
}

/// Permanently forbids this process to execute programs, to open files for writing, to change anything that has a path,
/// to reach into other processes, and to type into a terminal.
///
/// Sets `no_new_privs`. Call it after [`Service::open`](crate::Service::open).
///
/// # Errors
/// The kernel does not support filters of system calls, or a thread has a filter of its own.
pub fn confine() -> io::Result<()> {
    forbid(Still::Reads)
}

/// Also forbids to open files and sockets, to start processes, and to signal others: for a process that has everything
/// open that it needs, and accepts connections.
///
/// # Errors
/// As of [`confine`].
pub fn confine_to_descriptors() -> io::Result<()> {
    forbid(Still::UsesDescriptors)
}

/// As [`confine`], but it may make, write, rename and remove what is below a folder that it has open, by names below that.
///
/// # Errors
/// As of [`confine`].
pub fn confine_to_folders() -> io::Result<()> {
    forbid(Still::WritesBelow)
}

fn forbid(still: Still) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let mut filter = filter(still);
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which lives until then. It changes only which system calls are allowed.
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
        // A thread has a filter of its own that this one cannot replace.
        thread if thread > 0 => Err(io::ErrorKind::ResourceBusy.into()),
        _ => Err(io::Error::last_os_error()),
    }
}
