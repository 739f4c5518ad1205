//! `fastproc bench background`: five changes, made or proposed by others, that make the kernel's texts cheaper, each
//! measured in the form that its author used. docs/background.md has their history.

mod decimal;

use std::{
    cell::RefCell, fs, fs::File, hint::black_box, io::Read as _, process::Command, time::Duration,
};

use fastproc::{
    Collector, Fields, SourceKind,
    counters::{Counters, Options, Reader},
    text::Files,
};
use rustix::time::ClockId;
use serde::Serialize;

use super::{
    command::cpu_of,
    idle::Idle,
    measure::{Failure, clock},
    report::{Column, Report, Row, Skipped, Spread, column, progress},
};

/// Arguments of `fastproc bench background`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many idle processes first, and end them afterwards. 0: measure the machine as it is.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    processes: usize,
    /// Read or convert this many times in each round. Times are scaled to the authors' numbers: a million reads, or
    /// 10,000.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    reads: u32,
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// The subjects of the changes, in the order of the table.
const CHANGES: [&str; 5] = ["decimal", "status", "vmstat", "stat", "scan"];
/// The latencies of the proposal for interrupt counts in milliseconds, and its seconds for 10,000 reads.
const LATENCIES: [(u64, &str, f64); 5] = [
    (0, "fastproc, exact counts", 11.041),
    (1, "fastproc, 1 ms old", 12.983),
    (10, "fastproc, 10 ms old", 8.452),
    (100, "fastproc, 100 ms old", 8.003),
    (1000, "fastproc, 1000 ms old", 8.000),
];
/// Timed refreshes of busybox's top, and timed snapshots.
const SCANS: u32 = 5;

#[derive(Debug, Serialize)]
struct Head {
    processes: usize,
    reads: u32,
    rounds: u32,
}

/// One way to do the work of one of the changes.
#[derive(Debug, Serialize)]
struct Line {
    change: &'static str,
    case: &'static str,
    unit: &'static str,
    /// The author's figures before and after the change, in this unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<f64>,
    /// CPU time on this machine.
    here: Spread,
    /// How many times cheaper than with today's kernel, round by round.
    times: Spread,
}

impl Row for Line {
    const COLUMNS: &'static [Column] = &[
        column("change and way", 0),
        column("before", 0),
        column("after", 0),
        column("here", 0),
        column("unit", 0),
        column("times", 0),
        column("least", 1),
        column("most", 1),
    ];

    fn cells(&self) -> Vec<String> {
        let authors = |value: Option<f64>| value.map_or_else(|| "-".into(), short);
        vec![
            format!("{}: {}", self.change, self.case),
            authors(self.before),
            authors(self.after),
            short(self.here.median),
            self.unit.to_owned(),
            short(self.times.median),
            short(self.times.min),
            short(self.times.max),
        ]
    }
}

/// A number with three digits.
fn short(value: f64) -> String {
    if value.is_nan() {
        return "-".into();
    }
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else if value >= 1.0 {
        2
    } else {
        3
    };
    format!("{value:.decimals$}")
}

/// A [`Line`] to measure.
struct Job<'a> {
    change: &'static str,
    case: &'static str,
    unit: &'static str,
    authors: (Option<f64>, Option<f64>),
    /// Whether this is today's kernel, which the others are compared with.
    is_kernel: bool,
    /// Does it, and returns the CPU time in this unit.
    run: Box<dyn FnMut() -> Result<f64, Failure> + 'a>,
}

impl<'a> Job<'a> {
    fn new(
        change: &'static str,
        case: &'static str,
        unit: &'static str,
        run: impl FnMut() -> Result<f64, Failure> + 'a,
    ) -> Self {
        Self {
            change,
            case,
            unit,
            authors: (None, None),
            is_kernel: false,
            run: Box::new(run),
        }
    }

    fn kernel(self) -> Self {
        Self {
            is_kernel: true,
            ..self
        }
    }

    fn authors(self, before: impl Into<Option<f64>>, after: impl Into<Option<f64>>) -> Self {
        Self {
            authors: (before.into(), after.into()),
            ..self
        }
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let idle = Idle::start_some(args.processes)?;
    let numbers = numbers()?;
    let counters = Options::new().open()?;
    // One for all cases: readers beyond the number of CPUs share their memory, which costs time.
    let mut reader = counters.reader();
    // Some lines are proven only some seconds after the first read.
    reader.stat()?;
    let reader = RefCell::new(reader);
    let mut jobs = decimals(&numbers, args.reads);
    let mut skipped = Vec::new();
    jobs.push(
        Job::new("status", "open, read, close", "s/million", || {
            read("/proc/self/status", args.reads, 1e6)
        })
        .kernel()
        .authors(10.748, 9.011),
    );
    match statuses(args.reads) {
        Ok(job) => jobs.push(job),
        Err(error) => skipped.push(skip("status by fastproc", &error)),
    }
    jobs.push(
        Job::new("vmstat", "open, read, close", "s/million", || {
            read("/proc/vmstat", args.reads, 1e6)
        })
        .kernel()
        .authors(13.147, None),
    );
    jobs.push(
        Job::new("stat", "open, read, close", "s/10,000", || {
            read("/proc/stat", args.reads, 1e4)
        })
        .kernel(),
    );
    match counters.unavailable() {
        None => jobs.extend(counts(&counters, &reader, args.reads)),
        Some(error) => skipped.push(skip("vmstat and stat by fastproc", error)),
    }
    match busybox() {
        Ok(job) => jobs.push(job),
        Err(error) => skipped.push(skip("busybox top", &error)),
    }
    match scans() {
        Ok(job) => jobs.push(job),
        Err(error) => skipped.push(skip("scan by fastproc", &error)),
    }
    let mut lines = measure(&mut jobs, args.rounds)?;
    drop(jobs);
    lines.sort_by_key(|line| CHANGES.iter().position(|&change| change == line.change));
    let lines_from_text = counters.report();
    let lines_from_text: Vec<_> = lines_from_text
        .from_text()
        .map(|line| format!("{} {}", line.file, line.name))
        .collect();
    let head = Head {
        processes: idle.map_or(0, |idle| idle.count()),
        reads: args.reads,
        rounds: args.rounds,
    };
    let mut report = Report::new("background", head, lines, skipped);
    report.note(
        "before, after: what the author measured, on another machine; times: cheaper than today's kernel"
            .into(),
    );
    if !lines_from_text.is_empty() {
        let lines = lines_from_text.join(", ");
        report.note(format!("fastproc takes from the kernel's text: {lines}"));
    }
    Ok(report.print(
        "What others have done about these texts, CPU time",
        args.json,
    )?)
}

fn skip(case: &'static str, reason: &impl ToString) -> Skipped {
    let reason = reason.to_string();
    Skipped { case, reason }
}

/// Runs all cases in turn; each round begins with another one. The first round does not count.
fn measure(jobs: &mut [Job<'_>], rounds: u32) -> Result<Vec<Line>, Failure> {
    let count = jobs.len();
    let bar = progress(u64::from(rounds + 1) * count as u64, "cases");
    let mut taken = vec![Vec::new(); count];
    for round in 0..=rounds as usize {
        for at in (0..count).map(|at| (at + round) % count) {
            let job = &mut jobs[at];
            let value =
                (job.run)().map_err(|error| format!("{}, {}: {error}", job.change, job.case))?;
            if round > 0 {
                taken[at].push(value);
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let lines = jobs.iter().zip(&taken).map(|(job, values)| {
        let kernel = jobs
            .iter()
            .position(|other| other.is_kernel && other.change == job.change);
        let times = kernel.map_or(&[][..], |kernel| &taken[kernel]);
        let times = times.iter().zip(values).map(|(kernel, own)| kernel / own);
        Line {
            change: job.change,
            case: job.case,
            unit: job.unit,
            before: job.authors.0,
            after: job.authors.1,
            here: Spread::of(values.iter().copied()),
            times: Spread::of(times),
        }
    });
    Ok(lines.collect())
}

/// CPU time of this thread, in seconds for each of `count` items.
fn each(count: u32, work: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let before = clock(ClockId::ThreadCPUTime);
    work()?;
    let spent = clock(ClockId::ThreadCPUTime).saturating_sub(before);
    Ok(spent.as_secs_f64() / f64::from(count))
}

/// Opens a file, reads it to its end and closes it, `reads` times. Returns the seconds for `unit` times.
fn read(path: &str, reads: u32, unit: f64) -> Result<f64, Failure> {
    let mut memory = vec![0; 64 << 10];
    let seconds = each(reads, || {
        for _ in 0..reads {
            let mut file = File::open(path)?;
            while black_box(file.read(&mut memory)?) > 0 {}
        }
        Ok(())
    })?;
    Ok(seconds * unit)
}

/// The numbers of the machine's own files, in the order in which the kernel prints them.
fn numbers() -> Result<Vec<u64>, Failure> {
    let mut numbers = Vec::new();
    for path in ["/proc/stat", "/proc/vmstat", "/proc/self/stat"] {
        let text = fs::read_to_string(path)?;
        let words = text.split_ascii_whitespace();
        numbers.extend(words.filter_map(|word| word.parse::<u64>().ok()));
    }
    Ok(numbers)
}

/// Conversions to base ten.
fn decimals(numbers: &[u64], reads: u32) -> Vec<Job<'_>> {
    let job = |(case, all): (&'static str, decimal::All)| {
        let mut out = vec![0; 32 * numbers.len()];
        Job::new("decimal", case, "ns/number", move || {
            let passes = reads.div_ceil(numbers.len() as u32);
            let seconds = each(passes * numbers.len() as u32, || {
                for _ in 0..passes {
                    black_box(all(black_box(numbers), &mut out));
                }
                Ok(())
            })?;
            Ok(seconds * 1e9)
        })
    };
    let mut jobs: Vec<_> = decimal::METHODS.into_iter().map(job).collect();
    // Today's kernel is the last but one in the table, and seqtext the last.
    if let [digits, fives, kernel, _] = &mut jobs[..] {
        digits.authors.0 = Some(151.0);
        fives.authors.1 = Some(62.0);
        kernel.is_kernel = true;
    }
    jobs
}

/// `status` of all processes of a user, from a new snapshot.
fn statuses<'a>(reads: u32) -> Result<Job<'a>, Failure> {
    let mut collector = Collector::builder()
        .source(Some(SourceKind::Bpf))
        .fields(Files::FIELDS)
        .open()?;
    let mut files = Files::open(collector.host(), collector.calibration())?;
    Ok(Job::new("status", "fastproc", "s/million", move || {
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
fn counts<'a>(counters: &'a Counters, reader: &'a RefCell<Reader>, reads: u32) -> Vec<Job<'a>> {
    let mut jobs = vec![Job::new("vmstat", "fastproc", "s/million", move || {
        let mut reader = reader.borrow_mut();
        let seconds = each(reads, || {
            for _ in 0..reads {
                black_box(reader.vmstat()?);
            }
            Ok(())
        })?;
        Ok(seconds * 1e6)
    })];
    jobs.extend(LATENCIES.map(|(ms, case, author)| {
        let run = move || {
            let mut reader = reader.borrow_mut();
            counters.set_stat_irqs_latency(Duration::from_millis(ms));
            let seconds = each(reads, || {
                for _ in 0..reads {
                    black_box(reader.stat()?);
                }
                Ok(())
            })?;
            Ok(seconds * 1e4)
        };
        let job = Job::new("stat", case, "s/10,000", run);
        // Without the change no count is old.
        if ms == 0 {
            job.authors(author, None)
        } else {
            job.authors(None, author)
        }
    }));
    jobs
}

/// A refresh of busybox's top: the additional time of five refreshes.
fn busybox<'a>() -> Result<Job<'a>, Failure> {
    let top = |refreshes: u32| {
        let mut command = Command::new("busybox");
        command.args(["top", "-b", "-d", "0", "-n", &refreshes.to_string()]);
        cpu_of(&mut command)
    };
    top(1)?;
    let job = Job::new("scan", "busybox top", "us/scan", move || {
        let few = top(1)?;
        let more = top(1 + SCANS)?.saturating_sub(few);
        Ok(more.as_secs_f64() * 1e6 / f64::from(SCANS))
    });
    Ok(job.kernel().authors(92_517.0, 67_267.0))
}

/// A snapshot with the fields of a `top`.
fn scans<'a>() -> Result<Job<'a>, Failure> {
    let mut collector = Collector::builder()
        .source(Some(SourceKind::Bpf))
        .fields(Fields::TOP)
        .open()?;
    Ok(Job::new(
        "scan",
        "fastproc's snapshot",
        "us/scan",
        move || {
            let seconds = each(SCANS, || {
                for _ in 0..SCANS {
                    black_box(collector.snapshot()?.len());
                }
                Ok(())
            })?;
            Ok(seconds * 1e6)
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_is_compared_with_the_kernels_own_of_the_same_change() {
        let (mut kernel, mut ours) = ([9.0, 8.0, 6.0].into_iter(), [9.0, 2.0, 3.0].into_iter());
        let mut jobs = [
            Job::new("stat", "open", "s", || Ok(kernel.next().unwrap())).kernel(),
            Job::new("stat", "fastproc", "s", || Ok(ours.next().unwrap())),
            Job::new("scan", "fastproc", "us", || Ok(1.0)).authors(92.0, None),
        ];
        let lines = measure(&mut jobs, 2).unwrap();
        // The first round does not count.
        assert_eq!(lines[0].here, Spread::of([8.0, 6.0]));
        assert_eq!(lines[1].times, Spread::of([4.0, 2.0]));
        assert!(lines[2].times.median.is_nan());
        let cells = lines[2].cells();
        assert_eq!(cells.len(), Line::COLUMNS.len());
        assert_eq!(cells[1..6], ["92.0", "-", "1.00", "us", "-"]);
    }

    #[test]
    fn every_file_and_every_conversion_can_be_measured() {
        let numbers = numbers().unwrap();
        for mut job in decimals(&numbers, 100) {
            assert!((job.run)().unwrap() > 0.0, "{}", job.case);
        }
        for path in ["/proc/self/status", "/proc/vmstat", "/proc/stat"] {
            assert!(read(path, 3, 1e6).unwrap() > 0.0, "{path}");
        }
    }

    #[test]
    fn three_digits_are_shown() {
        let shown = [0.012_34, 1.234, 12.34, 92_517.0, f64::NAN].map(short);
        assert_eq!(shown, ["0.012", "1.23", "12.3", "92517", "-"]);
    }
}
