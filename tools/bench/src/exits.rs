//! `fastproc bench exits`: the cost of recording every exit, the sustainable rate of exits, and whether their CPU time
//! completes that of the machine.

use std::{
    fs,
    io::{self, Read, Write},
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use fastproc::{
    Baseline, Collector, Fields,
    difference::Counter,
    exits::{Event, Exits},
};
use nix::sys::resource::UsageWho;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Pid, WaitOptions, waitpid},
};
use serde_json::{Value, json};

use super::{
    command::used,
    measure::{Common, Failure, in_turn},
    report::{Column, Report, Spread, column, rounded},
};

/// Bytes of the stack of a child that exits at once.
const STACK: usize = 64 << 10;
/// The last record of an exit comes later than this only if the kernel has lost it.
const LATE: Duration = Duration::from_secs(8);

/// Arguments of `fastproc bench exits`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start and end this many processes in each round of a case.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    exits: u32,
    /// Start and end processes as fast as possible on every CPU for this long.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    storm: u64,
    /// Compare the CPU time of processes and exits with /proc/stat for this long, while short-lived processes use all
    /// CPUs.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    balance: u64,
}

const COLUMNS: [Column; 2] = [
    column("case", "case", 0, 0),
    column("cpu_us", "CPU us a fork and exit", 2, 0),
];
const CASES: [&str; 2] = ["not recorded", "recorded and read"];

/// Runs the benchmark.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let mut forker = Forker::start()?;
    let rounds = common.rounds(61);
    let mut report = Report::new("exits", "exits", &COLUMNS);
    let mut taken = CASES.map(|_| Vec::new());
    in_turn(CASES.len(), 0, rounds, |at, _| {
        let mut exits = (at == 1).then(|| Exits::builder().open()).transpose()?;
        taken[at].push(forker.round(args.exits, exits.as_mut())?);
        Ok(())
    })?;
    forker.end()?;
    let pairs = taken[1].iter().zip(&taken[0]);
    // How much more a fork and exit costs if it is recorded.
    let more = Spread::of(pairs.map(|(recorded, alone)| recorded / alone - 1.0)).median * 100.0;
    report.note(format!("With recording it takes {more:.1} % more."));
    for (case, of) in CASES.into_iter().zip(taken) {
        report.row([case.into(), Spread::of(of).into()]);
    }
    let (mut storm, mut balance) = (Value::Null, Value::Null);
    if args.storm > 0 {
        storm = self::storm(&mut report, Duration::from_secs(args.storm))?;
    }
    if args.balance > 0 {
        balance = self::balance(&mut report, args.balance)?;
    }
    report.head(json!({
        "exits": args.exits,
        "rounds": rounds,
        "more_percent": rounded(more),
        "storm": storm,
        "balance": balance,
    }));
    Ok(report.print(common.json)?)
}

/// A process that forks on request. It is not this one, because the memory of this one, which includes that for
/// recording, would make a fork more expensive.
struct Forker {
    pid: libc::pid_t,
    orders: io::PipeWriter,
    done: io::PipeReader,
}

impl Forker {
    /// Call this while this process uses little memory.
    fn start() -> io::Result<Self> {
        let (order, orders) = io::pipe()?;
        let (done, tell) = io::pipe()?;
        // SAFETY: this process has one thread, so the child may do anything.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop((orders, done));
                let ended = Self::obey(&order, &tell);
                // SAFETY: nothing needs a destructor.
                unsafe { libc::_exit(ended.is_err().into()) }
            }
            pid => Ok(Self { pid, orders, done }),
        }
    }

    /// Starts this many children for each number that it reads, and answers with its CPU time and theirs, until the
    /// pipe closes.
    fn obey(mut order: &io::PipeReader, mut tell: &io::PipeWriter) -> io::Result<()> {
        let mut count = [0; 4];
        while order.read(&mut count)? == count.len() {
            let used = || -> nix::Result<Duration> {
                Ok(used(UsageWho::RUSAGE_SELF)? + used(UsageWho::RUSAGE_CHILDREN)?)
            };
            let before = used()?;
            for _ in 0..u32::from_ne_bytes(count) {
                fork_and_wait(Duration::ZERO)?;
            }
            let used = used()?.saturating_sub(before);
            tell.write_all(&(used.as_nanos() as u64).to_ne_bytes())?;
        }
        Ok(())
    }

    /// CPU time of a fork and exit, in microseconds, including the time to read their records here, as they wake a
    /// reader.
    fn round(&mut self, count: u32, mut recorded: Option<&mut Exits>) -> Result<f64, Failure> {
        let before = used(UsageWho::RUSAGE_SELF)?;
        self.orders.write_all(&count.to_ne_bytes())?;
        let mut read = 0_u32;
        if let Some(exits) = &mut recorded {
            while !wait_for_either(&self.done, exits.fd())? {
                exits.read(|_| read += 1)?;
            }
            exits.read(|_| read += 1)?;
        }
        let mut ns = [0; 8];
        self.done.read_exact(&mut ns)?;
        let used = used(UsageWho::RUSAGE_SELF)?.saturating_sub(before);
        let used = used + Duration::from_nanos(u64::from_ne_bytes(ns));
        if recorded.is_some() && read == 0 {
            return Err("no exit was recorded".into());
        }
        Ok(used.as_secs_f64() * 1e6 / f64::from(count))
    }

    fn end(self) -> io::Result<()> {
        drop(self.orders);
        wait_for(self.pid)
    }
}

/// Waits until one of them can be read. Returns whether it is the first.
fn wait_for_either(one: &io::PipeReader, other: BorrowedFd<'_>) -> io::Result<bool> {
    let mut ready = [
        PollFd::new(one, PollFlags::IN),
        PollFd::from_borrowed_fd(other, PollFlags::IN),
    ];
    poll(&mut ready, None)?;
    Ok(!ready[0].revents().is_empty())
}

/// Starts a child that uses the CPU for this long.
pub fn fork_and_wait(work: Duration) -> io::Result<()> {
    // SAFETY: the child reads the clock and exits: no allocation, no lock, no destructor.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            let began = Instant::now();
            while began.elapsed() < work {}
            // SAFETY: as above.
            unsafe { libc::_exit(0) }
        }
        child => child,
    };
    wait_for(child)
}

fn wait_for(child: libc::pid_t) -> io::Result<()> {
    while let Err(errno) = waitpid(Pid::from_raw(child), WaitOptions::empty()) {
        if errno != Errno::INTR {
            return Err(errno.into());
        }
    }
    Ok(())
}

extern "C" fn end_at_once(_: *mut libc::c_void) -> libc::c_int {
    0
}

/// Starts the cheapest process possible: it shares the memory of this one, which waits until it has exited.
fn borrow_and_wait(stack: &mut [u8]) -> io::Result<()> {
    let top = stack.as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child has its own stack, which no other code writes to, touches no other memory, and has exited
    // before this returns.
    let child = unsafe { libc::clone(end_at_once, top.cast(), flags, std::ptr::null_mut()) };
    if child == -1 {
        return Err(io::Error::last_os_error());
    }
    wait_for(child)
}

/// Does this in one process on every CPU until the time is over. Returns how many times.
fn on_every_cpu(
    time: Duration,
    each: impl Fn(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<Workers> {
    let (reader, writer) = io::pipe()?;
    let cpus = std::thread::available_parallelism()?.get();
    let mut pids = Vec::new();
    let mut stack = vec![0; STACK];
    for number in 0..cpus as u64 {
        // SAFETY: this process has one thread, so the child may do anything.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                let (began, mut times) = (Instant::now(), 0_u64);
                while began.elapsed() < time
                    && each(&mut stack, times * cpus as u64 + number).is_ok()
                {
                    times += 1;
                }
                let _ = rustix::io::write(&writer, &times.to_ne_bytes());
                // SAFETY: nothing needs a destructor.
                unsafe { libc::_exit(0) }
            }
            child => pids.push(child),
        }
    }
    Ok(Workers { pids, reader })
}

struct Workers {
    pids: Vec<libc::pid_t>,
    reader: io::PipeReader,
}

impl Workers {
    fn join(self) -> io::Result<u64> {
        let mut sum = 0;
        for _ in &self.pids {
            let mut times = [0; 8];
            (&self.reader).read_exact(&mut times)?;
            sum += u64::from_ne_bytes(times);
        }
        self.pids.into_iter().try_for_each(wait_for)?;
        Ok(sum)
    }
}

/// Records the exits of the cheapest processes, as many as the machine can.
fn storm(report: &mut Report, time: Duration) -> Result<Value, Failure> {
    let mut exits = Exits::builder().open()?;
    let began = Instant::now();
    let workers = on_every_cpu(time, |stack, _| borrow_and_wait(stack))?;
    let parents: Vec<_> = workers.pids.iter().map(|&pid| pid as u32).collect();
    let mut joining = Some(std::thread::spawn(move || workers.join()));
    let (mut recorded, mut ended, mut seconds) = (0, None, 0.0);
    let mut over = Instant::now();
    while ended.is_none() || over.elapsed() < LATE {
        exits.wait(Duration::from_millis(20))?;
        exits.read(|event| {
            if let Event::Exit(exit) = event {
                recorded += u64::from(exit.ppid.is_some_and(|ppid| parents.contains(&ppid)));
            }
        })?;
        if let Some(thread) = joining.take_if(|thread| thread.is_finished()) {
            seconds = began.elapsed().as_secs_f64();
            over = Instant::now();
            ended = Some(thread.join().map_err(|_| "a worker failed")??);
        }
    }
    let (ended, lost) = (ended.unwrap_or(0), exits.lost());
    report.note(format!(
        "At {:.0} exits per second, {recorded} of {ended} exits were recorded and {lost} lost.",
        ended as f64 / seconds
    ));
    Ok(json!({"seconds": seconds, "ended": ended, "recorded": recorded, "lost": lost}))
}

/// Compares CPU times in seconds: by /proc/stat, of processes that are in two successive snapshots, and of those that exited
/// between them.
fn balance(report: &mut Report, seconds: u64) -> Result<Value, Failure> {
    // From a fifth of a millisecond to about 13, so none is in two snapshots.
    let work = |number: u64| Duration::from_micros(200 << (number % 7));
    let builder = Collector::builder()
        .service_socket(None)
        .fields(Fields::CPU);
    let mut collector = builder.exits(true).open()?;
    if let Some(error) = collector.take_exits_refused() {
        return Err(error.into());
    }
    let mut before = Baseline::default();
    before.set(&collector.snapshot()?);
    let kernel = kernel_seconds()?;
    let time = Duration::from_secs(seconds);
    let workers = on_every_cpu(time, |_, number| fork_and_wait(work(number)))?;
    let began = Instant::now();
    let (mut exits, mut not_final, mut lost) = (0_u64, 0_u64, 0);
    let (mut processes, mut exits_seconds, mut used) = (0.0, 0.0, 0.0);
    for second in 1..=seconds {
        let due = began + Duration::from_secs(second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = collector.snapshot()?;
        if second == seconds {
            used = kernel_seconds()? - kernel;
        }
        let living = before.changes(&now).filter_map(|change| change.cpu_ns);
        processes += living.sum::<u64>() as f64 / 1e9;
        for ended in before.ended(&now) {
            exits += 1;
            not_final += u64::from(!ended.exit.is_final);
            let run = ended.growth(Counter::Run);
            exits_seconds += run.unwrap_or(0) as f64 / 1e9;
        }
        lost += now.stats().lost_exits;
        before.set(&now);
    }
    workers.join()?;
    let percent = |seconds: f64| seconds / used * 100.0;
    report.note(format!(
        "Of {used:.2} s that /proc/stat counted in {seconds} s, processes had {:.2} %, and with {exits} exits {:.2} %.",
        percent(processes),
        percent(processes + exits_seconds)
    ));
    Ok(json!({
        "seconds": seconds,
        "exits": exits,
        "not_final": not_final,
        "lost": lost,
        "kernel": used,
        "processes": processes,
        "exits_seconds": exits_seconds,
    }))
}

/// CPU time of all CPUs, including interrupts.
fn kernel_seconds() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/stat")?;
    let words = text.lines().next().unwrap_or_default().split_whitespace();
    let times: Vec<f64> = words.skip(1).filter_map(|word| word.parse().ok()).collect();
    // user, nice, system; not idle and iowait; irq, softirq; not steal; guest time is part of user.
    let ticks: f64 = [0, 1, 2, 5, 6].iter().filter_map(|&at| times.get(at)).sum();
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}
