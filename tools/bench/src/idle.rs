//! Idle processes to read, all removed afterwards however this program ends.
//!
//! They are children of this program. Dropping the [`Idle`] kills and reaps them; if this program is killed, each of them
//! dies by `PR_SET_PDEATHSIG`.
//!
//! They are in the namespaces of this program, and ordinary processes, each with its own address space, because
//! real machines are full of these. A pid namespace would also keep them together, but costs every reader a second number
//! for each pid, and saves nothing: each process needs a pid in the outer namespace as well, below its
//! `kernel.pid_max`.

use std::{
    ffi::CStr,
    fs,
    io::{self, Read},
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, sleep},
    time::{Duration, Instant},
};

use rustix::{
    event::pause,
    fs::{Mode, OFlags, open},
    io::{Errno, write},
    mm::{MapFlags, ProtFlags, mmap_anonymous},
    process::{
        Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal,
        waitpid,
    },
};

/// The time that all of them have to wake, run and sleep.
const WAKING: Duration = Duration::from_secs(60);

/// Their name.
pub const NAME: &CStr = c"fastproc-idle";

/// Counts how many have been woken, in memory that they share with the waiting process.
static WOKEN: OnceLock<Option<&AtomicUsize>> = OnceLock::new();

/// Idle processes, until this is dropped.
#[derive(Debug)]
pub struct Idle(Vec<Pid>);

impl Idle {
    /// Starts `wanted` processes and waits until all of them run.
    ///
    /// Call it before mapping anything large: each process is a copy of this one.
    pub fn start(wanted: usize) -> io::Result<Self> {
        Self::start_with_threads(wanted, 1)
    }

    /// The same with this many threads in each of them. For more than one, this process may have no other thread.
    pub fn start_with_threads(wanted: usize, threads: usize) -> io::Result<Self> {
        WOKEN.get_or_init(shared);
        // For `wake`: the children inherit it.
        let handler = count_woken as *const () as libc::sighandler_t;
        // SAFETY: the handler only adds to an atomic number.
        unsafe { libc::signal(libc::SIGUSR1, handler) };
        let (mut running, held) = io::pipe()?;
        let (parent, mut idle) = (getpid(), Self(Vec::with_capacity(wanted)));
        for number in 0..wanted {
            // SAFETY: the child never returns. It only makes system calls: no allocation, no lock. If it starts threads, its
            // parent had one.
            match unsafe { libc::fork() } {
                -1 => {
                    let cause = io::Error::last_os_error();
                    return Err(io::Error::other(format!(
                        "the kernel refused the process after {number} of {wanted}: {cause}. Look at kernel.pid_max, \
                         kernel.threads-max, ulimit -u, pids.max of the cgroup and memory, or ask for fewer (--processes)"
                    )));
                }
                0 => sleep_until_killed(parent, threads),
                pid => idle.0.extend(Pid::from_raw(pid)),
            }
        }
        drop(held);
        // Each of them closes the other end when it runs.
        running.read_to_end(&mut Vec::new())?;
        Ok(idle)
    }

    /// Starts as many as are missing until the machine has this many processes, if one more is started beside them.
    pub fn fill_to(wanted: usize) -> io::Result<Self> {
        Self::start(wanted.saturating_sub(processes()? + 1))
    }

    /// Lets one in this many of them run for a moment, and waits until they sleep again. `None`: no process runs.
    pub fn wake(&self, one_in: Option<u32>) -> io::Result<()> {
        let Some(one_in) = one_in.filter(|_| !self.0.is_empty()) else {
            return Ok(());
        };
        let woken = woken().ok_or(io::ErrorKind::Unsupported)?;
        woken.store(0, Ordering::Relaxed);
        let mut wanted = 0;
        for &pid in self.0.iter().step_by(one_in as usize) {
            kill_process(pid, Signal::USR1)?;
            wanted += 1;
        }
        let limit = Instant::now() + WAKING;
        while woken.load(Ordering::Relaxed) < wanted {
            if Instant::now() > limit {
                return Err(io::ErrorKind::TimedOut.into());
            }
            sleep(Duration::from_millis(1));
        }
        // The last one to run must still go to sleep.
        sleep(Duration::from_millis(5));
        Ok(())
    }

    /// Their pids.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|pid| pid.as_raw_pid() as u32)
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // Nothing else reaps them, so the pids are still their own.
        for &pid in &self.0 {
            let _ = kill_process(pid, Signal::KILL);
        }
        for &pid in &self.0 {
            while matches!(waitpid(Some(pid), WaitOptions::empty()), Err(Errno::INTR)) {}
        }
    }
}

/// The processes that a benchmark starts for itself.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Processes {
    /// Start this many idle processes first, and end them afterwards. 0: measure the machine as it is.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pub processes: usize,
}

impl Processes {
    /// Starts them.
    pub fn start(self) -> io::Result<Idle> {
        Idle::start(self.processes)
    }
}

/// Those of them that run between two measurements.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Ran {
    /// Let one in N of the idle processes run before each measurement.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ran: Option<u32>,
}

/// Processes on this machine.
pub fn processes() -> io::Result<usize> {
    let names = fs::read_dir("/proc")?.filter_map(Result::ok);
    let is_pid = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    Ok(names.filter(|entry| is_pid(&entry.file_name())).count())
}

/// The code of a child.
fn sleep_until_killed(parent: Pid, threads: usize) -> ! {
    let armed = set_parent_process_death_signal(Some(Signal::KILL));
    if armed.is_err() || getppid() != Some(parent) {
        // SAFETY: no destructor has to run in a process that only borrowed its memory.
        unsafe { libc::_exit(0) }
    }
    let _ = rustix::thread::set_name(NAME);
    // If memory runs out, these end, and not what others run.
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let score = open(c"/proc/self/oom_score_adj", flags, Mode::empty());
    let _ = score.and_then(|file| write(&file, b"1000"));
    for _ in 1..threads {
        // With the smallest stack. The caller counts them.
        let _ = thread::Builder::new().stack_size(1).spawn(|| {
            loop {
                pause();
            }
        });
    }
    // All descriptors of this program, with the pipe: when the last child has closed it, all of them are running.
    // SAFETY: this process no longer uses any.
    unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
    loop {
        pause();
    }
}

fn woken() -> Option<&'static AtomicUsize> {
    *WOKEN.get()?
}

extern "C" fn count_woken(_: libc::c_int) {
    if let Some(woken) = woken() {
        woken.fetch_add(1, Ordering::Relaxed);
    }
}

/// Memory that stays shared with children forked from now on.
fn shared() -> Option<&'static AtomicUsize> {
    let (rights, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: the kernel chooses the address, and nothing else uses it. It is aligned, zero at first, and never
    // unmapped.
    unsafe {
        mmap_anonymous(ptr::null_mut(), size_of::<AtomicUsize>(), rights, shared)
            .ok()?
            .cast::<AtomicUsize>()
            .as_ref()
    }
}

#[cfg(test)]
mod tests;
