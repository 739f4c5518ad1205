//! The system calls that have no safe wrapper: every `unsafe` block of the crate is here.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    os::fd::{FromRawFd, OwnedFd, RawFd},
    ptr,
    sync::atomic::AtomicU64,
};

use rustix::{
    io::{self, Errno},
    mm::{MapFlags, ProtFlags},
    process::Pid,
    thread::{CpuSet, UnshareFlags, sched_getaffinity, sched_setaffinity},
};

fn check(result: i64) -> io::Result<i64> {
    if result == -1 {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    } else {
        Ok(result)
    }
}

/// fork(2). `None` in the child.
///
/// The process must have one thread; otherwise the child may only do async-signal-safe work. The supervisor and the
/// test processes have one: they start their threads, if any, after their last fork.
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the process has one thread, so the child is a whole copy of it.
    let pid = check(i64::from(unsafe { libc::fork() }))?;
    Ok(Pid::from_raw(pid as i32))
}

/// Runs a program as a child with this pid.
pub fn execute_with_pid(pid: Pid, program: &CStr, arguments: &[&CStr]) -> io::Result<()> {
    let mut words: Vec<*const c_char> = arguments.iter().map(|word| word.as_ptr()).collect();
    words.push(ptr::null());
    let pid = pid.as_raw_nonzero().get();
    // SAFETY: the structure has only numbers, for which zero means "not set".
    let mut how: libc::clone_args = unsafe { std::mem::zeroed() };
    how.exit_signal = libc::SIGCHLD as u64;
    how.set_tid = (&raw const pid) as u64;
    how.set_tid_size = 1;
    // SAFETY: without CLONE_VM the child has memory of its own. It calls only what may be called after a fork, on texts
    // that were made before.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw const how, size_of_val(&how)) };
    if check(result)? == 0 {
        // SAFETY: the texts and the list of them end with zero and live in the child's memory.
        unsafe {
            libc::execv(program.as_ptr(), words.as_ptr());
            libc::_exit(127);
        }
    }
    Ok(())
}

/// _exit(2): no destructors, no buffers flushed.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes any code and does not return.
    unsafe { libc::_exit(code) }
}

/// Ends only this thread, even if it is the leader: exit(2), not `exit_group(2)`.
pub fn exit_thread() -> ! {
    // SAFETY: exit(2) of one thread; the stack it leaves is never used again.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("exit(2) returned")
}

/// clone(2) of a child that shares with its parent what the `flags` name, on a stack of its own that is never freed.
///
/// If the child shares the memory, it runs on its parent's thread-local storage, so `body` must only make plain system
/// calls, and the parent must only wait meanwhile.
pub fn clone_sharing<T>(
    flags: c_int,
    body: extern "C" fn(*mut c_void) -> c_int,
    argument: &T,
) -> io::Result<Pid> {
    const STACK: usize = 256 << 10;
    let stack = map(STACK, MapFlags::PRIVATE)?;
    // SAFETY: the stack is mapped, grows down from its end and is never unmapped; `argument` outlives the child or is in
    // the child's copy of the memory, for neither the parent nor the child returns from the caller's frame.
    let pid = unsafe {
        libc::clone(
            body,
            stack.as_mut_ptr().add(STACK).cast(),
            flags | libc::SIGCHLD,
            ptr::from_ref(argument).cast_mut().cast(),
        )
    };
    Pid::from_raw(check(i64::from(pid))? as i32).ok_or(Errno::CHILD)
}

/// unshare(2).
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only namespaces are unshared here, never descriptors or memory.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Readable and writable anonymous memory that is never unmapped; `flags` select private or shared memory.
pub fn map(len: usize, flags: MapFlags) -> io::Result<&'static mut [u8]> {
    // SAFETY: a new anonymous mapping at an address that the kernel chooses; nothing else uses it, and it is never
    // unmapped.
    unsafe {
        let address = rustix::mm::mmap_anonymous(
            ptr::null_mut(),
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            flags,
        )?;
        Ok(std::slice::from_raw_parts_mut(address.cast(), len))
    }
}

/// Reserves address space that nothing can access.
pub fn reserve(len: usize) -> io::Result<()> {
    // SAFETY: a new anonymous mapping at an address that the kernel chooses and nothing uses.
    unsafe {
        rustix::mm::mmap_anonymous(
            ptr::null_mut(),
            len,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )?
    };
    Ok(())
}

/// Counters that all processes share which are forked from here on.
pub fn shared_counters<const N: usize>() -> io::Result<&'static [AtomicU64; N]> {
    // SAFETY: the mapping is zeroed, aligned to a page, long enough, shared and never unmapped.
    unsafe {
        let len = N * size_of::<AtomicU64>();
        let address = rustix::mm::mmap_anonymous(
            ptr::null_mut(),
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
        )?;
        Ok(&*address.cast())
    }
}

/// A file's first `len` bytes, mapped privately for reading and never unmapped.
pub fn map_file(file: impl rustix::fd::AsFd, len: usize) -> io::Result<&'static [u8]> {
    // SAFETY: a new mapping at an address that the kernel chooses; the file is a running executable or unknown to other
    // processes, so its bytes stay.
    unsafe {
        let address = rustix::mm::mmap(
            ptr::null_mut(),
            len,
            ProtFlags::READ,
            MapFlags::PRIVATE,
            file,
            0,
        )?;
        Ok(std::slice::from_raw_parts(address.cast(), len))
    }
}

/// mlock(2).
pub fn lock(memory: &[u8]) -> io::Result<()> {
    // SAFETY: the memory is mapped; locking changes nothing in it.
    unsafe { rustix::mm::mlock(memory.as_ptr().cast_mut().cast(), memory.len()) }
}

/// Registers `memory` as a buffer of a new `io_uring`, which pins it for as long as the ring is open.
pub fn pin(memory: &mut [u8]) -> io::Result<OwnedFd> {
    use rustix::io_uring::{
        IoringRegisterOp, io_uring_params, io_uring_register, io_uring_setup, iovec,
    };
    let mut params = io_uring_params::default();
    let buffer = iovec {
        iov_base: memory.as_mut_ptr().cast(),
        iov_len: memory.len(),
    };
    // SAFETY: the parameters are zeroed, the buffer is mapped for the process's life and no operation is ever submitted.
    unsafe {
        let ring = io_uring_setup(1, &mut params)?;
        io_uring_register(
            &ring,
            IoringRegisterOp::RegisterBuffers,
            ptr::from_ref(&buffer).cast(),
            1,
        )?;
        Ok(ring)
    }
}

/// Overwrites the arguments of this process, as programs do that set their title.
///
/// `start` and `end` are `arg_start` and `arg_end` of `/proc/self/stat`.
pub fn overwrite_arguments(start: usize, end: usize, title: &[u8]) {
    for (index, address) in (start..end).enumerate() {
        // SAFETY: according to the kernel the arguments are here; they are on the stack, writable, and nothing reads
        // them again, as this process never reaches `main`.
        unsafe { *(address as *mut u8) = title.get(index).copied().unwrap_or(b'.') };
    }
}

/// Closes the descriptors from `first` to `last`.
pub fn close_range(first: u32, last: u32) {
    // SAFETY: no value owns a descriptor in this range where this is called. It fails on kernels before 5.9 and closes
    // nothing then.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}

/// Takes over a descriptor that an executed program inherited by number.
pub fn inherited(fd: RawFd) -> OwnedFd {
    // SAFETY: the number was passed by the parent for this one use.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Requests of ptrace(2) that carry no data.
#[derive(Clone, Copy)]
pub enum Trace {
    /// `PTRACE_TRACEME`
    Me,
    /// `PTRACE_SEIZE`
    Seize(Pid),
    /// `PTRACE_INTERRUPT`
    Interrupt(Pid),
}

/// ptrace(2).
pub fn trace(request: Trace) -> io::Result<()> {
    let (request, pid) = match request {
        Trace::Me => (libc::PTRACE_TRACEME, 0),
        Trace::Seize(pid) => (libc::PTRACE_SEIZE, pid.as_raw_nonzero().get()),
        Trace::Interrupt(pid) => (libc::PTRACE_INTERRUPT, pid.as_raw_nonzero().get()),
    };
    // SAFETY: none of these requests reads or writes the memory of either process.
    check(unsafe {
        libc::ptrace(
            request,
            pid,
            ptr::null_mut::<c_void>(),
            ptr::null_mut::<c_void>(),
        )
    })?;
    Ok(())
}

/// Blocks exactly the signals of `mask`; bit 0 is signal 1.
///
/// Uses the system call itself: the C library reserves signals 32 and 33 and would leave them out.
pub fn block_signals(mask: u64) -> io::Result<()> {
    // SAFETY: the kernel's signal set has 64 bits on every 64-bit architecture, as `mask` has.
    let done = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            ptr::from_ref(&mask),
            ptr::null_mut::<u64>(),
            size_of::<u64>(),
        )
    };
    check(done)?;
    Ok(())
}

/// Gives a signal its default action. Uses the system call itself, for the same reason.
pub fn reset_signal(signal: c_int) -> io::Result<()> {
    // The kernel's own sigaction is on no architecture longer than this, and with all zeros it is SIG_DFL on each.
    let default = [0_u64; 4];
    // SAFETY: the kernel reads its sigaction from the array and writes nothing; its signal set has 64 bits.
    let done = unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            default.as_ptr(),
            ptr::null_mut::<u64>(),
            size_of::<u64>(),
        )
    };
    check(done)?;
    Ok(())
}

/// The action of a signal instead of its default.
#[derive(Clone, Copy)]
pub enum Action {
    /// `SIG_IGN`
    Ignore,
    /// A handler that does nothing.
    Catch,
}

/// sigaction(2).
pub fn on_signal(signal: c_int, action: Action) -> io::Result<()> {
    extern "C" fn nothing(_: c_int) {}
    let handler = match action {
        Action::Ignore => libc::SIG_IGN,
        Action::Catch => nothing as extern "C" fn(c_int) as libc::sighandler_t,
    };
    // SAFETY: an all-zero sigaction is a valid one; the handler touches nothing.
    let done = unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = handler;
        new.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const new, ptr::null_mut())
    };
    check(i64::from(done))?;
    Ok(())
}

/// The queue for a signal.
#[derive(Clone, Copy)]
pub enum Queue {
    /// The queue of the process, as with sigqueue(3).
    Process,
    /// The queue of its single thread.
    Thread,
}

/// Queues `signal` to this process.
pub fn queue_signal(signal: c_int, to: Queue) -> io::Result<()> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    // SAFETY: an all-zero siginfo is a valid one, and outlives the call.
    let done = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        info.si_signo = signal;
        info.si_code = libc::SI_QUEUE;
        match to {
            Queue::Process => {
                libc::syscall(libc::SYS_rt_sigqueueinfo, pid, signal, &raw const info)
            }
            Queue::Thread => libc::syscall(
                libc::SYS_rt_tgsigqueueinfo,
                pid,
                tid,
                signal,
                &raw const info,
            ),
        }
    };
    check(done)?;
    Ok(())
}

/// `sched_setattr(2)`; times in nanoseconds.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Sched {
    /// Size of this structure; filled in by [`set_sched`].
    pub size: u32,
    /// `SCHED_*`
    pub policy: u32,
    /// `SCHED_FLAG_*`
    pub flags: u64,
    /// For `SCHED_OTHER` and `SCHED_BATCH`.
    pub nice: i32,
    /// For `SCHED_FIFO` and `SCHED_RR`.
    pub priority: u32,
    /// For `SCHED_DEADLINE`.
    pub runtime: u64,
    /// For `SCHED_DEADLINE`.
    pub deadline: u64,
    /// For `SCHED_DEADLINE`.
    pub period: u64,
}

/// Runs this thread on the last of its permitted CPUs, and on no other.
pub fn stay_on_one_cpu() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut last = CpuSet::new();
    if let Some(cpu) = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)) {
        last.set(cpu);
    }
    sched_setaffinity(None, &last)
}

/// Sets the scheduling of this thread.
pub fn set_sched(mut sched: Sched) -> io::Result<()> {
    sched.size = size_of::<Sched>() as u32;
    // SAFETY: the structure is the kernel's first version of sched_attr and contains its own size.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, ptr::from_ref(&sched), 0) })?;
    Ok(())
}

/// Sets the user and group for file access, which only `/proc/PID/status` shows separately.
pub fn set_fs_ids(uid: u32, gid: u32) -> bool {
    // SAFETY: both take any id and have no other effect; a second call with -1 returns the current id.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
        libc::setfsgid(u32::MAX) == gid as i32 && libc::setfsuid(u32::MAX) == uid as i32
    }
}

/// Installs a seccomp filter that allows every system call.
pub fn filter_system_calls() -> io::Result<()> {
    let mut program = [libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    }];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which is one instruction long, during the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const filter,
        )
    })?;
    Ok(())
}

/// The argument that [`clone_sharing`] was given.
pub fn argument<T>(argument: *mut c_void) -> &'static T {
    // SAFETY: only functions that were passed to clone_sharing call this; their argument is a leaked `T`.
    unsafe { &*argument.cast() }
}
