//! `fastproc bench latency`: how long a thread waits for its CPU while processes are read there.
//!
//! The method is that of cyclictest: a thread sleeps until a point in time, and measures how late it wakes. A real-time
//! thread waits for code that cannot be preempted; an ordinary one also for its turn.

use std::{
    fs,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use fastproc::{Collector, Fields, SourceKind};
use rustix::{
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec},
};
use serde_json::json;

use super::{
    idle::Processes,
    measure::{Common, Failure, clock, in_turn, percentile, stay_on},
    report::{Cell, Column, Report, column},
    scan::{BPF, FULL, LEAN},
};

/// The priority of the real-time thread, cyclictest's usual one.
const PRIORITY: i32 = 80;
/// The interval between snapshots.
const LOOK: Duration = Duration::from_millis(10);
/// The interval between wake-ups of the thread.
const WAKE: Duration = Duration::from_millis(1);

/// Arguments of `fastproc bench latency`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    processes: Processes,
    /// Measure each case for this long, a part of it in each round.
    #[arg(long, value_name = "SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Run all threads on this CPU.
    #[arg(long, value_name = "CPU", default_value_t = 0)]
    cpu: usize,
}

const COLUMNS: [Column; 7] = [
    column("case", "case", 0, 0),
    column("class", "class", 0, 0),
    column("p50_us", "p50 us", 1, 1),
    column("p99_us", "p99 us", 1, 0),
    column("p99_9_us", "p99.9 us", 1, 0),
    column("max_us", "max us", 1, 0),
    column("samples", "samples", 0, 2),
];

/// The load on the CPU beside the thread.
#[derive(Clone, Copy, Debug)]
enum Load {
    Idle,
    /// Open, read and close `/proc/PID/stat` of every process, again and again.
    Stat,
    /// Make a snapshot a hundred times a second.
    Snapshots(SourceKind, Fields),
    /// The same, in a thread that gives way.
    GivesWay(Fields),
}

const LOADS: [(&str, Load); 6] = [
    ("idle", Load::Idle),
    ("proc-stat", Load::Stat),
    ("bpf-lean", Load::Snapshots(BPF, LEAN)),
    ("bpf-full", Load::Snapshots(BPF, FULL)),
    ("gives-way", Load::GivesWay(FULL)),
    ("bpf-iter-full", Load::Snapshots(SourceKind::BpfIter, FULL)),
];

/// The scheduling class of the thread that waits.
#[derive(Clone, Copy, Debug)]
enum Class {
    Fifo,
    Other,
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let idle = args.processes.start()?;
    let rounds = common.rounds(3);
    let each = Duration::from_secs(args.seconds) / rounds;
    let classes = [(Class::Fifo, "fifo"), (Class::Other, "other")];
    let cases: Vec<_> = LOADS
        .into_iter()
        .flat_map(|load| classes.map(|class| (load, class)))
        .collect();
    let mut waits: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
    let title = "How long a thread waits for its CPU while processes are read there";
    let mut report = Report::new("latency", title, &COLUMNS);
    in_turn(cases.len(), 0, rounds, |at, _| {
        let ((case, load), (class, _)) = cases[at];
        if !report.is_skipped(case) {
            match wait_beside(load, class, args.cpu, each)? {
                Ok(more) => waits[at].extend(more),
                Err(reason) => report.skip(case, &reason),
            }
        }
        Ok(())
    })?;
    drop(idle);
    for (((case, _), (_, class)), mut waits) in cases.into_iter().zip(waits) {
        waits.sort_by(f64::total_cmp);
        if !waits.is_empty() {
            let names = [case, class].map(Cell::from);
            let times = [0.5, 0.99, 0.999, 1.0].map(|part| percentile(&waits, part).into());
            report.row(names.into_iter().chain(times).chain([waits.len().into()]));
        }
    }
    report.head(json!({
        "processes": args.processes.processes,
        "looks_per_second": Duration::from_secs(1).as_millis() / LOOK.as_millis(),
    }));
    Ok(report.print(common.json)?)
}

/// For how many microseconds a thread of this class waited each time, beside this load. `Err`: this load is not possible
/// here.
fn wait_beside(
    load: Load,
    class: Class,
    cpu: usize,
    time: Duration,
) -> Result<Result<Vec<f64>, String>, Failure> {
    let (ready, stop) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        let loading = scope.spawn(|| -> Result<(), Failure> {
            let opened = stay_on(cpu).and_then(|()| prepare(load));
            ready.wait();
            let mut once = opened?;
            while !stop.load(Relaxed) {
                once()?;
            }
            Ok(())
        });
        let waiting = scope.spawn(|| -> Result<Vec<f64>, Failure> {
            let prepared = stay_on(cpu).and_then(|()| become_class(class));
            ready.wait();
            let waits = prepared.and_then(|()| wait_for(time));
            stop.store(true, Relaxed);
            waits
        });
        let waits = waiting.join().map_err(|_| "the waiting thread failed")??;
        let loaded = loading.join().map_err(|_| "the loading thread failed")?;
        Ok(loaded.map(|()| waits).map_err(|error| error.to_string()))
    })
}

/// Prepares a load, which the caller repeats.
fn prepare(load: Load) -> Result<Box<dyn FnMut() -> Result<(), Failure>>, Failure> {
    Ok(match load {
        Load::Idle => Box::new(|| {
            thread::sleep(LOOK);
            Ok(())
        }),
        Load::Stat => {
            let mut text = Vec::new();
            Box::new(move || {
                for entry in fs::read_dir("/proc")? {
                    let entry = entry?;
                    let name = entry.file_name();
                    let is_process = name.as_encoded_bytes()[0].is_ascii_digit();
                    if is_process && let Ok(mut file) = fs::File::open(entry.path().join("stat")) {
                        text.clear();
                        // A process that has exited meanwhile does not count.
                        let _ = std::io::Read::read_to_end(&mut file, &mut text);
                    }
                }
                Ok(())
            })
        }
        Load::GivesWay(fields) => {
            fastproc::give_way()?;
            return prepare(Load::Snapshots(BPF, fields));
        }
        Load::Snapshots(source, fields) => {
            let builder = Collector::builder().fields(fields).source(Some(source));
            let mut collector = builder.open()?;
            // The first one is more expensive: caches fill, and the array grows.
            collector.snapshot()?;
            let mut next = now_ns();
            Box::new(move || {
                collector.snapshot()?;
                // After a snapshot that took longer, the next follows at once; missed ones are not repeated.
                next = (next + LOOK.as_nanos() as u64).max(now_ns());
                sleep_until(next)
            })
        }
    })
}

/// How many microseconds late the thread woke each time.
fn wait_for(time: Duration) -> Result<Vec<f64>, Failure> {
    let mut waits = Vec::with_capacity((time.as_millis() / WAKE.as_millis()) as usize + 1);
    let mut next = now_ns();
    let end = next + time.as_nanos() as u64;
    while next < end {
        next += WAKE.as_nanos() as u64;
        sleep_until(next)?;
        let now = now_ns();
        waits.push(now.saturating_sub(next) as f64 / 1e3);
        // Points in time that have passed meanwhile belong to the same wait.
        next = next.max(now);
    }
    Ok(waits)
}

/// The monotonic clock.
pub fn now_ns() -> u64 {
    clock(ClockId::Monotonic).as_nanos() as u64
}

/// Sleeps until that clock shows this time.
pub fn sleep_until(ns: u64) -> Result<(), Failure> {
    let time = Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    };
    Ok(clock_nanosleep_absolute(ClockId::Monotonic, &time)?)
}

fn become_class(class: Class) -> Result<(), Failure> {
    let Class::Fifo = class else { return Ok(()) };
    let priority = libc::sched_param {
        sched_priority: PRIORITY,
    };
    // SAFETY: `priority` is a structure of this type, and 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(format!("cannot become a real-time thread: {error}; run as root").into());
    }
    Ok(())
}
