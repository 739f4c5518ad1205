//! `fastproc bench stat`: what one read of the machine's counters costs.

use std::{fs::File, io::Read, os::unix::fs::FileExt};

use fastproc::counters::{Counters, Options, Reader, Want, WhyText};
use serde::Serialize;

use super::{
    measure::{Case, Failure, Measured, Plan, measure},
    report::{Column, Report, Row, Skipped, Spread, column, four_decimals},
};

/// Arguments of `fastproc bench stat`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Read this often in each round.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    reads: u32,
    /// Interrupt counts may be this old, in milliseconds. 0: they are exact.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    stat_irqs_latency_ms: u64,
    /// Stay on this CPU.
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

const STAT: &str = "/proc/stat";
const VMSTAT: &str = "/proc/vmstat";

/// What is read: one file, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Files {
    name: &'static str,
    paths: &'static [&'static str],
}

const FILES: [Files; 3] = [
    Files {
        name: "stat",
        paths: &[STAT],
    },
    Files {
        name: "vmstat",
        paths: &[VMSTAT],
    },
    Files {
        name: "both",
        paths: &[STAT, VMSTAT],
    },
];

#[derive(Debug, Serialize)]
struct Head {
    /// Lines of both files that came from the kernel's text all the same.
    lines_from_text: usize,
    /// An empty program's run: no collection can cost less.
    #[serde(skip_serializing_if = "Option::is_none")]
    empty_run_cpu_us: Option<Spread>,
}

#[derive(Debug, Serialize)]
struct Line {
    case: &'static str,
    file: &'static str,
    cpu_us_per_read: Spread,
    cold_cpu_us_per_read: Spread,
    /// How many times cheaper than opening, reading and closing: its median divided by this one's.
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_kernel_open: f64,
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_kernel_pread: f64,
}

impl Row for Line {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("file", 0),
        column("CPU us/read", 0),
        column("min", 2),
        column("max", 2),
        column("x open", 0),
        column("x pread", 0),
    ];

    fn cells(&self) -> Vec<String> {
        let us = |value: f64| format!("{value:.2}");
        let cpu = self.cpu_us_per_read;
        vec![
            self.case.to_owned(),
            self.file.to_owned(),
            us(cpu.median),
            us(cpu.min),
            us(cpu.max),
            format!("{:.1}", self.ratio_vs_kernel_open),
            format!("{:.1}", self.ratio_vs_kernel_pread),
        ]
    }
}

/// A file read as most programs do, into memory that is kept.
fn open_read_close(path: &str, memory: &mut [u8]) -> Result<(), Failure> {
    let mut file = File::open(path)?;
    while file.read(memory)? > 0 {}
    Ok(())
}

/// A file read through a descriptor that stays open, to its end.
fn pread(file: &File, memory: &mut [u8]) -> Result<(), Failure> {
    let mut at = 0;
    loop {
        match file.read_at(memory, at)? {
            0 => return Ok(()),
            read => at += read as u64,
        }
    }
}

fn read_ours(reader: &mut Reader, files: Files) -> Result<usize, Failure> {
    Ok(match files.name {
        "stat" => reader.stat()?.len(),
        "vmstat" => reader.vmstat()?.len(),
        _ => {
            let (stat, vmstat) = reader.stat_and_vmstat()?;
            stat.len() + vmstat.len()
        }
    })
}

/// Does it `reads` times.
fn repeat(reads: u32, mut read: impl FnMut() -> Result<(), Failure>) -> Result<usize, Failure> {
    for _ in 0..reads {
        read()?;
    }
    Ok(reads as usize)
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let latency = std::time::Duration::from_millis(args.stat_irqs_latency_ms);
    let counters = Options::new().stat_irqs_latency(latency).open()?;
    let reads = args.reads;
    let opened: Vec<Vec<File>> = FILES
        .iter()
        .map(|files| files.paths.iter().map(File::open).collect())
        .collect::<Result<_, _>>()?;
    let mut memory: Vec<Vec<u8>> = vec![vec![0; 1 << 20]; 2 * FILES.len()];
    let mut readers: Vec<Reader> = FILES.iter().map(|_| counters.reader()).collect();
    let mut empty = counters.reader();

    let mut cases = Vec::new();
    let mut of = Vec::new();
    let (open_memory, pread_memory) = memory.split_at_mut(FILES.len());
    for (files, memory) in FILES.into_iter().zip(open_memory) {
        of.push(files.name);
        cases.push(Case {
            name: "kernel-open",
            run: Box::new(move || {
                repeat(reads, || {
                    files
                        .paths
                        .iter()
                        .try_for_each(|path| open_read_close(path, memory))
                })
            }),
        });
    }
    for ((files, opened), memory) in FILES.into_iter().zip(&opened).zip(pread_memory) {
        of.push(files.name);
        cases.push(Case {
            name: "kernel-pread",
            run: Box::new(move || {
                repeat(reads, || {
                    opened.iter().try_for_each(|file| pread(file, memory))
                })
            }),
        });
    }
    let mut skipped = Vec::new();
    match counters.unavailable() {
        None => {
            for (files, reader) in FILES.into_iter().zip(&mut readers) {
                of.push(files.name);
                cases.push(Case {
                    name: "fastproc",
                    run: Box::new(move || repeat(reads, || read_ours(reader, files).map(drop))),
                });
            }
            cases.push(Case {
                name: "empty-run",
                run: Box::new(|| repeat(reads, || Ok(empty.collect(Want::empty()).map(drop)?))),
            });
        }
        Some(reason) => skipped.push(Skipped {
            case: "fastproc",
            reason: reason.to_string(),
        }),
    }
    let plan = Plan {
        warm_up: 2,
        rounds: args.rounds,
        repeat: 1,
        cpu: args.cpu,
    };
    let measured = measure(&mut cases, plan, || ())?;
    drop(cases);
    report(&measured, &of, &counters, skipped)
        .print("One read of the machine's counters", args.json)?;
    Ok(())
}

fn report(
    measured: &[Measured],
    files: &[&'static str],
    counters: &Counters,
    skipped: Vec<Skipped>,
) -> Report<Head, Line> {
    let kernel = counters.report();
    let head = Head {
        lines_from_text: kernel.from_text().count(),
        empty_run_cpu_us: measured
            .iter()
            .find(|case| case.name == "empty-run")
            .map(Measured::cpu_us),
    };
    let mut report = Report::new("stat", head, rows(measured, files), skipped);
    let computed = kernel
        .from_text()
        .filter(|line| line.route == fastproc::counters::Route::Text(WhyText::Computed));
    let computed: Vec<&str> = computed.map(|line| line.name.as_str()).collect();
    if !computed.is_empty() {
        report.note(format!(
            "from the kernel's text, at most {} ms old: {}",
            counters.text_latency().as_millis(),
            computed.join(", ")
        ));
    }
    report
}

fn rows(measured: &[Measured], files: &[&'static str]) -> Vec<Line> {
    let median = |case: &str, file: &str| {
        measured
            .iter()
            .zip(files)
            .find(|(measured, of)| measured.name == case && **of == file)
            .map_or(f64::NAN, |(measured, _)| measured.cpu_us().median)
    };
    measured
        .iter()
        .zip(files)
        .map(|(case, file)| {
            let cpu = case.cpu_us();
            Line {
                case: case.name,
                file,
                cpu_us_per_read: cpu,
                cold_cpu_us_per_read: case.cold_cpu_us(),
                ratio_vs_kernel_open: median("kernel-open", file) / cpu.median,
                ratio_vs_kernel_pread: median("kernel-pread", file) / cpu.median,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::Round;

    #[test]
    fn a_row_has_what_was_promised() {
        let measured = |name, us| Measured {
            name,
            rounds: vec![
                Round {
                    cpu: Duration::from_micros(us),
                    wall: Duration::from_micros(us),
                    count: 10,
                };
                3
            ],
            cold: Vec::new(),
        };
        let measured = [
            measured("kernel-open", 400),
            measured("kernel-pread", 200),
            measured("fastproc", 20),
        ];
        let rows = rows(&measured, &["both", "both", "both"]);
        let json = serde_json::to_value(&rows[2]).unwrap();
        assert_eq!(json["case"], "fastproc");
        assert_eq!(json["file"], "both");
        assert_eq!(
            json["cpu_us_per_read"],
            serde_json::json!({"min": 2.0, "median": 2.0, "max": 2.0})
        );
        assert_eq!(json["ratio_vs_kernel_open"], 20.0);
        assert_eq!(json["ratio_vs_kernel_pread"], 10.0);
        assert_eq!(rows[2].cells().len(), Line::COLUMNS.len());
    }

    #[test]
    fn files_are_read_to_their_end() {
        let mut memory = vec![0; 64];
        open_read_close(STAT, &mut memory).unwrap();
        pread(&File::open(VMSTAT).unwrap(), &mut memory).unwrap();
    }
}
