//! `fastproc bench counters`: the cost of reading the machine's counters, which grows with its CPUs and interrupts.

use std::{
    cell::RefCell,
    fs::File,
    io::Read as _,
    time::{Duration, Instant},
};

use fastproc::counters::{Counters, MachineFile, Options, Want};
use serde_json::json;

use super::{
    forks::Forks,
    measure::{Case, Common, Failure, Measured, Plan, measure, named},
    report::{Column, Report, column},
};

/// The kernel's texts, and fastproc's: each text is opened, read to its end and closed, like every program that has no
/// descriptor left of it.
const FILES: [(&str, MachineFile, Option<&str>); 3] = [
    ("proc-stat", MachineFile::Stat, Some("stat-text")),
    ("proc-interrupts", MachineFile::Interrupts, None),
    ("proc-vmstat", MachineFile::Vmstat, Some("vmstat-text")),
];
/// The first of them that are always measured.
const USUAL: usize = 2;
/// How old interrupt counts may be in the case that lets them.
const LATENCY: Duration = Duration::from_secs(3600);

const COLUMNS: [Column; 5] = [
    column("case", "case", 0, 0),
    column("cpu_us", "CPU us", 2, 0),
    column("ratio_vs_proc_stat", "times cheaper than stat", 2, 0),
    column("ratio_vs_proc_interrupts", "than interrupts", 2, 0),
    // Than the kernel's text of the same file; only of fastproc's texts.
    column("ratio_vs_own_text", "than its own text", 2, 0),
];

/// Arguments of `fastproc bench counters`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Fork this many times a second meanwhile, or as often as the machine can.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    forks: Option<u32>,
    /// Measure the text of every file that fastproc computes, too.
    #[arg(long)]
    every_file: bool,
    /// Stay on this CPU.
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    // Before anything large is mapped, which each child would copy.
    let forks = args.forks.map(Forks::start).transpose()?;
    let usual = if args.every_file { FILES.len() } else { USUAL };
    let exact = Counters::open()?;
    let mut kept = Options::new().stat_irqs_latency(LATENCY).open()?;
    let unavailable = exact.unavailable().map(ToString::to_string);
    let reader = RefCell::new(exact);
    let mut report = Report::new("counters", "One reading of the counters", &COLUMNS);
    let mut cases: Vec<Case<'_>> = Vec::new();
    for &(name, file, _) in &FILES[..usual] {
        let mut buffer = Vec::new();
        cases.push(Case::new(name, move || {
            buffer.clear();
            File::open(file.path())?.read_to_end(&mut buffer)?;
            Ok(usize::from(!buffer.is_empty()))
        }));
    }
    if let Some(error) = &unavailable {
        report.skip("stat", error);
        report.skip("stat-kept", error);
    } else {
        // The numbers of /proc/stat.
        cases.push(Case::new("stat", || {
            Ok(reader
                .borrow_mut()
                .collect(Want::STAT)?
                .stat
                .irqs
                .len()
                .min(1))
        }));
        cases.push(Case::new("stat-kept", || {
            Ok(kept.collect(Want::STAT)?.stat.irqs.len().min(1))
        }));
        for (_, file, name) in FILES.into_iter().filter(|_| args.every_file) {
            let Some(name) = name else { continue };
            let reader = &reader;
            cases.push(Case::new(name, move || {
                Ok(reader.borrow_mut().text(file)?.len().min(1))
            }));
        }
    }
    let plan = Plan {
        warm_up: 2,
        rounds: common.rounds(11),
        prime: 1,
        repeat: 3,
        cpu: args.cpu,
    };
    let forked = || Ok::<_, Failure>(line("processes ")?.parse::<f64>()?);
    let (before, began) = (forked()?, Instant::now());
    let measured = measure(&mut cases, plan, |_| Ok(()))?;
    let forks_per_second = ((forked()? - before) / began.elapsed().as_secs_f64()).round();
    drop((cases, forks));
    add_rows(&mut report, &measured)?;
    report.head(json!({
        "possible_cpus": fastproc::Host::read()?.possible_cpus,
        // The first is their sum.
        "interrupt_numbers": line("intr ")?.split(' ').count() - 1,
        // Of the machine, while it was measured.
        "forks_per_second": forks_per_second,
    }));
    report.note(format!("{forks_per_second} forks a second"));
    Ok(report.print(common.json)?)
}

/// The rest of a line of `/proc/stat`.
fn line(name: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    Ok(line
        .ok_or_else(|| format!("/proc/stat has no line '{name}'"))?
        .to_owned())
}

fn add_rows(report: &mut Report, measured: &[Measured]) -> Result<(), Failure> {
    let us = |name| Ok::<_, Failure>(named(measured, name)?.cpu_us().median);
    let (stat, interrupts) = (us(FILES[0].0)?, us(FILES[1].0)?);
    for case in measured {
        let cpu = case.cpu_us();
        let own = FILES.iter().find(|(_, _, ours)| *ours == Some(case.name));
        let own = own.and_then(|(text, ..)| us(text).ok());
        report.row([
            case.name.into(),
            cpu.into(),
            (stat / cpu.median).into(),
            (interrupts / cpu.median).into(),
            own.map(|text| text / cpu.median).into(),
        ]);
    }
    Ok(())
}
