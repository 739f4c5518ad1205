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
use serde::Serialize;

use super::{
    idle::Idle,
    measure::{Failure, clock, stay_on},
    report::{Column, Report, Row, Skipped, column, four_decimals, progress},
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
    /// Start this many idle processes first, and end them afterwards. 0: measure the machine as it is.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    processes: usize,
    /// Measure each case for this long, a part of it in each round.
    #[arg(long, value_name = "SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Run all threads on this CPU.
    #[arg(long, value_name = "CPU", default_value_t = 0)]
    cpu: usize,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Head {
    processes: usize,
    looks_per_second: u32,
}

/// The load on the CPU beside the thread.
#[derive(Clone, Copy, Debug)]
enum Load {
    Idle,
    /// Open, read and close `/proc/PID/stat` of every process, again and again.
    Stat,
    /// Make a snapshot a hundred times a second.
    Snapshots(SourceKind, Fields),
}

const LOADS: [(&str, Load); 5] = [
    ("idle", Load::Idle),
    ("proc-stat", Load::Stat),
    ("bpf-lean", Load::Snapshots(SourceKind::Bpf, Fields::TOP)),
    (
        "bpf-full",
        Load::Snapshots(SourceKind::Bpf, Fields::THREE_FILES),
    ),
    (
        "bpf-iter-full",
        Load::Snapshots(SourceKind::BpfIter, Fields::THREE_FILES),
    ),
];

/// The scheduling class of the thread that waits.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Class {
    Fifo,
    Other,
}

#[derive(Debug, Serialize)]
struct Waits {
    case: &'static str,
    class: Class,
    #[serde(serialize_with = "four_decimals")]
    p50_us: f64,
    #[serde(serialize_with = "four_decimals")]
    p99_us: f64,
    #[serde(serialize_with = "four_decimals")]
    p99_9_us: f64,
    #[serde(serialize_with = "four_decimals")]
    max_us: f64,
    samples: usize,
}

impl Waits {
    fn of(case: &'static str, class: Class, mut waits: Vec<u64>) -> Self {
        waits.sort_unstable();
        let at = |part: f64| {
            let place = ((waits.len() as f64 * part).ceil() as usize).max(1) - 1;
            waits.get(place).map_or(f64::NAN, |&ns| ns as f64 / 1e3)
        };
        Self {
            case,
            class,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            max_us: at(1.0),
            samples: waits.len(),
        }
    }
}

impl Row for Waits {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("class", 0),
        column("p50 us", 1),
        column("p99 us", 0),
        column("p99.9 us", 0),
        column("max us", 0),
        column("samples", 2),
    ];

    fn cells(&self) -> Vec<String> {
        let us = |value: f64| format!("{value:.1}");
        let class = match self.class {
            Class::Fifo => "FIFO 80",
            Class::Other => "other",
        };
        vec![
            self.case.to_owned(),
            class.to_owned(),
            us(self.p50_us),
            us(self.p99_us),
            us(self.p99_9_us),
            us(self.max_us),
            self.samples.to_string(),
        ]
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let idle = Idle::start_some(args.processes)?;
    let each = Duration::from_secs(args.seconds) / args.rounds;
    let classes = [Class::Fifo, Class::Other];
    let mut waits: Vec<(&'static str, Class, Load, Vec<u64>)> = LOADS
        .into_iter()
        .flat_map(|(case, load)| classes.map(|class| (case, class, load, Vec::new())))
        .collect();
    let mut skipped: Vec<Skipped> = Vec::new();
    let progress = progress(waits.len() as u64 * u64::from(args.rounds), "cases");
    for _ in 0..args.rounds {
        for (case, class, load, waits) in &mut waits {
            progress.inc(1);
            if skipped.iter().any(|one| one.case == *case) {
                continue;
            }
            match wait_beside(*load, *class, args.cpu, each)? {
                Ok(more) => waits.extend(more),
                Err(reason) => skipped.push(Skipped { case, reason }),
            }
        }
    }
    progress.finish_and_clear();
    drop(idle);
    let rows = waits
        .into_iter()
        .filter(|(_, _, _, waits)| !waits.is_empty())
        .map(|(case, class, _, waits)| Waits::of(case, class, waits));
    let head = Head {
        processes: args.processes,
        looks_per_second: (Duration::from_secs(1).as_millis() / LOOK.as_millis()) as u32,
    };
    Report::new("latency", head, rows.collect(), skipped).print(
        "How long a thread waits for its CPU while processes are read there",
        args.json,
    )?;
    Ok(())
}

/// How long a thread of this class waited each time, beside this load. `Err`: this load is not possible here.
fn wait_beside(
    load: Load,
    class: Class,
    cpu: usize,
    time: Duration,
) -> Result<Result<Vec<u64>, String>, Failure> {
    let (ready, stop) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        let loading = scope.spawn(|| -> Result<(), Failure> {
            let opened = stay_on(cpu).and_then(|()| Look::open(load));
            ready.wait();
            let mut look = opened?;
            while !stop.load(Relaxed) {
                look.once()?;
            }
            Ok(())
        });
        let waiting = scope.spawn(|| -> Result<Vec<u64>, Failure> {
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

/// A load that is ready to start.
enum Look {
    Idle,
    Stat(Vec<u8>),
    Snapshots(Box<Collector>, u64),
}

impl Look {
    fn open(load: Load) -> Result<Self, Failure> {
        Ok(match load {
            Load::Idle => Self::Idle,
            Load::Stat => Self::Stat(Vec::new()),
            Load::Snapshots(source, fields) => {
                let collector = Collector::builder().fields(fields).source(Some(source));
                let mut collector = Box::new(collector.open()?);
                // The first one is more expensive: caches fill, and the array grows.
                collector.snapshot()?;
                Self::Snapshots(collector, now_ns())
            }
        })
    }

    fn once(&mut self) -> Result<(), Failure> {
        match self {
            Self::Idle => thread::sleep(LOOK),
            Self::Stat(text) => {
                for entry in fs::read_dir("/proc")? {
                    let path = entry?.path();
                    let is_process = path.file_name().is_some_and(|name| {
                        name.as_encoded_bytes()
                            .first()
                            .is_some_and(u8::is_ascii_digit)
                    });
                    if is_process && let Ok(mut file) = fs::File::open(path.join("stat")) {
                        text.clear();
                        // A process that has exited meanwhile does not count.
                        let _ = std::io::Read::read_to_end(&mut file, text);
                    }
                }
            }
            Self::Snapshots(collector, next) => {
                collector.snapshot()?;
                // After a snapshot that took longer, the next follows at once; missed ones are not repeated.
                *next = (*next + LOOK.as_nanos() as u64).max(now_ns());
                sleep_until(*next)?;
            }
        }
        Ok(())
    }
}

/// How late the thread woke each time.
fn wait_for(time: Duration) -> Result<Vec<u64>, Failure> {
    let mut waits = Vec::with_capacity((time.as_millis() / WAKE.as_millis()) as usize + 1);
    let mut next = now_ns();
    let end = next + time.as_nanos() as u64;
    while next < end {
        next += WAKE.as_nanos() as u64;
        sleep_until(next)?;
        let now = now_ns();
        waits.push(now.saturating_sub(next));
        // Points in time that have passed meanwhile belong to the same wait.
        next = next.max(now);
    }
    Ok(waits)
}

fn now_ns() -> u64 {
    clock(ClockId::Monotonic).as_nanos() as u64
}

fn sleep_until(ns: u64) -> Result<(), Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_waits_that_happened() {
        let waits = Waits::of(
            "idle",
            Class::Fifo,
            (1..=1000).rev().map(|us| us * 1000).collect(),
        );
        let all = [waits.p50_us, waits.p99_us, waits.p99_9_us, waits.max_us];
        assert_eq!(all.map(|us| us as u64), [500, 990, 999, 1000]);
        assert_eq!(waits.cells().len(), Waits::COLUMNS.len());
        let json = serde_json::to_value(&waits).unwrap();
        assert_eq!(
            (&json["class"], &json["samples"]),
            (&"fifo".into(), &1000.into())
        );
        let one = Waits::of("idle", Class::Other, vec![7000]);
        assert_eq!([one.p50_us, one.max_us].map(|us| us as u64), [7, 7]);
    }

    #[test]
    fn a_thread_wakes_about_as_often_as_it_should_and_never_early() {
        let waits = wait_beside(Load::Idle, Class::Other, 0, Duration::from_millis(50));
        let waits = waits.unwrap().unwrap();
        assert!((1..=50).contains(&waits.len()), "{}", waits.len());
    }
}
