//! Processes and threads that start and end as fast as they can.

use std::{
    fmt,
    io::{self, Read, Write},
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{self, sleep},
    time::{Duration, Instant},
};

use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

use crate::{
    context::{At, Context, Listener, Message, Outcome, SetUp, SetUpError, idle},
    error::TestbedError,
    role::{self, Role, Servant, serve},
    supervisor::end_all,
    sys,
    wait::GUARD,
};

/// The number of short-lived processes, or threads, of each worker at a time. There are five workers.
const BATCH: usize = 16;

/// What a storm did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Processes that were forked and ended at once.
    pub forks: u64,
    /// Processes that executed a program.
    pub execs: u64,
    /// Threads that were created and ended.
    pub threads: u64,
    /// Processes whose leader ended before its threads.
    pub dead_leaders: u64,
    /// Programs executed by a thread that was not the leader; that thread takes over the leader's pid.
    pub thread_execs: u64,
}

/// Five processes that create processes and threads without a pause, until this is dropped.
///
/// At most some eighty processes and threads exist at a time; if a limit refuses more, the workers wait. They run at
/// nice 10, so that a reader beside them gets a CPU.
pub struct Storm {
    servant: Servant,
}

impl Storm {
    /// Starts it, and waits until each kind of process has started and ended at least once.
    pub fn start() -> Result<Self, TestbedError> {
        let mut servant = Servant::call(Role::Storm, "").map_err(TestbedError::Supervisor)?;
        let mut sign = [0];
        if !role::ready(&servant.report, GUARD) {
            return Err(TestbedError::Report("the storm does not start".into()));
        }
        match servant.report.read_exact(&mut sign) {
            Ok(()) if sign == *b"!" => Ok(Self { servant }),
            _ => Err(TestbedError::Report("the storm died".into())),
        }
    }

    /// The pid of the process that is the ancestor of all others.
    pub fn pid(&self) -> u32 {
        self.servant.pid()
    }

    /// Ends it with all its processes, and returns what it did.
    pub fn stop(mut self) -> Result<Tally, TestbedError> {
        self.servant.dismiss();
        let mut report = String::new();
        self.servant
            .report
            .read_to_string(&mut report)
            .map_err(|error| TestbedError::Report(error.to_string()))?;
        let counts: Result<Vec<u64>, _> = report.split_whitespace().map(str::parse).collect();
        match counts.as_deref() {
            Ok(&[forks, execs, threads, dead_leaders, thread_execs]) => Ok(Tally {
                forks,
                execs,
                threads,
                dead_leaders,
                thread_execs,
            }),
            _ => Err(TestbedError::Report(format!("it reported {report:?}"))),
        }
    }
}

impl fmt::Debug for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storm")
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

type Counts = [AtomicU64; 5];

// Shared by the workers. Set before the first one is forked.
static COUNTS: OnceLock<&'static Counts> = OnceLock::new();

const WORKERS: [SetUp; 5] = [
    |context| work(context, 0, short_lived),
    |context| work(context, 1, || program().spawn().map(drop)),
    |context| {
        work(context, 2, || {
            thread::Builder::new()
                .stack_size(64 << 10)
                .spawn(|| ())
                .map(drop)
        })
    },
    |context| work(context, 3, dead_leader),
    |context| work(context, 4, thread_exec),
];

/// Runs the storm, announces it, and at its end prints five numbers, in the order of [`Tally`].
pub fn main() -> i32 {
    let lifeline = serve();
    let result = set_up();
    if let Err(error) = &result {
        eprintln!("fastproc-testbed: no storm: {}", error.text);
    } else {
        // If the reader has gone, the lifeline shows that as well.
        let _ = io::stdout()
            .write_all(b"!")
            .and_then(|()| io::stdout().flush());
        lifeline.wait();
    }
    end_all();
    let Ok(counts) = result else { return 1 };
    let counts: Vec<String> = counts
        .iter()
        .map(|count| count.load(Relaxed).to_string())
        .collect();
    let _ = writeln!(io::stdout(), "{}", counts.join(" "));
    0
}

fn set_up() -> Result<&'static Counts, SetUpError> {
    set_child_subreaper(Some(getpid())).at("PR_SET_CHILD_SUBREAPER")?;
    let counts = sys::shared_counters().at("mmap")?;
    COUNTS.get_or_init(|| counts);
    let mut listeners = Vec::new();
    for worker in WORKERS {
        listeners.push(Listener::spawn(worker)?.0);
    }
    let limit = Instant::now() + GUARD;
    while counts.iter().any(|count| count.load(Relaxed) == 0) {
        // Workers never announce anything: a message is an error.
        for listener in &listeners {
            match listener.listen(Duration::from_millis(1))? {
                Message::Late => {}
                Message::SetUpError(error) => return Err(error),
                Message::Ready(..) | Message::Silence => {
                    return Err(SetUpError::broken("a worker ended"));
                }
            }
        }
        if Instant::now() > limit {
            return Err(SetUpError::broken(format!(
                "not everything happened in time: {counts:?}"
            )));
        }
    }
    Ok(counts)
}

fn work(_: &Context, kind: usize, start: fn() -> io::Result<()>) -> Outcome {
    rustix::process::setpriority_process(None, 10).at("setpriority")?;
    let counts = COUNTS
        .get()
        .ok_or_else(|| SetUpError::broken("no counters"))?;
    loop {
        let mut started = 0;
        for _ in 0..BATCH {
            match start() {
                Ok(()) => started += 1,
                // RLIMIT_NPROC, the pids cgroup, memory: the worker waits.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory
                    ) =>
                {
                    sleep(Duration::from_millis(20));
                    break;
                }
                Err(error) => return Err(error).at("start"),
            }
        }
        while wait(WaitOptions::empty()).is_ok() {}
        counts[kind].fetch_add(started, Relaxed);
    }
}

/// A program that ends at once: this one.
fn program() -> Command {
    let mut command = role::command(Role::ShortLived, "");
    role::silent(&mut command);
    command
}

fn in_child(body: fn() -> io::Result<()>) -> io::Result<()> {
    if sys::fork()?.is_none() {
        // The child ends long before its parent would have to end it, so it needs no death signal.
        sys::exit_now(i32::from(body().is_err()));
    }
    Ok(())
}

fn short_lived() -> io::Result<()> {
    in_child(|| Ok(()))
}

fn dead_leader() -> io::Result<()> {
    in_child(|| {
        for _ in 0..2 {
            thread::Builder::new()
                .stack_size(64 << 10)
                .spawn(|| sleep(Duration::from_micros(500)))?;
        }
        sys::exit_thread()
    })
}

fn thread_exec() -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    in_child(|| {
        thread::Builder::new().spawn(|| -> () {
            let _ = program().exec();
            sys::exit_now(1)
        })?;
        idle()
    })
}
