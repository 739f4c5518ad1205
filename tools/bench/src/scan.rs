//! `fastproc bench scan`: the cost of reading every process once, in each way.

use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::{
    idle::Idle,
    measure::{Case, Failure, Measured, Plan, measure},
    report::{Column, Report, Row, Skipped, Spread, column, four_decimals, progress},
    scan_fastproc::{Cost, Ours, Ran, WAYS, Way},
    scan_proc::{Best, ThreeFiles},
};

/// The case that the others are compared with.
const BASELINE: &str = "proc-3files";
const BEST: &str = "proc-best";

/// Arguments of `fastproc bench scan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many idle processes first, and end them afterwards. 0: measure the machine as it is.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    processes: usize,
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure only these cases, and the baseline.
    #[arg(long, value_name = "CASE", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    cases: Vec<String>,
    /// Stay on this CPU.
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Head {
    processes: usize,
    /// The cost to start each source of fastproc, and its memory.
    start: Vec<Cost>,
}

#[derive(Debug, Serialize)]
struct Scan {
    case: &'static str,
    cpu_us_per_process: Spread,
    wall_us_per_process: Spread,
    /// The run right after the other cases, with cold caches.
    cold_cpu_us_per_process: Spread,
    /// How many times cheaper than the baseline: its median CPU time divided by this one's.
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_proc_3files: f64,
    /// The same for the runs with cold caches.
    #[serde(serialize_with = "four_decimals")]
    cold_ratio_vs_proc_3files: f64,
    processes_read: usize,
}

impl Row for Scan {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("CPU us/process", 0),
        column("min", 3),
        column("max", 3),
        column("wall us/process", 1),
        column("min", 4),
        column("max", 4),
        column("times cheaper", 0),
        column("cold us", 1),
        column("cold times", 1),
        column("processes", 2),
    ];

    fn cells(&self) -> Vec<String> {
        let us = |value: f64| format!("{value:.3}");
        let (cpu, wall) = (self.cpu_us_per_process, self.wall_us_per_process);
        vec![
            self.case.to_owned(),
            us(cpu.median),
            us(cpu.min),
            us(cpu.max),
            us(wall.median),
            us(wall.min),
            us(wall.max),
            format!("{:.2}", self.ratio_vs_proc_3files),
            us(self.cold_cpu_us_per_process.median),
            format!("{:.2}", self.cold_ratio_vs_proc_3files),
            self.processes_read.to_string(),
        ]
    }
}

/// The names of all cases.
fn names() -> impl Iterator<Item = &'static str> {
    let ours = WAYS.into_iter().map(|way| way.case);
    [BASELINE, BEST].into_iter().chain(ours)
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    // Before anything is mapped or opened, because each of them gets a copy.
    let idle = Idle::start_some(args.processes)?;

    let wanted =
        |case: &str| args.cases.is_empty() || args.cases.iter().any(|wanted| wanted == case);
    let mut three_files = ThreeFiles::open()?;
    let mut skipped = Vec::new();
    let mut best = match Best::open() {
        Ok(best) => wanted(BEST).then_some(best),
        Err(error) => {
            skipped.push(Skipped {
                case: BEST,
                reason: error.to_string(),
            });
            None
        }
    };
    let mut ours = Vec::new();
    let usual = |way: &Way| way.is_usual() || !args.cases.is_empty();
    for way in WAYS
        .into_iter()
        .filter(|way| wanted(way.case) && usual(way))
    {
        if way.ran != Ran::None && idle.is_none() {
            skipped.push(Skipped {
                case: way.case,
                reason: "there are no idle processes to wake (--processes)".to_owned(),
            });
            continue;
        }
        match Ours::open(way, args.processes) {
            Ok(way) => ours.push(way),
            Err(error) => skipped.push(Skipped {
                case: way.case,
                reason: error.to_string(),
            }),
        }
    }
    let start = ours.iter().filter_map(Ours::cost).collect();
    let mut cases = vec![Case {
        name: BASELINE,
        run: Box::new(|| three_files.scan()),
    }];
    if let Some(best) = &mut best {
        cases.push(Case {
            name: BEST,
            run: Box::new(|| best.scan()),
        });
    }

    for way in &mut ours {
        cases.push(Case {
            name: way.case,
            run: Box::new(|| way.scan()),
        });
    }

    let plan = Plan {
        warm_up: 2,
        rounds: args.rounds,
        // A record is kept if its process has not run for two snapshots.
        prime: 3,
        repeat: 5,
        cpu: args.cpu,
    };
    let progress = progress(u64::from(plan.runs()) * cases.len() as u64, "runs");
    let ran = |case: &str| WAYS.iter().find(|way| way.case == case)?.ran.one_in();
    let wake = |case| match (&idle, ran(case)) {
        (Some(idle), Some(one_in)) => Ok(idle.wake(one_in)?),
        _ => Ok(()),
    };
    let measured = measure(&mut cases, plan, wake, || progress.inc(1))?;
    progress.finish_and_clear();
    drop(cases);

    let expected = idle.map_or(0, |idle| idle.count());
    if let Some(case) = measured.iter().find(|case| case.count() < expected) {
        let (name, count) = (case.name, case.count());
        return Err(format!(
            "{name} read {count} processes where {expected} idle ones are: is /proc mounted with hidepid?"
        )
        .into());
    }
    let mut report = report(&measured, skipped, start)?;
    if let Some(note) = best.as_ref().and_then(Best::not_kept) {
        report.note(format!("proc-best: {note}"));
    }
    report.print("A snapshot of every process", args.json)?;
    Ok(())
}

fn report(
    measured: &[Measured],
    skipped: Vec<Skipped>,
    start: Vec<Cost>,
) -> Result<Report<Head, Scan>, Failure> {
    let baseline = measured
        .iter()
        .find(|case| case.name == BASELINE)
        .ok_or("there is nothing to compare with")?;
    let (cpu, cold) = (baseline.cpu_us().median, baseline.cold_cpu_us().median);
    let row = |case: &Measured| Scan {
        case: case.name,
        cpu_us_per_process: case.cpu_us(),
        wall_us_per_process: case.wall_us(),
        cold_cpu_us_per_process: case.cold_cpu_us(),
        ratio_vs_proc_3files: cpu / case.cpu_us().median,
        cold_ratio_vs_proc_3files: cold / case.cold_cpu_us().median,
        processes_read: case.count(),
    };
    let head = Head {
        processes: baseline.count(),
        start,
    };
    Ok(Report::new(
        "scan",
        head,
        measured.iter().map(row).collect(),
        skipped,
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::Round;

    fn measured(name: &'static str, micros: u64) -> Measured {
        let round = Round {
            cpu: Duration::from_micros(micros),
            wall: Duration::from_micros(2 * micros),
            count: 100,
        };
        Measured {
            name,
            rounds: vec![round; 3],
            cold: vec![round; 3],
        }
    }

    #[test]
    fn the_json_is_what_was_promised() {
        let report = report(
            &[measured("proc-3files", 3_000), measured("bpf-lean", 10)],
            Vec::new(),
            Vec::new(),
        )
        .unwrap();
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        let keys = |value: &serde_json::Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            keys(&json),
            ["bench", "cpus", "kernel", "processes", "rows", "start"]
        );
        assert_eq!(json["bench"], "scan");
        assert_eq!(json["processes"], 100);
        let row = &json["rows"][1];
        assert_eq!(row["case"], "bpf-lean");
        assert_eq!(
            row["cpu_us_per_process"],
            serde_json::json!({"min": 0.1, "median": 0.1, "max": 0.1})
        );
        assert_eq!(
            row["wall_us_per_process"],
            serde_json::json!({"min": 0.2, "median": 0.2, "max": 0.2})
        );
        assert_eq!(row["ratio_vs_proc_3files"], 300.0);
        assert_eq!(json["rows"][0]["ratio_vs_proc_3files"], 1.0);
        assert_eq!(row["processes_read"], 100);
    }

    #[test]
    fn without_a_baseline_there_is_no_report() {
        assert!(report(&[measured("bpf-lean", 10)], Vec::new(), Vec::new()).is_err());
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let report = report(&[measured("proc-3files", 3_000)], Vec::new(), Vec::new()).unwrap();
        assert!(report.table("t", 200).contains("proc-3files"));
        assert_eq!(Scan::COLUMNS.len(), 11);
    }
}
