//! `fastproc bench stat-latency`: what it saves to let interrupt counts be a little old, and what remains.
//!
//! The table of a proposal for the kernel (a sysctl `proc-stat-irqs-latency-ms`): 10,000 reads of `/proc/stat` for each
//! latency. On this machine against the kernel's file; and on machines made up in memory, against the same text
//! formatted afresh by `core::fmt` and by seqtext.

use std::{
    fmt::Write as _,
    fs::File,
    hint::black_box,
    os::unix::fs::FileExt,
    sync::Barrier,
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};

use fastproc::{
    counters::{Counters, Options},
    text::machine_stat::{self, Cpu, CpuTimes, MachineStat, Moved},
};
use seqtext::SeqBuf;
use serde::Serialize;

use super::{
    measure::Failure,
    report::{Column, Report, Row, Skipped, Spread, column, four_decimals},
};

/// Arguments of `fastproc bench stat-latency`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Reads in each measurement; figures are for 10,000.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    reads: u32,
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// The proposal's latencies, in milliseconds.
const LATENCIES: [u64; 5] = [0, 1, 10, 100, 1000];
/// The proposal's machine.
const PROPOSAL: (u32, usize) = (96, 2824);
/// From the smallest machine to the largest, by CPUs and by interrupts.
const MACHINES: [(u32, usize); 8] = [
    (2, 20),
    (2, 2824),
    (2, 16384),
    (96, 20),
    (96, 16384),
    (512, 20),
    (512, 2824),
    (512, 16384),
];
/// Interrupts that come at all.
const ACTIVE: usize = 32;
/// Reads per row.
const UNIT: f64 = 10_000.0;

#[derive(Debug, Serialize)]
struct Head {
    reads: u32,
    rounds: u32,
    jiffy_ms: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Line {
    case: &'static str,
    /// `this`, or CPUs x interrupts of one made up.
    machine: String,
    latency_ms: u64,
    /// By the clock on the wall, for 10,000 reads; the median.
    #[serde(serialize_with = "four_decimals")]
    elapsed_s: f64,
    /// In the kernel.
    #[serde(serialize_with = "four_decimals")]
    sys_s: f64,
}

impl Row for Line {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("machine", 0),
        column("latency ms", 0),
        column("elapsed s", 0),
        column("sys s", 1),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.case.to_owned(),
            self.machine.clone(),
            self.latency_ms.to_string(),
            format!("{:.4}", self.elapsed_s),
            format!("{:.4}", self.sys_s),
        ]
    }
}

/// Time by the clock, and in the kernel.
type Taken = (Duration, Duration);

/// One thing to measure.
struct Job<'a> {
    case: &'static str,
    machine: String,
    latency_ms: u64,
    /// Reads so often, and says how long it took by the clock and in the kernel.
    run: Box<dyn FnMut(u32) -> Result<Taken, Failure> + 'a>,
}

/// Time that this thread has spent in the kernel.
fn system_time() -> Duration {
    // SAFETY: zero is a valid value for every member.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a structure of this type, and ours.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    if result != 0 {
        return Duration::ZERO;
    }
    Duration::new(
        usage.ru_stime.tv_sec as u64,
        usage.ru_stime.tv_usec as u32 * 1000,
    )
}

fn timed(reads: u32, mut read: impl FnMut() -> Result<usize, Failure>) -> Result<Taken, Failure> {
    let (system, clock) = (system_time(), Instant::now());
    for _ in 0..reads {
        if black_box(read()?) == 0 {
            return Err("it read nothing".into());
        }
    }
    Ok((clock.elapsed(), system_time().saturating_sub(system)))
}

/// A machine in memory.
struct Synthetic {
    stat: MachineStat,
    /// The counts as the descriptors have them.
    counts: Vec<u32>,
    active: Vec<u32>,
    turn: u64,
}

impl Synthetic {
    fn new((cpus, irqs): (u32, usize)) -> Self {
        let times = |seed: u64| CpuTimes {
            ns: std::array::from_fn(|kind| {
                (seed + 1) * 987_654_321_987 / (kind as u64 * kind as u64 + 1)
            }),
        };
        let counts: Vec<u32> = (0..irqs)
            .map(|irq| if irq % 4 == 0 { irq as u32 * 977 } else { 0 })
            .collect();
        let step = (irqs / ACTIVE.min(irqs)).max(1);
        Self {
            stat: MachineStat {
                total: times(u64::from(cpus)),
                cpus: (0..cpus)
                    .map(|id| Cpu {
                        id,
                        times: times(u64::from(id)),
                    })
                    .collect(),
                intr: 123_456_789_012,
                irqs: counts.clone(),
                ctxt: 987_654_321_098,
                btime: 1_700_000_000,
                processes: 12_345_678,
                procs_running: 3,
                procs_blocked: 0,
                softirq: 45_678_901_234,
                softirqs: vec![123_456; 10],
            },
            active: (0..irqs as u32).step_by(step).take(ACTIVE).collect(),
            counts,
            turn: 0,
        }
    }

    /// What happens between two reads: interrupts, and time for some of the CPUs.
    fn advance(&mut self) {
        self.turn += 1;
        for &irq in &self.active {
            self.counts[irq as usize] += 1;
        }
        self.stat.intr += ACTIVE as u64;
        self.stat.ctxt += 40;
        let cpus = self.stat.cpus.len() as u64;
        for step in 0..4 {
            let cpu = (self.turn * 4 + step) % cpus;
            self.stat.cpus[cpu as usize].times.ns[3] += machine_stat::TICK_NS;
        }
        self.stat.total.ns[3] += 4 * machine_stat::TICK_NS;
    }

    /// All counts, as a walk over all descriptors yields them.
    fn walk(&mut self) {
        self.stat.irqs.copy_from_slice(&self.counts);
    }

    /// The active ones, as the short cut does.
    fn shortcut(&mut self) {
        for &irq in &self.active {
            self.stat.irqs[irq as usize] = self.counts[irq as usize];
        }
    }
}

/// Decides, as the library does, whether counts are still young enough.
struct Age {
    latency: Duration,
    read: Option<Instant>,
}

impl Age {
    fn is_over(&mut self) -> bool {
        if self.latency.is_zero() {
            return true;
        }
        let now = Instant::now();
        let over = self.read.is_none_or(|read| now - read >= self.latency);
        if over {
            self.read = Some(now);
        }
        over
    }
}

/// The whole text by `core::fmt`: the printf way.
fn core_fmt(stat: &MachineStat, to: &mut String) -> std::fmt::Result {
    to.clear();
    let times = |to: &mut String, times: &CpuTimes| -> std::fmt::Result {
        for ns in times.ns {
            write!(to, " {}", ns / machine_stat::TICK_NS)?;
        }
        to.write_char('\n')
    };
    to.write_str("cpu ")?;
    times(to, &stat.total)?;
    for cpu in &stat.cpus {
        write!(to, "cpu{}", cpu.id)?;
        times(to, &cpu.times)?;
    }
    write!(to, "intr {}", stat.intr)?;
    for count in &stat.irqs {
        write!(to, " {count}")?;
    }
    write!(
        to,
        "\nctxt {}\nbtime {}\nprocesses {}\nprocs_running {}\nprocs_blocked {}\nsoftirq {}",
        stat.ctxt, stat.btime, stat.processes, stat.procs_running, stat.procs_blocked, stat.softirq
    )?;
    for count in &stat.softirqs {
        write!(to, " {count}")?;
    }
    to.write_char('\n')
}

/// The whole text by seqtext, nothing kept.
fn seqtext_afresh(stat: &MachineStat, memory: &mut Vec<u8>) -> usize {
    loop {
        let mut buf = SeqBuf::new(memory);
        let times = |buf: &mut SeqBuf<'_>, times: &CpuTimes| {
            for ns in times.ns {
                buf.put_decimal_ull(" ", ns / machine_stat::TICK_NS);
            }
            buf.putc(b'\n');
        };
        buf.puts("cpu ");
        times(&mut buf, &stat.total);
        for cpu in &stat.cpus {
            buf.put_decimal_ull("cpu", u64::from(cpu.id));
            times(&mut buf, &cpu.times);
        }
        buf.put_decimal_ull("intr ", stat.intr);
        for &count in &stat.irqs {
            buf.put_decimal_ull(" ", u64::from(count));
        }
        buf.put_decimal_ull("\nctxt ", stat.ctxt);
        buf.put_decimal_ull("\nbtime ", stat.btime);
        buf.put_decimal_ull("\nprocesses ", stat.processes);
        buf.put_decimal_ull("\nprocs_running ", stat.procs_running);
        buf.put_decimal_ull("\nprocs_blocked ", stat.procs_blocked);
        buf.put_decimal_ull("\nsoftirq ", stat.softirq);
        for &count in &stat.softirqs {
            buf.put_decimal_ull(" ", u64::from(count));
        }
        buf.putc(b'\n');
        if !buf.has_overflowed() {
            return buf.count();
        }
        let size = (memory.len() * 2).max(4096);
        memory.resize(size, 0);
    }
}

fn synthetic_jobs<'a>(size: (u32, usize), latencies: &[u64]) -> Vec<Job<'a>> {
    let mut jobs: Vec<Job<'a>> = Vec::new();
    let name = format!("{}x{}", size.0, size.1);
    for &latency_ms in latencies {
        let age = || Age {
            latency: Duration::from_millis(latency_ms),
            read: None,
        };
        let (mut machine, mut old, mut text) = (Synthetic::new(size), age(), String::new());
        jobs.push(Job {
            case: "core-fmt",
            machine: name.clone(),
            latency_ms,
            run: Box::new(move |reads| {
                timed(reads, || {
                    machine.advance();
                    if old.is_over() {
                        machine.walk();
                    }
                    core_fmt(&machine.stat, &mut text)?;
                    Ok(text.len())
                })
            }),
        });
        let (mut machine, mut old, mut memory) = (Synthetic::new(size), age(), Vec::new());
        jobs.push(Job {
            case: "seqtext",
            machine: name.clone(),
            latency_ms,
            run: Box::new(move |reads| {
                timed(reads, || {
                    machine.advance();
                    if old.is_over() {
                        machine.walk();
                    }
                    Ok(seqtext_afresh(&machine.stat, &mut memory))
                })
            }),
        });
        let (mut machine, mut old) = (Synthetic::new(size), age());
        let (mut renderer, mut copy) = (machine_stat::Renderer::default(), Vec::new());
        jobs.push(Job {
            case: "seqtext-cached-row",
            machine: name.clone(),
            latency_ms,
            run: Box::new(move |reads| {
                timed(reads, || {
                    machine.advance();
                    let moved = if old.is_over() {
                        machine.shortcut();
                        Moved::Only(&machine.active)
                    } else {
                        Moved::Only(&[])
                    };
                    // Handed out as the kernel does: by a copy.
                    copy.clear();
                    copy.extend_from_slice(renderer.render(&machine.stat, moved));
                    Ok(copy.len())
                })
            }),
        });
    }
    jobs
}

/// Every CPU reads at once; the time of the last to finish.
fn every_cpu(counters: &Counters, reads: u32) -> Result<Taken, Failure> {
    let readers = available_parallelism().map_or(1, usize::from);
    let start = Barrier::new(readers);
    let taken: Vec<Result<Taken, Failure>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..readers)
            .map(|_| {
                let start = &start;
                scope.spawn(move || {
                    let mut reader = counters.reader();
                    reader.stat()?;
                    start.wait();
                    timed(reads, || Ok(reader.stat()?.len()))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a reader failed".into()))
            })
            .collect()
    });
    let mut longest = (Duration::ZERO, Duration::ZERO);
    for taken in taken {
        let (elapsed, system) = taken?;
        longest = (longest.0.max(elapsed), longest.1.max(system));
    }
    Ok(longest)
}

fn this_machine<'a>(counters: &'a Counters, file: &'a File) -> Vec<Job<'a>> {
    let mut jobs: Vec<Job<'a>> = Vec::new();
    let mut memory = vec![0; 1 << 20];
    jobs.push(Job {
        case: "kernel-pread",
        machine: "this".into(),
        latency_ms: 0,
        run: Box::new(move |reads| timed(reads, || Ok(file.read_at(&mut memory, 0)?))),
    });
    let mut memory = vec![0; 1 << 20];
    jobs.push(Job {
        case: "kernel-open",
        machine: "this".into(),
        latency_ms: 0,
        run: Box::new(move |reads| {
            timed(reads, || {
                use std::io::Read;
                let mut file = File::open("/proc/stat")?;
                let mut len = 0;
                loop {
                    match file.read(&mut memory)? {
                        0 => return Ok(len),
                        read => len += read,
                    }
                }
            })
        }),
    });
    if counters.unavailable().is_some() {
        return jobs;
    }
    for latency_ms in LATENCIES {
        let latency = Duration::from_millis(latency_ms);
        let mut reader = counters.reader();
        jobs.push(Job {
            case: "fastproc",
            machine: "this".into(),
            latency_ms,
            run: Box::new(move |reads| {
                counters.set_stat_irqs_latency(latency);
                timed(reads, || Ok(reader.stat()?.len()))
            }),
        });
        jobs.push(Job {
            case: "fastproc-every-cpu",
            machine: "this".into(),
            latency_ms,
            run: Box::new(move |reads| {
                counters.set_stat_irqs_latency(latency);
                every_cpu(counters, reads)
            }),
        });
    }
    jobs
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let counters = Options::new().open()?;
    let file = File::open("/proc/stat")?;
    let mut jobs = this_machine(&counters, &file);
    jobs.extend(synthetic_jobs(PROPOSAL, &LATENCIES));
    let mut rows = measure(&mut jobs, args.reads, args.rounds)?;
    // The largest would take minutes: they are measured by fewer reads.
    let mut jobs: Vec<Job<'_>> = MACHINES
        .into_iter()
        .flat_map(|size| synthetic_jobs(size, &[0]))
        .collect();
    rows.extend(measure(&mut jobs, (args.reads / 20).max(10), args.rounds)?);

    let skipped = counters.unavailable().map(|reason| Skipped {
        case: "fastproc",
        reason: reason.to_string(),
    });
    // What one millisecond is rounded up to.
    counters.set_stat_irqs_latency(Duration::from_nanos(1));
    let head = Head {
        reads: args.reads,
        rounds: args.rounds,
        jiffy_ms: counters.stat_irqs_latency().as_secs_f64() * 1e3,
    };
    let mut report = Report::new("stat-latency", head, rows, skipped.into_iter().collect());
    report.note("seconds for 10,000 reads; latencies are rounded up to a jiffy".into());
    report.print("Interrupt counts that may be old", args.json)?;
    Ok(())
}

fn measure(jobs: &mut [Job<'_>], reads: u32, rounds: u32) -> Result<Vec<Line>, Failure> {
    let mut taken: Vec<Vec<Taken>> = vec![Vec::new(); jobs.len()];
    let count = jobs.len();
    for turn in 0..=rounds as usize {
        for index in (0..count).map(|index| (index + turn) % count) {
            let job = &mut jobs[index];
            // The first turn fills caches, and does not count.
            let reads = if turn == 0 { reads / 10 } else { reads };
            let time = (job.run)(reads.max(1)).map_err(|error| format!("{}: {error}", job.case))?;
            if turn > 0 {
                taken[index].push(time);
            }
        }
    }
    let scale = UNIT / f64::from(reads);
    Ok(jobs
        .iter()
        .zip(taken)
        .map(|(job, taken)| Line {
            case: job.case,
            machine: job.machine.clone(),
            latency_ms: job.latency_ms,
            elapsed_s: Spread::of(taken.iter().map(|time| time.0.as_secs_f64())).median * scale,
            sys_s: Spread::of(taken.iter().map(|time| time.1.as_secs_f64())).median * scale,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ways_one_text() {
        for size in [(2, 20), PROPOSAL, (3, 1)] {
            let mut machine = Synthetic::new(size);
            let (mut text, mut memory) = (String::new(), Vec::new());
            let mut renderer = machine_stat::Renderer::default();
            for turn in 0..20 {
                machine.advance();
                let moved = if turn == 0 {
                    machine.walk();
                    Moved::Any
                } else {
                    machine.shortcut();
                    Moved::Only(&machine.active)
                };
                core_fmt(&machine.stat, &mut text).unwrap();
                let length = seqtext_afresh(&machine.stat, &mut memory);
                assert_eq!(std::str::from_utf8(&memory[..length]).unwrap(), text);
                let rendered = renderer.render(&machine.stat, moved);
                assert_eq!(std::str::from_utf8(rendered).unwrap(), text);
                assert_eq!(machine.stat.irqs, machine.counts);
            }
        }
    }

    #[test]
    fn counts_are_reused_until_they_are_too_old() {
        let mut never = Age {
            latency: Duration::ZERO,
            read: None,
        };
        assert!(never.is_over() && never.is_over());
        let mut long = Age {
            latency: Duration::from_secs(1000),
            read: None,
        };
        assert!(long.is_over() && !long.is_over());
    }

    #[test]
    fn a_row_has_what_was_promised() {
        let mut jobs = synthetic_jobs((2, 20), &[0, 10]);
        let rows = measure(&mut jobs, 100, 1).unwrap();
        assert_eq!(rows.len(), 6);
        let json = serde_json::to_value(&rows[0]).unwrap();
        assert_eq!(json["case"], "core-fmt");
        assert_eq!(json["machine"], "2x20");
        assert_eq!(json["latency_ms"], 0);
        assert!(json["elapsed_s"].is_number() && json["sys_s"].is_number());
        assert_eq!(rows[0].cells().len(), Line::COLUMNS.len());
    }
}
