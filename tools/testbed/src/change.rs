//! A process that changes one of its properties as fast as it can, between values that differ in every part.
//!
//! A reader that takes a length from one value and the data from another shows a value that never existed.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    thread,
    time::Duration,
};

use rustix::{
    process::{Gid, Pid},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_thread_groups},
};

use crate::{
    context::idle,
    error::TestbedError,
    role::{self, Role, Servant, serve},
    sys,
    wait::GUARD,
};

/// The property that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The supplementary groups, between [`GROUPS`]. Needs `CAP_SETGID`. The process has a CPU to itself; the caller's
    /// thread and its children keep off that CPU, otherwise they would run only while nothing changes.
    Groups,
    /// Its threads, which count faults, bytes and system calls and exit: the sums of the process never fall.
    Threads,
    /// Its leader: a thread calls execve(2) and takes over the leader's pid.
    Leader,
    /// Its program, in the same way; the last argument counts the executions. Between them the process rests with one
    /// thread, and catches `SIGUSR1` every other time.
    Program,
}

/// The two lists of supplementary groups: each is a group, and how often the list contains it.
pub const GROUPS: [(u32, usize); 2] = [(7777, 64), (8888, 1)];

/// Changes a process; the argument is the number of changes before.
type Step = fn(u64) -> io::Result<()>;

const CHANGES: [(Change, &str, Step); 4] = [
    (Change::Groups, "groups", groups),
    (Change::Threads, "threads", threads),
    (Change::Leader, "leader", leader),
    (Change::Program, "program", program),
];

/// The changing process. It ends when this is dropped.
pub struct Changing {
    servant: Servant,
    /// The CPUs on which the caller ran before.
    cpus: CpuSet,
}

impl Changing {
    /// Starts it, and waits until each value has occurred.
    pub fn start(change: Change) -> Result<Self, TestbedError> {
        let name = CHANGES
            .iter()
            .find(|entry| entry.0 == change)
            .map_or("", |entry| entry.1);
        let mut servant = Servant::call(Role::Change, name).map_err(TestbedError::Supervisor)?;
        let mut sign = [0];
        if !role::ready(&servant.report, GUARD) {
            return Err(TestbedError::Report(format!("{name} does not start")));
        }
        match servant.report.read_exact(&mut sign) {
            Ok(()) if sign == *b"!" => {
                let cpus = keep_off(servant.pid()).map_err(TestbedError::Supervisor)?;
                Ok(Self { servant, cpus })
            }
            _ => Err(TestbedError::Report(format!("{name} cannot be changed"))),
        }
    }

    /// The pid of the process.
    pub fn pid(&self) -> u32 {
        self.servant.pid()
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        // The thread had these CPUs before.
        let _ = sched_setaffinity(None, &self.cpus);
    }
}

/// Keeps this thread off the CPU of a process that has one to itself. Returns the CPUs that it had before.
fn keep_off(pid: u32) -> io::Result<CpuSet> {
    let before = sched_getaffinity(None)?;
    let taken = sched_getaffinity(Pid::from_raw(pid.cast_signed()))?;
    if taken.count() == 1 && before.count() > 1 {
        let mut rest = before;
        for cpu in (0..CpuSet::MAX_CPU).filter(|&cpu| taken.is_set(cpu)) {
            rest.unset(cpu);
        }
        sched_setaffinity(None, &rest)?;
    }
    Ok(before)
}

impl fmt::Debug for Changing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changing")
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

/// Changes itself until the lifeline closes.
///
/// `argument` names the change; a second word means that the process has announced itself: an executed program starts
/// again.
pub fn main(argument: &str) -> i32 {
    let (name, again) = argument.split_once(' ').unwrap_or((argument, ""));
    let lifeline = serve();
    let Some((.., step)) = CHANGES.iter().find(|entry| entry.1 == name) else {
        eprintln!("fastproc-testbed: no change is called {name}");
        return 2;
    };
    let begin = if again.is_empty() { 0 } else { 2 };
    for round in begin.. {
        if round == 1 {
            // If the reader has gone, the lifeline shows that as well.
            let _ = io::stdout()
                .write_all(b"!")
                .and_then(|()| io::stdout().flush());
        }
        if (round % 64 == 0 || !again.is_empty()) && lifeline.is_closed() {
            break;
        }
        if let Err(error) = step(round) {
            eprintln!("fastproc-testbed: {name}: {error}");
            return 1;
        }
    }
    0
}

fn groups(round: u64) -> io::Result<()> {
    if round == 0 && thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        // It changes all the time, however busy the machine is: every reader meets a change.
        sys::stay_on_one_cpu()?;
        let first = sys::Sched {
            policy: libc::SCHED_FIFO as u32,
            priority: 1,
            ..sys::Sched::default()
        };
        // A control group may have no time for real-time policies: then the process shares the CPU.
        match sys::set_sched(first) {
            Err(rustix::io::Errno::PERM) => {}
            result => result?,
        }
    }
    let (group, count) = GROUPS[(round % 2) as usize];
    let mut list = [Gid::from_raw(0); 64];
    list[..count].fill(Gid::from_raw(group));
    Ok(set_thread_groups(&list[..count])?)
}

/// Eight threads, each of which touches memory and reads a file, and one that stays.
fn threads(round: u64) -> io::Result<()> {
    if round == 0 {
        thread::Builder::new().spawn(|| idle())?;
    }
    let work = || {
        let mut memory = vec![0_u8; 64 << 10];
        // Neither the content nor an error matters.
        let _ = File::open("/proc/version").and_then(|mut file| file.read(&mut memory));
        std::hint::black_box(&memory);
    };
    let threads: Vec<_> = (0..8)
        .map_while(|_| thread::Builder::new().stack_size(64 << 10).spawn(work).ok())
        .collect();
    for thread in threads {
        // The thread cannot panic.
        let _ = thread.join();
    }
    Ok(())
}

fn leader(round: u64) -> io::Result<()> {
    if round == 0 {
        return Ok(());
    }
    thread::Builder::new().spawn(|| -> () {
        let _ = role::command(Role::Change, "leader again").exec();
        sys::exit_now(1)
    })?;
    idle()
}

fn program(round: u64) -> io::Result<()> {
    if round == 0 {
        return Ok(());
    }
    let argument = role::of_this_process().map(|(_, argument)| argument);
    let count = argument.and_then(|argument| argument.split_once(' ')?.1.parse::<u64>().ok());
    let count = count.unwrap_or(0);
    if count % 2 == 1 {
        sys::on_signal(libc::SIGUSR1, sys::Action::Catch)?;
    }
    // It rests with as many context switches as the program before, so that these do not distinguish the two.
    while switches()? < 40 {
        thread::sleep(Duration::from_micros(100));
    }
    thread::sleep(Duration::from_millis(20));
    thread::Builder::new().spawn(move || -> () {
        let next = (count + 1).to_string();
        let mut command = role::command(Role::Change, &format!("program {next}"));
        let _ = command.arg(next).exec();
        sys::exit_now(1)
    })?;
    idle()
}

/// The context switches of this thread.
fn switches() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let counts = status.lines().filter_map(|line| {
        let (name, count) = line.split_once(':')?;
        name.ends_with("ctxt_switches").then_some(count.trim())
    });
    Ok(counts.flat_map(str::parse::<u64>).sum())
}
