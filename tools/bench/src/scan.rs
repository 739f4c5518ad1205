//! `fastproc bench scan`: the cost of reading every process once, in each way.

use clap::builder::PossibleValuesParser;
use fastproc::{Collector, Fields, SourceKind};
use serde_json::json;

use super::{
    idle::Processes,
    measure::{Case, Common, Failure, Measured, Plan, measure, named},
    report::{Column, Report, column},
    scan_proc::ThreeFiles,
};

/// The case that the others are compared with.
const BASELINE: &str = "proc-3files";

const COLUMNS: [Column; 7] = [
    column("case", "case", 0, 0),
    column("cpu_us_per_process", "CPU us/process", 3, 0),
    column("wall_us_per_process", "wall us/process", 3, 1),
    // How many times cheaper than the baseline: its median CPU time divided by this one's.
    column("ratio_vs_proc_3files", "times cheaper", 2, 0),
    // The run right after the other cases, with cold caches.
    column("cold_cpu_us_per_process", "cold us", 3, 1),
    column("cold_ratio_vs_proc_3files", "cold times", 2, 1),
    column("processes_read", "processes", 0, 2),
];

/// Arguments of `fastproc bench scan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    processes: Processes,
    /// Measure only these cases, and the baseline.
    #[arg(long, value_name = "CASE", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    cases: Vec<String>,
    /// Stay on this CPU.
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
}

/// One of the library's ways to read every process.
#[derive(Clone, Copy, Debug)]
struct Way {
    case: &'static str,
    source: SourceKind,
    fields: Fields,
    /// One in this many idle processes runs for a moment before each snapshot: records of the others may be kept. 0: none
    /// does.
    ran: usize,
    /// Whether no records are kept, so that all are read again.
    reads_all: bool,
}

const fn way(case: &'static str, source: SourceKind, fields: Fields, ran: usize) -> Way {
    Way {
        case,
        source,
        fields,
        ran,
        reads_all: false,
    }
}

impl Way {
    const fn reads_all(self) -> Self {
        Self {
            reads_all: true,
            ..self
        }
    }

    /// Whether it is measured if no case is named.
    fn is_usual(&self) -> bool {
        !self.fields.is_empty() && !self.reads_all
    }
}

pub const FULL: Fields = Fields::THREE_FILES;
pub const LEAN: Fields = Fields::TOP;
pub const BPF: SourceKind = SourceKind::Bpf;

const WAYS: [Way; 13] = [
    way("bpf-full", BPF, FULL, 0),
    way("bpf-full-tenth-ran", BPF, FULL, 10),
    way("bpf-full-all-ran", BPF, FULL, 1),
    way("bpf-lean", BPF, LEAN, 0),
    way("bpf-lean-tenth-ran", BPF, LEAN, 10),
    way("bpf-lean-all-ran", BPF, LEAN, 1),
    // Gains and costs of keeping records. Measured only if named.
    way("bpf-full-reads-all", BPF, FULL, 0).reads_all(),
    way("bpf-full-all-ran-reads-all", BPF, FULL, 1).reads_all(),
    way("bpf-lean-reads-all", BPF, LEAN, 0).reads_all(),
    way("bpf-lean-all-ran-reads-all", BPF, LEAN, 1).reads_all(),
    // Only the identities: the least cost of walking the list. Measured only if named.
    way("bpf-identity", BPF, Fields::empty(), 0),
    way("bpf-iter-full", SourceKind::BpfIter, FULL, 0),
    way("procfs", SourceKind::Procfs, FULL, 0),
];

/// The names of all cases.
fn names() -> impl Iterator<Item = &'static str> {
    [BASELINE]
        .into_iter()
        .chain(WAYS.into_iter().map(|way| way.case))
}

/// An open way.
struct Ours {
    way: Way,
    collector: Collector,
    /// How many processes ran before each snapshot.
    woken: usize,
    /// Whether most of them seemed not to have run before the last snapshot.
    seemed_to_rest: bool,
}

impl Ours {
    /// Opens its source, beside this many idle processes.
    fn open(way: Way, idle: usize) -> Result<Self, Failure> {
        if way.ran > 0 && idle == 0 {
            return Err("there are no idle processes to wake (--processes)".into());
        }
        let mut builder = Collector::builder()
            .source(Some(way.source))
            .fields(way.fields);
        if way.reads_all {
            builder = builder.keep_records(false);
        }
        Ok(Self {
            way,
            collector: builder.open()?,
            woken: idle.checked_div(way.ran).unwrap_or(0),
            seemed_to_rest: false,
        })
    }

    /// Takes a snapshot as any caller does, including the processes that it reads from `/proc` every few seconds.
    fn scan(&mut self) -> Result<usize, Failure> {
        let snapshot = self.collector.snapshot()?;
        let (count, rested) = (snapshot.len(), snapshot.stats().reused_actions);
        let ran = count.saturating_sub(rested as usize);
        // A walk that is repeated because the pool is full follows one that has met them; that does not happen for two
        // snapshots in a row.
        let seems_to_rest = ran < self.woken / 2;
        if std::mem::replace(&mut self.seemed_to_rest, seems_to_rest) && seems_to_rest {
            let woken = self.woken;
            return Err(format!("of {woken} idle processes that were woken {ran} have run").into());
        }
        Ok(count)
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    // Before anything is mapped or opened, because each of them gets a copy.
    let idle = args.processes.start()?;
    let expected = idle.count();
    let mut report = Report::new("scan", "A snapshot of every process", &COLUMNS);

    let is_named = |case: &str| args.cases.iter().any(|named| named == case);
    let mut three_files = ThreeFiles::open()?;
    let mut ours = Vec::new();
    for way in WAYS {
        if is_named(way.case) || args.cases.is_empty() && way.is_usual() {
            match Ours::open(way, expected) {
                Ok(way) => ours.push(way),
                Err(error) => report.skip(way.case, &error),
            }
        }
    }
    let mut cases = vec![Case::new(BASELINE, || three_files.scan())];
    for way in &mut ours {
        cases.push(Case::new(way.way.case, || way.scan()));
    }

    let plan = Plan {
        warm_up: 2,
        rounds: common.rounds(11),
        // A record is kept if its process has not run for two snapshots.
        prime: 3,
        repeat: 5,
        cpu: args.cpu,
    };
    let wake = |case| {
        let way = WAYS.iter().find(|way| way.case == case);
        let one_in = way.map(|way| way.ran as u32).filter(|&ran| ran > 0);
        Ok(idle.wake(one_in)?)
    };
    let measured = measure(&mut cases, plan, wake)?;
    drop(cases);

    if let Some(case) = measured.iter().find(|case| case.count() < expected) {
        let (name, count) = (case.name, case.count());
        return Err(format!(
            "{name} read {count} processes where {expected} idle ones are: is /proc mounted with hidepid?"
        )
        .into());
    }
    add_rows(&mut report, &measured)?;
    let processes = named(&measured, BASELINE)?.count();
    report.head(json!({"processes": processes}));
    Ok(report.print(common.json)?)
}

fn add_rows(report: &mut Report, measured: &[Measured]) -> Result<(), Failure> {
    let baseline = named(measured, BASELINE)?;
    for case in measured {
        let (cpu, cold) = (case.cpu_us(), case.cold_cpu_us());
        report.row([
            case.name.into(),
            cpu.into(),
            case.wall_us().into(),
            (baseline.cpu_us().median / cpu.median).into(),
            cold.into(),
            (baseline.cold_cpu_us().median / cold.median).into(),
            case.count().into(),
        ]);
    }
    Ok(())
}
