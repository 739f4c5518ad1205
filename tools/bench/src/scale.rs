//! `fastproc bench scale`: the cost of a process as their number grows, and whether everything still works.

mod checks;
mod crowd;
mod limits;
mod threads;

use std::{cell::RefCell, fs, hint::black_box, path::PathBuf, time::Duration};

use fastproc::{Collector, Fields, SourceKind};
use rustix::time::ClockId;
use serde::Serialize;

use self::{checks::Checked, crowd::Crowd, limits::Limits, threads::Threads};
use crate::{
    measure::{Case, Failure, Plan, clock, measure},
    report::{Column, Report, Row, Spread, column},
};

/// Arguments of `fastproc bench scale`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure with this many processes, one number after the other. As many as fit into three quarters of the memory have
    /// memory of their own; the others share that of their parent.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1_000, 10_000, 30_000, 100_000])]
    processes: Vec<usize>,
    /// Then end them, and measure with this many threads.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1_000, 100_000])]
    threads: Vec<usize>,
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Write the JSON object to this file, too.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Head {
    /// Bytes of kernel memory and page tables of an idle process with memory of its own.
    bytes_of_process: u64,
    threads: Vec<Threads>,
}

#[derive(Debug, Serialize)]
struct Size {
    case: String,
    /// Those that were read.
    processes: usize,
    /// Idle ones with memory of their own.
    own_memory: usize,
    /// CPU time of opening, for the fields of `top`.
    open_ms: f64,
    /// CPU time of the first snapshot after it.
    first_ms: f64,
    /// Bytes that the kernel and the reader share.
    array_bytes: u64,
    lean_us: Spread,
    lean_cold_us: Spread,
    full_us: Spread,
    full_cold_us: Spread,
    /// The longest time for which a walk of every field kept its CPU: of each walk, and the spread of these.
    section_us: Spread,
    /// The longest section that surely ran: of each walk, the longest less all time that the walk had no CPU, because another
    /// task or another machine ran on it.
    section_ran_us: f64,
    #[serde(flatten)]
    checked: Checked,
}

impl Row for Size {
    const COLUMNS: &'static [Column] = &[
        column("processes", 0),
        column("own memory", 3),
        column("open ms", 2),
        column("first ms", 1),
        column("arrays MB", 1),
        column("lean us", 0),
        column("cold", 0),
        column("full us", 0),
        column("cold", 0),
        column("section us", 1),
        column("most", 2),
        column("ran", 2),
        column("ps us", 0),
        column("ps(1) us", 2),
        column("service us", 2),
        column("top us", 2),
        column("scrape us", 2),
        column("values verified", 3),
    ];

    fn cells(&self) -> Vec<String> {
        let us = |value: f64| format!("{value:.3}");
        let each = |ms: f64| us(ms * 1e3 / self.processes as f64);
        vec![
            self.processes.to_string(),
            self.own_memory.to_string(),
            us(self.open_ms),
            us(self.first_ms),
            format!("{:.1}", self.array_bytes as f64 / 1e6),
            us(self.lean_us.median),
            us(self.lean_cold_us.median),
            us(self.full_us.median),
            us(self.full_cold_us.median),
            format!("{:.0}", self.section_us.median),
            format!("{:.0}", self.section_us.max),
            format!("{:.0}", self.section_ran_us),
            each(self.checked.ps_ms.median),
            each(self.checked.procps_ms),
            each(self.checked.service_ms),
            each(self.checked.top_ms),
            each(self.checked.scrape_ms),
            self.checked.verified.to_string(),
        ]
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let most = args.processes.iter().chain(&args.threads).copied().max();
    let _limits = Limits::raise(most.unwrap_or(0))?;
    let mut rows = Vec::new();
    let mut crowd = Crowd::new()?;
    for &wanted in &args.processes {
        eprintln!("{wanted} processes");
        crowd.grow_to(wanted)?;
        rows.push(size(&crowd, args.rounds)?);
    }
    let bytes_of_process = crowd.bytes_of_process();
    drop(crowd);
    let mut threads = Vec::new();
    for &wanted in &args.threads {
        eprintln!("{wanted} threads");
        threads.push(threads::measure(wanted, args.rounds)?);
    }
    let head = Head {
        bytes_of_process,
        threads,
    };
    let mut report = Report::new("scale", head, rows, Vec::new());
    for note in report
        .head()
        .threads
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
    {
        report.note(note);
    }
    if let Some(path) = &args.output {
        fs::write(path, report.json()? + "\n")?;
    }
    report.print("Cost as the machine fills, for each process", args.json)?;
    Ok(())
}

/// Measures and checks beside the processes that exist now.
fn size(crowd: &Crowd, rounds: u32) -> Result<Size, Failure> {
    let open = |fields| {
        Collector::builder()
            .source(Some(SourceKind::Bpf))
            .fields(fields)
            .open()
    };
    let before = clock(ClockId::ThreadCPUTime);
    let mut lean = open(Fields::TOP)?;
    let opened = clock(ClockId::ThreadCPUTime);
    let processes = crowd.check_snapshot(&lean.snapshot()?)?;
    let first = clock(ClockId::ThreadCPUTime).saturating_sub(opened);
    let arrays = lean.arrays().ok_or("the source has no arrays")?;
    let mut full = open(Fields::THREE_FILES)?;
    let sections = RefCell::new(Sections::default());
    let mut cases = [
        other_work(),
        Case {
            name: "lean",
            run: Box::new(|| Ok(lean.snapshot()?.len())),
        },
        Case {
            name: "full",
            run: Box::new(|| {
                let now = || [ClockId::Monotonic, ClockId::ThreadCPUTime].map(clock);
                let [wall, cpu] = now();
                let count = full.snapshot()?.len();
                let [wall_after, cpu_after] = now();
                let longest = full.longest_section().unwrap_or_default();
                let took = wall_after.saturating_sub(wall);
                let waited = took.saturating_sub(cpu_after.saturating_sub(cpu));
                sections.borrow_mut().add(longest, waited);
                Ok(count)
            }),
        },
    ];
    let measured = measure(&mut cases, plan(rounds), |_| Ok(()), || ())?;
    drop(cases);
    drop((lean, full));
    let [_, lean, full] = &measured[..] else {
        return Err("not every case was measured".into());
    };
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let sections = sections.into_inner();
    Ok(Size {
        case: processes.to_string(),
        processes,
        own_memory: crowd.own_memory(),
        open_ms: ms(opened.saturating_sub(before)),
        first_ms: ms(first),
        array_bytes: arrays.bytes,
        lean_us: lean.cpu_us(),
        lean_cold_us: lean.cold_cpu_us(),
        full_us: full.cpu_us(),
        full_cold_us: full.cold_cpu_us(),
        section_us: Spread::of(sections.longest_us),
        section_ran_us: sections.ran_us,
        checked: checks::check(crowd, rounds)?,
    })
}

/// The longest section of each walk.
#[derive(Debug, Default)]
struct Sections {
    longest_us: Vec<f64>,
    ran_us: f64,
}

impl Sections {
    /// Adds a walk whose thread had no CPU for the time `waited`. The clock of a section runs on meanwhile; the clock of CPU
    /// time does not, not even if the hypervisor runs another machine.
    fn add(&mut self, longest: Duration, waited: Duration) {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        self.longest_us.push(us(longest));
        self.ran_us = self.ran_us.max(us(longest.saturating_sub(waited)));
    }
}

/// The first case: it fills the caches before each first run of another case.
fn other_work<'a>() -> Case<'a> {
    let memory = vec![1_u64; OTHER_WORK / size_of::<u64>()];
    Case {
        name: "other-work",
        run: Box::new(move || {
            let line = 64 / size_of::<u64>();
            black_box(memory.iter().step_by(line).sum::<u64>());
            Ok(1)
        }),
    }
}

/// More memory than the caches have.
const OTHER_WORK: usize = 128 << 20;

fn plan(rounds: u32) -> Plan {
    Plan {
        warm_up: 1,
        rounds,
        // A record is kept if its process has not run for two snapshots.
        prime: 3,
        repeat: 3,
        cpu: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_waited_for_a_cpu_did_not_run_that_long() {
        let us = Duration::from_micros;
        let mut sections = Sections::default();
        sections.add(us(160), us(10));
        sections.add(us(2_900), us(2_750));
        sections.add(us(170), us(900));
        assert_eq!(sections.longest_us, [160.0, 2_900.0, 170.0]);
        assert!((sections.ran_us - 150.0).abs() < 1e-6, "{sections:?}");
        sections.add(us(1_000), us(20));
        assert!((sections.ran_us - 980.0).abs() < 1e-6, "{sections:?}");
    }
}
