//! `fastproc bench scale`: the cost of a process as their number grows, and whether everything still works.

mod checks;
mod crowd;
mod limits;
mod threads;

use std::{cell::RefCell, fs, hint::black_box, path::PathBuf, time::Duration};

use fastproc::{Collector, Fields, SourceKind};
use rustix::time::ClockId;
use serde_json::json;

use self::{crowd::Crowd, limits::Limits};
use crate::{
    measure::{Case, Common, Failure, Plan, clock, measure, ms, timed},
    report::{Cell, Column, Report, Spread, column},
};

/// Arguments of `fastproc bench scale`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure with this many processes, one number after the other.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1_000, 10_000, 30_000, 100_000])]
    processes: Vec<usize>,
    /// Then end them, and measure with this many threads.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1_000, 100_000])]
    threads: Vec<usize>,
    /// Write the JSON object to this file, too.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const COLUMNS: [Column; 20] = [
    column("case", "", 0, 0),
    // Those that were read.
    column("processes", "processes", 0, 0),
    // CPU time of opening, for the fields of top, and of the first snapshot after it.
    column("open_ms", "open ms", 3, 2),
    column("first_ms", "first ms", 3, 1),
    // That the kernel and the reader share.
    column("array_bytes", "arrays MB", 1, 1).per(1e6),
    column("lean_us", "lean us", 3, 0),
    column("lean_cold_us", "cold", 3, 0),
    column("full_us", "full us", 3, 0),
    column("full_cold_us", "cold", 3, 0),
    // The longest time for which a walk of every field kept its CPU: of each walk, and the spread of these.
    column("section_us", "section us", 0, 1),
    // The longest section that surely ran: of each walk, the longest less all time that the walk had no CPU, because
    // another task or another machine ran on it.
    column("section_ran_us", "ran", 0, 2),
    // CPU time of `fastproc ps --top 20` without a service, and of ps(1) with a few columns.
    column("ps_ms", "ps ms", 1, 0),
    column("procps_ms", "ps(1) ms", 1, 2),
    // CPU time of a snapshot of a connected reader, with the service's part; the service's resident set with its arrays.
    column("service_ms", "service ms", 1, 2),
    column("service_mb", "MB", 1, 4),
    // CPU time of a refresh of `fastproc top`, and its resident set.
    column("top_ms", "top ms", 1, 2),
    column("top_mb", "MB", 1, 4),
    // CPU time of a scrape of `fastproc serve`, and its resident set.
    column("scrape_ms", "scrape ms", 1, 2),
    column("serve_mb", "MB", 1, 4),
    // Values of sampled processes that were compared with the kernel's files, and were right.
    column("verified", "values verified", 0, 3),
];

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let most = args.processes.iter().chain(&args.threads).copied().max();
    let _limits = Limits::raise(most.unwrap_or(0))?;
    let rounds = common.rounds(5);
    let mut report = Report::new(
        "scale",
        "Cost as the machine fills, for each process",
        &COLUMNS,
    );
    let mut crowd = Crowd::new()?;
    for &wanted in &args.processes {
        eprintln!("{wanted} processes");
        crowd.grow_to(wanted)?;
        report.row(size(&crowd, rounds)?);
    }
    let bytes_of_process = crowd.bytes_of_process;
    drop(crowd);
    let mut threads = Vec::new();
    for &wanted in &args.threads {
        eprintln!("{wanted} threads");
        threads.push(threads::measure(&mut report, wanted, rounds)?);
    }
    // Bytes of kernel memory and page tables of an idle process.
    report.head(json!({"bytes_of_process": bytes_of_process, "threads": threads}));
    if let Some(path) = &args.output {
        fs::write(path, format!("{}\n", report.json()))?;
    }
    Ok(report.print(common.json)?)
}

fn open(fields: Fields) -> Result<Collector, fastproc::Error> {
    let builder = Collector::builder().source(Some(SourceKind::Bpf));
    builder.fields(fields).open()
}

/// Measures and checks beside the processes that exist now.
fn size(crowd: &Crowd, rounds: u32) -> Result<Vec<Cell>, Failure> {
    let (lean, opening, _) = timed(|| open(Fields::TOP));
    let mut lean = lean?;
    let before = clock(ClockId::ThreadCPUTime);
    let processes = crowd.check_snapshot(&lean.snapshot()?)?;
    let first = clock(ClockId::ThreadCPUTime).saturating_sub(before);
    let arrays = lean.arrays().ok_or("the source has no arrays")?;
    let mut full = open(Fields::THREE_FILES)?;
    let sections = RefCell::new(Sections::default());
    let mut cases = [
        other_work(),
        Case::new("lean", || Ok(lean.snapshot()?.len())),
        Case::new("full", || {
            let (count, cpu, wall) = timed(|| full.snapshot().map(|snapshot| snapshot.len()));
            let longest = full.longest_section().unwrap_or_default();
            sections.borrow_mut().add(longest, wall.saturating_sub(cpu));
            Ok(count?)
        }),
    ];
    let measured = measure(&mut cases, plan(rounds), |_| Ok(()))?;
    drop(cases);
    drop((lean, full));
    let [_, lean, full] = &measured[..] else {
        return Err("not every case was measured".into());
    };
    let sections = sections.into_inner();
    let mut row: Vec<Cell> = vec![
        processes.to_string().into(),
        processes.into(),
        ms(opening).into(),
        ms(first).into(),
        arrays.bytes.into(),
        lean.cpu_us().into(),
        lean.cold_cpu_us().into(),
        full.cpu_us().into(),
        full.cold_cpu_us().into(),
        Spread::of(sections.longest_us).into(),
        sections.ran_us.into(),
    ];
    row.extend(checks::check(crowd, rounds)?);
    Ok(row)
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
    Case::new("other-work", move || {
        let line = 64 / size_of::<u64>();
        black_box(memory.iter().step_by(line).sum::<u64>());
        Ok(1)
    })
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
