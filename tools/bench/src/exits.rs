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
use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;

use super::{
    measure::Failure,
    report::{Column, Report, Row, Spread, column, four_decimals},
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
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 61, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Start and end processes as fast as possible on every CPU for this long.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    storm: u64,
    /// Compare the CPU time of processes and exits with /proc/stat for this long, while short-lived processes use all
    /// CPUs.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    balance: u64,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Head {
    exits: u32,
    rounds: u32,
    /// How much more a fork and exit costs if it is recorded: the median of all rounds.
    #[serde(serialize_with = "four_decimals")]
    more_percent: f64,
    storm: Option<Storm>,
    balance: Option<Balance>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Storm {
    seconds: f64,
    ended: u64,
    recorded: u64,
    lost: u64,
}

/// CPU time, in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Balance {
    seconds: u64,
    exits: u64,
    not_final: u64,
    lost: u64,
    /// By /proc/stat: everything except idle, waiting and stolen time.
    kernel: f64,
    /// By processes of two successive snapshots, one a second.
    processes: f64,
    /// By processes that exited between them.
    exits_seconds: f64,
}

#[derive(Debug, Serialize)]
struct Cost {
    case: &'static str,
    cpu_us: Spread,
}

impl Row for Cost {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("CPU us a fork and exit", 0),
        column("least – most", 1),
    ];

    fn cells(&self) -> Vec<String> {
        let Spread { min, median, max } = self.cpu_us;
        vec![
            self.case.to_owned(),
            format!("{median:.2}"),
            format!("{min:.2} – {max:.2}"),
        ]
    }
}

/// Runs the benchmark.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut forker = Forker::start()?;
    let (mut alone, mut recorded) = (Vec::new(), Vec::new());
    for round in 0..args.rounds {
        // Alternate the order: a machine becomes warmer, or busier.
        if round % 2 == 0 {
            alone.push(forker.round(args.exits, None)?);
        }
        let mut exits = Exits::builder().open()?;
        recorded.push(forker.round(args.exits, Some(&mut exits))?);
        drop(exits);
        if round % 2 == 1 {
            alone.push(forker.round(args.exits, None)?);
        }
    }
    forker.end()?;
    let pairs = recorded.iter().zip(&alone);
    let more = Spread::of(pairs.map(|(recorded, alone)| recorded / alone - 1.0)).median;
    let rows = vec![
        Cost {
            case: "not recorded",
            cpu_us: Spread::of(alone),
        },
        Cost {
            case: "recorded and read",
            cpu_us: Spread::of(recorded),
        },
    ];
    let storm = (args.storm > 0).then(|| storm(Duration::from_secs(args.storm)));
    let balance = (args.balance > 0).then(|| balance(args.balance));
    let (storm, balance) = (storm.transpose()?, balance.transpose()?);
    let head = Head {
        exits: args.exits,
        rounds: args.rounds,
        more_percent: more * 100.0,
        storm,
        balance,
    };
    let mut report = Report::new("exits", head, rows, Vec::new());
    report.note(format!(
        "With recording it takes {:.1} % more.",
        more * 100.0
    ));
    if let Some(storm) = storm {
        report.note(format!(
            "At {:.0} exits per second, {} of {} exits were recorded and {} lost.",
            storm.ended as f64 / storm.seconds,
            storm.recorded,
            storm.ended,
            storm.lost
        ));
    }
    if let Some(balance) = balance {
        let percent = |seconds: f64| seconds / balance.kernel * 100.0;
        report.note(format!(
            "Of {:.2} s that /proc/stat counted in {} s, processes had {:.2} %, and with {} exits {:.2} %.",
            balance.kernel,
            balance.seconds,
            percent(balance.processes),
            balance.exits,
            percent(balance.processes + balance.exits_seconds)
        ));
    }
    Ok(report.print("exits", args.json)?)
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
            let before = used(&[libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN])?;
            for _ in 0..u32::from_ne_bytes(count) {
                fork_and_wait(Duration::ZERO)?;
            }
            let now = used(&[libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN])?;
            let used = now.saturating_sub(before);
            tell.write_all(&(used.as_nanos() as u64).to_ne_bytes())?;
        }
        Ok(())
    }

    /// CPU time of a fork and exit, in microseconds, including the time to read their records here, as they wake a
    /// reader.
    fn round(&mut self, count: u32, mut recorded: Option<&mut Exits>) -> Result<f64, Failure> {
        let before = used(&[libc::RUSAGE_SELF])?;
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
        let used = used(&[libc::RUSAGE_SELF])?.saturating_sub(before);
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

fn used(of: &[libc::c_int]) -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for &who in of {
        // SAFETY: zero is a valid value for every member.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a structure of this type, and is owned here.
        if unsafe { libc::getrusage(who, &raw mut usage) } != 0 {
            return Err(io::Error::last_os_error());
        }
        for time in [usage.ru_utime, usage.ru_stime] {
            sum += Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
        }
    }
    Ok(sum)
}

/// Starts a child that uses the CPU for this long.
fn fork_and_wait(work: Duration) -> io::Result<()> {
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
    // SAFETY: no status is requested.
    while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } != child {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
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

fn storm(time: Duration) -> Result<Storm, Failure> {
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
    Ok(Storm {
        seconds,
        ended: ended.unwrap_or(0),
        recorded,
        lost: exits.lost(),
    })
}

fn balance(seconds: u64) -> Result<Balance, Failure> {
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
    let mut sums = Balance {
        seconds,
        exits: 0,
        not_final: 0,
        lost: 0,
        kernel: 0.0,
        processes: 0.0,
        exits_seconds: 0.0,
    };
    for second in 1..=seconds {
        let due = began + Duration::from_secs(second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = collector.snapshot()?;
        if second == seconds {
            sums.kernel = kernel_seconds()? - kernel;
        }
        let living = before.changes(&now).filter_map(|change| change.cpu_ns);
        sums.processes += living.sum::<u64>() as f64 / 1e9;
        for ended in before.ended(&now) {
            sums.exits += 1;
            sums.not_final += u64::from(!ended.exit.is_final);
            let run = ended.growth(Counter::Run);
            sums.exits_seconds += run.unwrap_or(0) as f64 / 1e9;
        }
        sums.lost += now.stats().lost_exits;
        before.set(&now);
    }
    workers.join()?;
    Ok(sums)
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
