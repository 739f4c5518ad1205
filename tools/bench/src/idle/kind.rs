//! What idle tasks share with the process that starts them.

use std::{io, ptr};

use rustix::{
    event::pause,
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap_anonymous},
    process::{Pid, Signal, getppid, set_parent_process_death_signal},
};

use super::{close_from, exit_now};

/// The kind of idle tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Processes, each with a copy of its parent's memory.
    OwnMemory,
    /// Processes that share the memory of their parent, and cost less.
    SharedMemory,
    /// Threads of their parent.
    Threads,
}

/// Bytes of the stack of a task that shares memory: room for a signal. The upper half is all that is usually used.
const STACK: usize = 8192;

impl Kind {
    /// Memory for the stacks of this many tasks, if they need stacks.
    pub(super) fn stacks(self, tasks: usize) -> Result<*mut u8, Errno> {
        if self == Self::OwnMemory || tasks == 0 {
            return Ok(ptr::null_mut());
        }
        let (rights, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        );
        // SAFETY: the kernel chooses the address, and nothing else uses it.
        let stacks = unsafe { mmap_anonymous(ptr::null_mut(), tasks * STACK, rights, flags) }?;
        Ok(stacks.cast())
    }

    /// Starts the task of this number. The caller has one thread, or only threads that were started here.
    pub(super) fn start(self, spawner: Pid, stacks: *mut u8, number: usize) -> io::Result<Pid> {
        // Descriptors are copied, because a process closes its own. A thread cannot have another table, signals or
        // memory than its process here.
        let flags = match self {
            Self::OwnMemory => 0,
            Self::SharedMemory => libc::CLONE_VM | libc::SIGCHLD,
            Self::Threads => {
                libc::CLONE_VM
                    | libc::CLONE_FS
                    | libc::CLONE_FILES
                    | libc::CLONE_SIGHAND
                    | libc::CLONE_THREAD
                    | libc::CLONE_SYSVSEM
            }
        };
        let task = if self == Self::OwnMemory {
            // SAFETY: the child only makes system calls, and never returns.
            match unsafe { libc::fork() } {
                0 => sleep_until_killed(spawner),
                task => task,
            }
        } else {
            let code = if self == Self::Threads {
                sleep_as_thread
            } else {
                sleep_as_process
            };
            let pid = spawner.as_raw_pid() as usize;
            // SAFETY: the stack is within `stacks`, and no other task has it; the code only makes system calls, and never
            // returns.
            unsafe {
                let top = stacks.add((number + 1) * STACK);
                libc::clone(code, top.cast(), flags, ptr::without_provenance_mut(pid))
            }
        };
        Pid::from_raw(task)
            .filter(|_| task > 0)
            .ok_or_else(io::Error::last_os_error)
    }
}

extern "C" fn sleep_as_process(spawner: *mut libc::c_void) -> libc::c_int {
    match Pid::from_raw(spawner.addr() as i32) {
        Some(spawner) => sleep_until_killed(spawner),
        None => exit_now(),
    }
}

extern "C" fn sleep_as_thread(_: *mut libc::c_void) -> libc::c_int {
    loop {
        pause();
    }
}

/// The code of a child.
fn sleep_until_killed(spawner: Pid) -> ! {
    let armed = set_parent_process_death_signal(Some(Signal::KILL));
    if armed.is_err() || getppid() != Some(spawner) {
        exit_now();
    }
    // This closes the report, too. When the last child has closed it, all of them are running.
    close_from(0);
    loop {
        pause();
    }
}
