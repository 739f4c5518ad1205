//! `fastproc bench background`: four changes, made or proposed by others, that make the kernel's texts cheaper, each
//! measured in the form that its author used. docs/dev/background.md has their history, and their authors' figures.

use std::{
    cell::RefCell, fs::File, hint::black_box, io::Read as _, process::Command, time::Duration,
};

use fastproc::{
    Collector, Fields, SourceKind,
    counters::{Counters, Options},
    text::Files,
};
use serde_json::json;

use super::{
    command::cpu_of,
    idle::Processes,
    measure::{Common, Failure, in_turn, timed},
    report::{Column, Report, Spread, THREE_DIGITS, column},
};

/// Arguments of `fastproc bench background`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    processes: Processes,
    /// Read this many times in each round. Times are scaled to the authors' numbers: a million reads, or 10,000.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    reads: u32,
}

/// The subjects of the changes, in the order of the table.
const CHANGES: [&str; 4] = ["status", "vmstat", "stat", "scan"];
/// The ways of today's kernel, which the others are compared with.
const KERNEL: [&str; 2] = [READ, "busybox top"];
const READ: &str = "open, read, close";
/// The latencies of the proposal for interrupt counts, in milliseconds.
const LATENCIES: [(u64, &str); 5] = [
    (0, "fastproc, exact counts"),
    (1, "fastproc, 1 ms old"),
    (10, "fastproc, 10 ms old"),
    (100, "fastproc, 100 ms old"),
    (1000, "fastproc, 1000 ms old"),
];
/// Timed refreshes of busybox's top, and timed snapshots.
const SCANS: u32 = 5;

const COLUMNS: [Column; 5] = [
    column("change", "change", 0, 0),
    column("case", "way", 0, 0),
    // CPU time on this machine.
    column("here", "here", THREE_DIGITS, 0),
    column("unit", "unit", 0, 0),
    // How many times cheaper than with today's kernel, round by round.
    column("times", "times", THREE_DIGITS, 0),
];

/// One way to do the work of one of the changes.
struct Job<'a> {
    change: &'static str,
    case: &'static str,
    unit: &'static str,
    /// Does it, and returns the CPU time in this unit.
    run: Box<dyn FnMut() -> Result<f64, Failure> + 'a>,
}

fn job<'a>(
    [change, case, unit]: [&'static str; 3],
    run: impl FnMut() -> Result<f64, Failure> + 'a,
) -> Job<'a> {
    Job {
        change,
        case,
        unit,
        run: Box::new(run),
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let idle = args.processes.start()?;
    let (reads, rounds) = (args.reads, common.rounds(11));
    let mut counters = Options::new().open()?;
    // Some lines are proven only some seconds after the first read.
    counters.stat()?;
    let counters = RefCell::new(counters);
    let title = "What others have done about these texts, CPU time";
    let mut report = Report::new("background", title, &COLUMNS);
    let mut jobs = Vec::new();
    for (change, path, unit, times) in [
        ("status", "/proc/self/status", "s/million", 1e6),
        ("vmstat", "/proc/vmstat", "s/million", 1e6),
        ("stat", "/proc/stat", "s/10,000", 1e4),
    ] {
        let run = move || Ok(read(path, reads)? * times);
        jobs.push(job([change, READ, unit], run));
    }
    for (name, job) in [
        ("status by fastproc", statuses(reads)),
        ("busybox top", busybox()),
        ("scan by fastproc", scans()),
    ] {
        match job {
            Ok(job) => jobs.push(job),
            Err(error) => report.skip(name, &error),
        }
    }
    match counters.borrow().unavailable() {
        None => jobs.extend(counts(&counters, reads)),
        Some(error) => report.skip("vmstat and stat by fastproc", error),
    }
    jobs.sort_by_key(|job| CHANGES.iter().position(|&change| change == job.change));
    measure(&mut report, &mut jobs, rounds)?;
    drop(jobs);
    report.head(json!({"processes": idle.count(), "reads": reads, "rounds": rounds}));
    report.note("times: cheaper than today's kernel");
    let lines = counters.borrow().report();
    let lines = lines
        .from_text()
        .map(|line| format!("{} {}", line.file, line.name));
    let lines: Vec<_> = lines.collect();
    if !lines.is_empty() {
        report.note(format!(
            "fastproc takes from the kernel's text: {}",
            lines.join(", ")
        ));
    }
    Ok(report.print(common.json)?)
}

/// Runs all cases in turn. The first round does not count.
fn measure(report: &mut Report, jobs: &mut [Job<'_>], rounds: u32) -> Result<(), Failure> {
    let mut taken = vec![Vec::new(); jobs.len()];
    in_turn(jobs.len(), 1, rounds, |at, counts| {
        let Job {
            change, case, run, ..
        } = &mut jobs[at];
        let value = run().map_err(|error| format!("{change}, {case}: {error}"))?;
        if counts {
            taken[at].push(value);
        }
        Ok(())
    })?;
    for (job, values) in jobs.iter().zip(&taken) {
        let is_kernel = |of: &Job<'_>| of.change == job.change && KERNEL.contains(&of.case);
        let kernel = jobs.iter().position(is_kernel);
        let times = kernel.map_or(&[][..], |kernel| &taken[kernel]);
        let times = times.iter().zip(values).map(|(kernel, own)| kernel / own);
        report.row([
            job.change.into(),
            job.case.into(),
            Spread::of(values.iter().copied()).into(),
            job.unit.into(),
            Spread::of(times).into(),
        ]);
    }
    Ok(())
}

/// Does it `count` times. Returns the CPU time of this thread, in seconds for each time.
fn each(count: u32, mut once: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let (done, cpu, _) = timed(|| (0..count).try_for_each(|_| once()));
    done?;
    Ok(cpu.as_secs_f64() / f64::from(count))
}

/// Opens a file, reads it to its end and closes it, `reads` times. Returns the seconds for each time.
fn read(path: &str, reads: u32) -> Result<f64, Failure> {
    let mut memory = vec![0; 64 << 10];
    each(reads, || {
        let mut file = File::open(path)?;
        while black_box(file.read(&mut memory)?) > 0 {}
        Ok(())
    })
}

fn open(fields: Fields) -> Result<Collector, fastproc::Error> {
    let builder = Collector::builder().source(Some(SourceKind::Bpf));
    builder.fields(fields).open()
}

/// `status` of all processes of a user, from a new snapshot.
fn statuses<'a>(reads: u32) -> Result<Job<'a>, Failure> {
    let mut collector = open(Files::FIELDS)?;
    let mut files = Files::open(collector.host(), collector.calibration())?;
    Ok(job(["status", "fastproc", "s/million"], move || {
        let (mut texts, mut seconds) = (0, 0.0);
        while texts < reads {
            let before = texts;
            seconds += each(1, || {
                let snapshot = collector.snapshot()?;
                for process in snapshot.iter() {
                    if process.identity().has_mm != 0 && !files.needs_kernel_status(process) {
                        black_box(files.status(process, None)?);
                        texts += 1;
                    }
                }
                Ok(())
            })?;
            if texts == before {
                return Err("there is no process whose status a record holds".into());
            }
        }
        Ok(seconds / f64::from(texts) * 1e6)
    }))
}

/// The machine's counters: `vmstat`, and `stat` at each latency.
fn counts(counters: &RefCell<Counters>, reads: u32) -> impl Iterator<Item = Job<'_>> {
    let vmstat = job(["vmstat", "fastproc", "s/million"], move || {
        let mut counters = counters.borrow_mut();
        let seconds = each(reads, || {
            black_box(counters.vmstat()?);
            Ok(())
        })?;
        Ok(seconds * 1e6)
    });
    let stat = LATENCIES.into_iter().map(move |(ms, case)| {
        job(["stat", case, "s/10,000"], move || {
            let mut counters = counters.borrow_mut();
            counters.set_stat_irqs_latency(Duration::from_millis(ms));
            let seconds = each(reads, || {
                black_box(counters.stat()?);
                Ok(())
            })?;
            Ok(seconds * 1e4)
        })
    });
    [vmstat].into_iter().chain(stat)
}

/// A refresh of busybox's top: the additional time of five refreshes.
fn busybox<'a>() -> Result<Job<'a>, Failure> {
    let top = |refreshes: u32| {
        let mut command = Command::new("busybox");
        command.args(["top", "-b", "-d", "0", "-n", &refreshes.to_string()]);
        cpu_of(&mut command)
    };
    top(1)?;
    Ok(job(["scan", "busybox top", "us/scan"], move || {
        let few = top(1)?;
        let more = top(1 + SCANS)?.saturating_sub(few);
        Ok(more.as_secs_f64() * 1e6 / f64::from(SCANS))
    }))
}

/// A snapshot with the fields of a `top`.
fn scans<'a>() -> Result<Job<'a>, Failure> {
    let mut collector = open(Fields::TOP)?;
    Ok(job(["scan", "fastproc's snapshot", "us/scan"], move || {
        let seconds = each(SCANS, || {
            black_box(collector.snapshot()?.len());
            Ok(())
        })?;
        Ok(seconds * 1e6)
    }))
}
