//! `fastproc bench counters`: the cost of reading the machine's counters, which grows with its CPUs and interrupts.

use std::{fs::File, io::Read as _, time::Duration};

use fastproc::counters::{Counters, Options, Want};
use serde::Serialize;

use super::{
    measure::{Case, Failure, Measured, Plan, measure},
    report::{Column, Report, Row, Skipped, Spread, column, four_decimals},
};

/// The kernel's texts: each open, read to its end and closed, like every program that has no descriptor left of it.
const TEXTS: [(&str, &str); 2] = [
    ("proc-stat", "/proc/stat"),
    ("proc-interrupts", "/proc/interrupts"),
];
/// How old interrupt counts may be in the case that lets them.
const LATENCY: Duration = Duration::from_secs(3600);

/// Arguments of `fastproc bench counters`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Stay on this CPU.
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Head {
    possible_cpus: u32,
    /// Numbers in the row `intr` of `/proc/stat`.
    interrupt_numbers: usize,
}

#[derive(Debug, Serialize)]
struct Look {
    case: &'static str,
    cpu_us: Spread,
    /// How many times cheaper than `/proc/stat`.
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_proc_stat: f64,
    /// How many times cheaper than `/proc/interrupts`.
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_proc_interrupts: f64,
}

impl Row for Look {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("CPU us", 0),
        column("min", 1),
        column("max", 1),
        column("times cheaper than stat", 0),
        column("than interrupts", 0),
    ];

    fn cells(&self) -> Vec<String> {
        let us = |value: f64| format!("{value:.2}");
        vec![
            self.case.to_owned(),
            us(self.cpu_us.median),
            us(self.cpu_us.min),
            us(self.cpu_us.max),
            us(self.ratio_vs_proc_stat),
            us(self.ratio_vs_proc_interrupts),
        ]
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let exact = Counters::open()?;
    let kept = Options::new().stat_irqs_latency(LATENCY).open()?;
    let mut skipped = Vec::new();
    if let Some(error) = exact.unavailable() {
        let reason = error.to_string();
        skipped.extend(["stat", "stat-kept"].map(|case| Skipped {
            case,
            reason: reason.clone(),
        }));
    }
    let mut readers = [("stat", exact.reader()), ("stat-kept", kept.reader())];
    let mut cases: Vec<Case<'_>> = Vec::new();
    for (name, path) in TEXTS {
        let mut buffer = Vec::new();
        cases.push(Case {
            name,
            run: Box::new(move || {
                buffer.clear();
                File::open(path)?.read_to_end(&mut buffer)?;
                Ok(usize::from(!buffer.is_empty()))
            }),
        });
    }
    if skipped.is_empty() {
        for (name, reader) in &mut readers {
            cases.push(Case {
                name,
                run: Box::new(|| {
                    let sample = reader.collect(Want::STAT)?;
                    Ok(sample.stat.irqs.len().min(1))
                }),
            });
        }
    }
    let plan = Plan {
        warm_up: 2,
        rounds: args.rounds,
        prime: 1,
        repeat: 3,
        cpu: args.cpu,
    };
    let measured = measure(&mut cases, plan, |_| Ok(()), || ())?;
    drop(cases);
    let text = std::fs::read_to_string("/proc/stat")?;
    let numbers = text.lines().find_map(|line| line.strip_prefix("intr "));
    let head = Head {
        possible_cpus: fastproc::Host::read()?.possible_cpus,
        // The first is their sum.
        interrupt_numbers: numbers.map_or(0, |line| line.split(' ').count() - 1),
    };
    report(&measured, head, skipped)?.print("One reading of the counters", args.json)?;
    Ok(())
}

fn report(
    measured: &[Measured],
    head: Head,
    skipped: Vec<Skipped>,
) -> Result<Report<Head, Look>, Failure> {
    let us = |name: &str| {
        let case = measured.iter().find(|case| case.name == name);
        case.map(|case| case.cpu_us().median)
            .ok_or_else(|| format!("{name} was not measured"))
    };
    let [stat, interrupts] = [us(TEXTS[0].0)?, us(TEXTS[1].0)?];
    let rows = measured.iter().map(|case| {
        let cpu_us = case.cpu_us();
        Look {
            case: case.name,
            cpu_us,
            ratio_vs_proc_stat: stat / cpu_us.median,
            ratio_vs_proc_interrupts: interrupts / cpu_us.median,
        }
    });
    Ok(Report::new("counters", head, rows.collect(), skipped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Round;

    #[test]
    fn each_case_is_compared_with_both_texts() {
        let measured = |name, us| Measured {
            name,
            rounds: vec![Round {
                cpu: Duration::from_micros(us),
                wall: Duration::from_micros(us),
                count: 1,
            }],
            cold: Vec::new(),
        };
        let head = || Head {
            possible_cpus: 255,
            interrupt_numbers: 4000,
        };
        let all = [
            measured("proc-stat", 800),
            measured("proc-interrupts", 400),
            measured("stat", 8),
        ];
        let report = report(&all, head(), Vec::new()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(json["interrupt_numbers"], 4000);
        assert_eq!(json["rows"][0]["ratio_vs_proc_stat"], 1.0);
        assert_eq!(json["rows"][2]["case"], "stat");
        assert_eq!(json["rows"][2]["ratio_vs_proc_stat"], 100.0);
        assert_eq!(json["rows"][2]["ratio_vs_proc_interrupts"], 50.0);
        assert!(super::report(&all[1..], head(), Vec::new()).is_err());
    }
}
