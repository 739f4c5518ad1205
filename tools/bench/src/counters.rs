//! `fastproc bench counters`: the cost of reading the machine's counters, which grows with its CPUs and interrupts.

use std::{
    cell::RefCell,
    fs::File,
    io::Read as _,
    time::{Duration, Instant},
};

use fastproc::counters::{Counters, MachineFile, Options, Reader, Want};
use serde::Serialize;

use super::{
    forks::Forks,
    measure::{Case, Failure, Measured, Plan, measure},
    report::{Column, Report, Row, Skipped, Spread, column, four_decimals},
};

/// The kernel's texts, and fastproc's: each text is opened, read to its end and closed, like every program that has no
/// descriptor left of it.
const FILES: [(&str, MachineFile, &str); 4] = [
    ("proc-stat", MachineFile::Stat, "stat-text"),
    (
        "proc-interrupts",
        MachineFile::Interrupts,
        "interrupts-text",
    ),
    ("proc-vmstat", MachineFile::Vmstat, "vmstat-text"),
    ("proc-softirqs", MachineFile::Softirqs, "softirqs-text"),
];
/// The first of them that are always measured.
const USUAL: usize = 2;
/// How old interrupt counts may be in the case that lets them.
const LATENCY: Duration = Duration::from_secs(3600);

/// Arguments of `fastproc bench counters`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Fork this many times a second meanwhile, or as often as the machine can.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    forks: Option<u32>,
    /// Measure the text of every file that fastproc computes, too.
    #[arg(long)]
    every_file: bool,
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
    /// Of the machine, while it was measured.
    forks_per_second: f64,
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
    /// How many times cheaper than the kernel's text of the same file; only of fastproc's texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_vs_own_text: Option<f64>,
}

impl Row for Look {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("CPU us", 0),
        column("min", 1),
        column("max", 1),
        column("times cheaper than stat", 0),
        column("than interrupts", 0),
        column("than its own text", 0),
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
            self.ratio_vs_own_text.map_or_else(|| "-".into(), us),
        ]
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    // Before anything large is mapped, which each child would copy.
    let forks = args.forks.map(Forks::start).transpose()?;
    let files = if args.every_file {
        &FILES[..]
    } else {
        &FILES[..USUAL]
    };
    let exact = Counters::open()?;
    let kept = Options::new().stat_irqs_latency(LATENCY).open()?;
    // One reader for all: readers beyond the number of CPUs share their memory, which costs time.
    let reader = RefCell::new(exact.reader());
    let kept = RefCell::new(kept.reader());
    let mut skipped = Vec::new();
    let mut cases: Vec<Case<'_>> = Vec::new();
    for &(name, file, _) in files {
        let mut buffer = Vec::new();
        cases.push(Case {
            name,
            run: Box::new(move || {
                buffer.clear();
                File::open(file.path())?.read_to_end(&mut buffer)?;
                Ok(usize::from(!buffer.is_empty()))
            }),
        });
    }
    if let Some(error) = exact.unavailable() {
        let reason = error.to_string();
        skipped.extend(["stat", "stat-kept"].map(|case| Skipped {
            case,
            reason: reason.clone(),
        }));
    } else {
        let collect = |name, reader| Case {
            name,
            run: Box::new(move || collect(reader)),
        };
        cases.extend([collect("stat", &reader), collect("stat-kept", &kept)]);
        if args.every_file {
            cases.extend(FILES.iter().map(|&(_, file, name)| {
                let reader = &reader;
                Case {
                    name,
                    run: Box::new(move || Ok(reader.borrow_mut().text(file)?.len().min(1))),
                }
            }));
        }
    }
    let plan = Plan {
        warm_up: 2,
        rounds: args.rounds,
        prime: 1,
        repeat: 3,
        cpu: args.cpu,
    };
    let (before, began) = (number("processes ")?, Instant::now());
    let measured = measure(&mut cases, plan, |_| Ok(()), || ())?;
    let forked = number("processes ")? - before;
    let forks_per_second = forked / began.elapsed().as_secs_f64();
    drop((cases, forks));
    let text = std::fs::read_to_string("/proc/stat")?;
    let numbers = text.lines().find_map(|line| line.strip_prefix("intr "));
    let head = Head {
        possible_cpus: fastproc::Host::read()?.possible_cpus,
        // The first is their sum.
        interrupt_numbers: numbers.map_or(0, |line| line.split(' ').count() - 1),
        forks_per_second: forks_per_second.round(),
    };
    let forks_per_second = head.forks_per_second;
    let mut report = report(&measured, head, skipped)?;
    report.note(format!("{forks_per_second} forks a second"));
    report.print("One reading of the counters", args.json)?;
    Ok(())
}

/// The numbers of `/proc/stat`.
fn collect(reader: &RefCell<Reader>) -> Result<usize, Failure> {
    let mut reader = reader.borrow_mut();
    Ok(reader.collect(Want::STAT)?.stat.irqs.len().min(1))
}

/// A line of `/proc/stat`.
fn number(name: &str) -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let number = text.lines().find_map(|line| line.strip_prefix(name));
    Ok(number
        .ok_or_else(|| format!("/proc/stat has no line '{name}'"))?
        .parse()?)
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
    let [stat, interrupts] = [us(FILES[0].0)?, us(FILES[1].0)?];
    let rows = measured.iter().map(|case| {
        let cpu_us = case.cpu_us();
        let own = FILES.iter().find(|(_, _, ours)| *ours == case.name);
        let own = own.and_then(|(text, ..)| us(text).ok());
        Look {
            case: case.name,
            cpu_us,
            ratio_vs_proc_stat: stat / cpu_us.median,
            ratio_vs_proc_interrupts: interrupts / cpu_us.median,
            ratio_vs_own_text: own.map(|text| text / cpu_us.median),
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
            forks_per_second: 1000.0,
        };
        let all = [
            measured("proc-stat", 800),
            measured("proc-interrupts", 400),
            measured("stat", 8),
            measured("interrupts-text", 100),
        ];
        let report = report(&all, head(), Vec::new()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(json["interrupt_numbers"], 4000);
        assert_eq!(json["rows"][0]["ratio_vs_proc_stat"], 1.0);
        assert_eq!(json["rows"][2]["case"], "stat");
        assert_eq!(json["rows"][2]["ratio_vs_proc_stat"], 100.0);
        assert_eq!(json["rows"][2]["ratio_vs_proc_interrupts"], 50.0);
        assert_eq!(json["rows"][3]["ratio_vs_own_text"], 4.0);
        assert!(super::report(&all[1..], head(), Vec::new()).is_err());
    }
}
