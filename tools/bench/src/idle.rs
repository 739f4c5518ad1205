//! Idle processes to read, all removed afterwards however this program ends.
//!
//! A child of this program, the spawner, forks them and waits for its lifeline to close: a pipe whose other end only
//! this program holds. It closes by dropping the [`Idle`], by Ctrl-C (the spawner has its own session, so the
//! terminal's signals do not reach it) and by a crash. Then the spawner kills and reaps all of them. If the spawner
//! itself is killed, each of them dies by `PR_SET_PDEATHSIG`.
//!
//! They are in the namespaces of this program, and usually ordinary processes, each with its own address space, because
//! real machines are full of these. A pid namespace would also keep them together, but costs every reader a second number
//! for each pid, and saves nothing: each process needs a pid in the outer namespace as well, below its
//! `kernel.pid_max`.
//!
//! This program may have threads, so the spawner and its children only make system calls: no allocation, no lock.

mod kind;

use std::{
    ffi::CStr,
    fs,
    io::{self, PipeReader, PipeWriter, Read, Write as _},
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, open},
    io::{Errno, write},
    mm::{MapFlags, ProtFlags, mmap_anonymous},
    process::{Pid, Signal, WaitOptions, getpid, kill_process, setsid, wait, waitpid},
    stdio::{dup2_stdin, dup2_stdout, stdin, stdout},
};

pub use kind::Kind;

/// The time that all of them have to wake, run and sleep.
const WAKING: Duration = Duration::from_secs(60);

/// Their name, and that of their parent.
pub const NAME: &CStr = c"fastproc-idle";

/// Counts how many have been woken, in memory that they share with the waiting process.
static WOKEN: OnceLock<Option<&AtomicUsize>> = OnceLock::new();

/// The kernel reserves the lowest pids once it has counted past them.
const RESERVED_PIDS: usize = 300;

fn number(path: &str) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Idle processes, until this is dropped.
#[derive(Debug)]
pub struct Idle {
    spawner: Pid,
    lifeline: Option<PipeWriter>,
    pids: Vec<Pid>,
}

impl Idle {
    /// Starts `wanted` processes and waits until all of them sleep.
    ///
    /// Call it before mapping anything large: each process is a copy of this one.
    pub fn start(wanted: usize) -> io::Result<Self> {
        Self::start_tasks(wanted, 1, Kind::OwnMemory)
    }

    /// The same with this many different names.
    pub fn start_with_names(wanted: usize, names: usize) -> io::Result<Self> {
        Self::start_tasks(wanted, names, Kind::OwnMemory)
    }

    /// The same with tasks of another kind.
    pub fn start_kind(wanted: usize, kind: Kind) -> io::Result<Self> {
        Self::start_tasks(wanted, 1, kind)
    }

    fn start_tasks(wanted: usize, names: usize, kind: Kind) -> io::Result<Self> {
        check_pids(wanted)?;
        WOKEN.get_or_init(shared);
        let (held, lifeline) = io::pipe()?;
        let (mut report, outcome) = io::pipe()?;
        // The spawner's list of pids, allocated here, where allocation is allowed.
        let mut pids = vec![None; wanted];
        // SAFETY: the child only makes system calls on its copies of these values, and ends by _exit.
        let spawner = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => spawn_all(&mut pids, names, kind, &held, &outcome),
            pid => Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork gave no pid"))?,
        };
        drop((held, outcome));
        let mut idle = Self {
            spawner,
            lifeline: Some(lifeline),
            pids: Vec::new(),
        };
        // The spawner reports the error that stopped it, and the pids of its children. At the end of the stream each of
        // them has closed it and sleeps.
        let mut words = Vec::new();
        report.read_to_end(&mut words)?;
        let mut words = words
            .as_chunks()
            .0
            .iter()
            .map(|bytes| i32::from_ne_bytes(*bytes));
        let Some(errno) = words.next() else {
            return Err(io::Error::other(
                "the parent of the idle processes ended early",
            ));
        };
        idle.pids = words.filter_map(Pid::from_raw).collect();
        if idle.pids.len() < wanted {
            let cause = io::Error::from_raw_os_error(errno);
            let forked = idle.pids.len();
            return Err(io::Error::other(format!(
                "the kernel refused the process after {forked} of {wanted}: {cause}. Look at kernel.threads-max, ulimit -u, \
                 pids.max of the cgroup and memory, or ask for fewer (--processes)"
            )));
        }
        Ok(idle)
    }

    /// The same; 0 leaves the machine as it is.
    pub fn start_some(wanted: usize) -> io::Result<Option<Self>> {
        (wanted > 0).then(|| Self::start(wanted)).transpose()
    }

    /// Lets one in this many of them run for a moment, and waits until they sleep again.
    pub fn wake(&self, one_in: usize) -> io::Result<()> {
        let woken = woken().ok_or(io::ErrorKind::Unsupported)?;
        woken.store(0, Ordering::Relaxed);
        let mut wanted = 0;
        for &pid in self.pids.iter().step_by(one_in) {
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

    /// Starts as many as are missing until the machine has this many processes, if one more is started beside them.
    pub fn fill_to(wanted: usize) -> io::Result<Option<Self>> {
        Self::start_some(wanted.saturating_sub(processes()? + 1))
    }

    /// Wakes some, if there are idle processes and a number is given.
    pub fn wake_some(idle: Option<&Self>, one_in: Option<u32>) -> io::Result<()> {
        match (idle, one_in) {
            (Some(idle), Some(one_in)) => idle.wake(one_in as usize),
            _ => Ok(()),
        }
    }

    /// The process that started them.
    pub fn parent(&self) -> u32 {
        self.spawner.as_raw_pid() as u32
    }

    /// Their pids, without that of their parent; the ids of threads.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.pids.iter().map(|pid| pid.as_raw_pid() as u32)
    }

    /// Their number, without their parent.
    pub fn count(&self) -> usize {
        self.pids.len()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.lifeline = None;
        // The spawner exits when all of its children are reaped. If it was killed, so were they.
        while matches!(
            waitpid(Some(self.spawner), WaitOptions::empty()),
            Err(Errno::INTR)
        ) {}
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
    pub fn start(self) -> io::Result<Option<Idle>> {
        Idle::start_some(self.processes)
    }
}

/// Those of them that run between two measurements.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Ran {
    /// Let one in N of the idle processes run before each measurement.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ran: Option<u32>,
}

impl Ran {
    /// Wakes them.
    pub fn wake(self, idle: Option<&Idle>) -> io::Result<()> {
        Idle::wake_some(idle, self.ran)
    }
}

/// Processes on this machine.
pub fn processes() -> io::Result<usize> {
    let names = fs::read_dir("/proc")?.filter_map(Result::ok);
    let is_pid = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    Ok(names.filter(|entry| is_pid(&entry.file_name())).count())
}

fn check_pids(wanted: usize) -> io::Result<()> {
    // The fourth word of loadavg is "runnable/all", and each of these tasks has a pid.
    let running = fs::read_to_string("/proc/loadavg").ok().and_then(|text| {
        let (_, all) = text.split(' ').nth(3)?.split_once('/')?;
        all.parse::<usize>().ok()
    });
    match (number("/proc/sys/kernel/pid_max"), running) {
        (Some(pid_max), Some(running)) if wanted + running + RESERVED_PIDS > pid_max => {
            Err(io::Error::other(format!(
                "{wanted} processes need more pids than kernel.pid_max = {pid_max} leaves beside the {running} processes and \
                 threads that run. Raise it (sysctl -w kernel.pid_max=4194304) or ask for fewer (--processes)"
            )))
        }
        // If the number is unknown, a failing fork reports it.
        _ => Ok(()),
    }
}

/// The code of the spawner.
fn spawn_all(
    mut pids: &mut [Option<Pid>],
    names: usize,
    kind: Kind,
    held: &PipeReader,
    outcome: &PipeWriter,
) -> ! {
    // Keep the two pipes, and no other descriptors of this program, especially not the lifeline's other end.
    if dup2_stdin(held).is_err() || dup2_stdout(outcome).is_err() {
        exit_now();
    }
    close_from(2);
    // This fails only for the leader of a group, which a new child is not.
    let _ = setsid();
    let _ = rustix::thread::set_name(NAME);
    // If memory runs out, these end, and not what others run. The children inherit it.
    let score = open(
        c"/proc/self/oom_score_adj",
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    let _ = score.and_then(|file| write(&file, b"1000"));
    // For `wake`: the children inherit it.
    // SAFETY: the handler only adds to an atomic number.
    unsafe {
        libc::signal(
            libc::SIGUSR1,
            count_woken as *const () as libc::sighandler_t,
        )
    };
    let spawner = getpid();
    let mut errno = 0;
    let stacks = match kind.stacks(pids.len()) {
        Ok(stacks) => stacks,
        Err(error) => {
            errno = error.raw_os_error();
            pids = &mut [];
            ptr::null_mut()
        }
    };
    for (number, pid) in pids.iter_mut().enumerate() {
        // A hundred thousand take minutes, and this program may be gone by then.
        if number % 64 == 0 && lifeline_has_ended() {
            break;
        }
        if names > 1 {
            set_own_name(number % names);
        }
        match kind.start(spawner, stacks, number) {
            Ok(task) => *pid = Some(task),
            Err(error) => {
                errno = error.raw_os_error().unwrap_or(0);
                break;
            }
        }
    }
    // If nobody reads it, the lifeline closes as well. Four bytes are never written in part.
    let _ = write(stdout(), &i32::to_ne_bytes(errno));
    for &pid in pids.iter().flatten() {
        let _ = write(stdout(), &pid.as_raw_nonzero().get().to_ne_bytes());
    }
    close_from(1);
    // Nothing is written to the lifeline: a read returns when it closes.
    while rustix::io::read(stdin(), &mut [0; 1]) == Err(Errno::INTR) {}
    if kind == Kind::Threads {
        // They end with this process.
        exit_now();
    }
    for &pid in pids.iter().flatten() {
        let _ = kill_process(pid, Signal::KILL);
    }
    while !matches!(wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
    exit_now()
}

/// Sets a distinct name, which the next child inherits.
fn set_own_name(number: usize) {
    let mut name = [0; 16];
    // A name that is too long loses its end, and the last byte stays zero.
    let _ = write!(&mut name[..15], "idle-{number}");
    if let Ok(name) = CStr::from_bytes_until_nul(&name) {
        let _ = rustix::thread::set_name(name);
    }
}

fn lifeline_has_ended() -> bool {
    let lifeline = stdin();
    let mut ends = [PollFd::new(&lifeline, PollFlags::empty())];
    poll(&mut ends, Some(&Timespec::default())).is_ok_and(|ended| ended > 0)
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

fn exit_now() -> ! {
    // SAFETY: no destructor has to run in a process that only borrowed its memory.
    unsafe { libc::_exit(0) }
}

fn close_from(first: u32) {
    // SAFETY: this process no longer uses descriptors of that range. Kernels before 5.9 lack close_range.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) == -1 {
            for fd in first..4096 {
                libc::close(fd as i32);
            }
        }
    }
}

#[cfg(test)]
mod tests;
