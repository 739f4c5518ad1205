//! `fastproc verify`: compares every field of every process with the kernel's own files.

mod again;
mod aged;
mod cgroups;
mod counters;
mod fields;
mod files;
mod processes;
mod progress;
mod tally;

use std::{
    io::{self, StdoutLock, Write},
    process::ExitCode,
};

use fastproc::SourceKind;
use serde::Serialize;

use crate::{
    output::TextOrJson,
    paragraphs::Counted,
    source::{IrqsLatency, Source},
};

use self::{
    aged::Aged,
    progress::{Outcome, Progress, table},
    tally::{Counts, Example, FieldCounts, Tally},
};

/// Compare all values with the kernel's own files.
///
/// It compares every field of every process, and every counter of the machine. The command reads the kernel's file before,
/// between and after two snapshots. A value that did not change but differs is read again, up to seven times, and counts as wrong
/// if it differs each time. A value that changed is wrong if the kernel cannot have shown it: a counter outside of the range
/// between the kernel's values before and after; or an id, name, list or mask that the kernel showed neither in up to 21 reads
/// nor in thousands more reads of that process alone. Sizes, addresses, signals, context switches and the activity of a thread
/// can have had any value while they changed; they count as in motion, which proves nothing. Whole texts are compared byte for
/// byte.
///
/// With --cgroups it compares the files of all cgroups of version 2 in the same way; the kernel's texts are around each snapshot.
/// With --files it compares every open file with readlink, stat and fdinfo, and the sockets of its network namespace with the
/// tables in /proc/net.
///
/// The exit status is 0 if nothing was wrong, 1 if a value was wrong or nothing was compared, and 2 if the command could not run.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("stat_irqs_latency", |arg| arg.hide(true)))]
#[command(after_help = "Examples:
  fastproc verify
      Compare all processes five times
  fastproc verify --source bpf --rounds 100
      Compare the values of one source a hundred times
  fastproc verify -p 1,$$
      Compare only init and this shell
  fastproc verify --verbose
      Also print how often each field was compared
  fastproc verify --cgroups
      Compare the values of all cgroups
  fastproc verify --files
      Compare the open files and sockets of all processes
  fastproc verify --json | jq '.fields[] | select(.wrong > 0)'
      List the fields that are wrong")]
pub struct Args {
    /// Verify this source.
    #[arg(long, value_enum, default_value_t)]
    source: Source,
    /// Compare all processes N times.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Compare only these processes, and none of the machine's counters.
    #[arg(
        short = 'p',
        long = "pid",
        alias = "pids",
        value_name = "PID,…",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with = "stat_irqs_latency"
    )]
    pids: Option<Vec<u32>>,
    /// Compare the cgroups of version 2 instead.
    #[arg(long, conflicts_with_all = ["pids", "stat_irqs_latency"])]
    cgroups: bool,
    /// Compare the open files and sockets of processes instead.
    #[arg(long, conflicts_with_all = ["cgroups", "stat_irqs_latency"])]
    files: bool,
    /// Also print a table of all fields and lines.
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    latency: IrqsLatency,
    #[command(flatten)]
    output: TextOrJson,
}

#[derive(Serialize)]
struct Report<'t> {
    verify: &'static str,
    kernel: String,
    source: &'static str,
    rounds: u32,
    processes: u64,
    fields: Vec<FieldRow<'t>>,
    texts: Vec<TextRow>,
    counters: Vec<counters::Line>,
    /// The machine's files.
    machine_texts: Vec<TextRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aged_interrupts: Option<Aged>,
    missing: u64,
    /// Values of processes that moved and could have had any value between.
    in_motion: u64,
    compared: u64,
    equal: u64,
    wrong: u64,
    examples: &'t [Example],
    line_examples: Vec<counters::Example>,
}

#[derive(Serialize)]
struct FieldRow<'t> {
    file: &'static str,
    field: &'t str,
    #[serde(flatten)]
    counts: FieldCounts,
}

#[derive(Serialize)]
struct TextRow {
    file: &'static str,
    #[serde(flatten)]
    counts: Counts,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, crate::Failure> {
    if args.cgroups {
        return cgroups::run(args);
    }
    if args.files {
        return files::run(args);
    }
    let bpf = args.source.kind() != Some(SourceKind::Procfs);
    // This needs privileges, and comes first, since they are dropped before processes are compared: without them
    // symbols are hidden.
    let mut counters = match args.pids {
        Some(_) => None,
        None => Some(counters::open(bpf)?),
    };
    let (kind, pids) = (args.source.kind(), args.pids.as_deref());
    let mut progress = Progress::new()?;
    let (source, processes, tally) = processes::compare(kind, pids, args.rounds, &mut progress)?;
    if args.pids.is_some() && tally.total().compared == 0 {
        // Nothing can be reported if standard error is closed.
        let _ = writeln!(io::stderr(), "fastproc: none of these processes exists");
    }
    let counters = match &mut counters {
        Some(counters) => counters::compare(counters, args.rounds, &mut progress)?,
        None => counters::Seen::default(),
    };
    let latency = args.latency.get();
    let aged = if bpf && !latency.is_zero() {
        aged::compare(latency, args.rounds, &mut progress)?
    } else {
        None
    };
    let is_ended = progress.finish();
    let report = report(args, source, processes, &tally, counters, aged);
    args.write(&report, |out| print(out, &report, args.verbose, is_ended))?;
    Ok(Outcome::code(report.compared, report.wrong))
}

impl Args {
    /// Writes a report as JSON, or as `print` does.
    fn write(
        &self,
        report: &impl Serialize,
        print: impl FnOnce(&mut StdoutLock<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if !self.output.is_json() {
            return print(&mut out);
        }
        serde_json::to_writer(&mut out, report)?;
        writeln!(out)
    }
}

fn report<'t>(
    args: &Args,
    source: SourceKind,
    processes: u64,
    tally: &'t Tally,
    counters: counters::Seen,
    aged: Option<Aged>,
) -> Report<'t> {
    let lines = counters.lines.iter().map(|line| line.counts);
    let texts = counters.texts.iter().map(|(_, counts)| *counts);
    let machine = lines.chain(texts).chain(aged.map(|aged| aged.counts));
    let total: Counts = machine.chain([tally.total()]).sum();
    let fields = tally
        .fields
        .iter()
        .map(|(&(file, _), (field, counts))| FieldRow {
            file: file.name(),
            field,
            counts: *counts,
        });
    let texts = tally.texts.iter().map(|(file, &counts)| TextRow {
        file: file.name(),
        counts,
    });
    Report {
        verify: "processes",
        kernel: crate::doctor::kernel_release(),
        source: source.name(),
        rounds: args.rounds,
        processes,
        fields: fields.collect(),
        texts: texts.collect(),
        counters: counters.lines,
        machine_texts: counters
            .texts
            .into_iter()
            .map(|(file, counts)| TextRow { file, counts })
            .collect(),
        aged_interrupts: aged,
        missing: tally.missing,
        in_motion: tally.in_motion,
        compared: total.compared,
        equal: total.equal,
        wrong: total.wrong,
        examples: &tally.examples,
        line_examples: counters.examples,
    }
}

fn print(
    out: &mut impl Write,
    report: &Report<'_>,
    verbose: bool,
    is_ended: bool,
) -> io::Result<()> {
    let machine = if report.counters.is_empty() {
        ""
    } else {
        " and of the machine"
    };
    let outcome = Outcome {
        compared: report.compared,
        equal: report.equal,
        wrong: report.wrong,
        of: format!(
            "{}{machine}",
            Counted(report.processes, "process", "processes")
        ),
        is_ended,
    };
    writeln!(out, "{outcome}")?;
    if verbose {
        print_table(out, report)?;
    }
    for example in report.examples {
        let Example {
            pid,
            file,
            field,
            kernel,
            fastproc,
            ..
        } = example;
        writeln!(
            out,
            "wrong: {pid} {file} {field}: the kernel says {kernel:?}, fastproc {fastproc:?}"
        )?;
    }
    for example in &report.line_examples {
        let counters::Example { file, line, seen } = example;
        let [before, kernel, after] = seen
            .each_ref()
            .map(|seen| seen.as_deref().unwrap_or("nothing"));
        writeln!(
            out,
            "wrong: /proc/{file} {line}: the kernel says {kernel:?}, fastproc {before:?} before and {after:?} after"
        )?;
    }
    if report.missing > 0 {
        writeln!(
            out,
            "missing: {} that /proc lists",
            Counted(report.missing, "process", "processes")
        )?;
    }
    if report.compared == 0 {
        return Ok(());
    }
    let is_zero = |row: &&FieldRow<'_>| row.counts.nonzero == 0;
    writeln!(
        out,
        "by {} in {}; {} changed meanwhile, which proves nothing; only ever zero: {} of {} fields{}",
        report.source,
        Counted(report.rounds, "round", "rounds"),
        report.in_motion,
        report.fields.iter().filter(is_zero).count(),
        report.fields.len(),
        more(verbose),
    )
}

/// The columns of [`Counts`] in a table.
const HEADING: [&str; 4] = ["compared", "equal", "moved", "wrong"];

/// Where the rest is.
fn more(verbose: bool) -> &'static str {
    if verbose { "" } else { "; --verbose lists all" }
}

fn print_table(out: &mut impl Write, report: &Report<'_>) -> io::Result<()> {
    let fields = report.fields.iter().map(|row| {
        let FieldCounts { counts, nonzero } = row.counts;
        let numbers = [counts.numbers(), vec![nonzero]].concat();
        (format!("{} {}", row.file, row.field), numbers, "")
    });
    let texts = report.texts.iter().chain(&report.machine_texts);
    let texts = texts.map(|row| {
        (
            format!("{}, whole text", row.file),
            row.counts.numbers(),
            "",
        )
    });
    let lines = report.counters.iter().map(|line| {
        let numbers = [line.counts.numbers(), vec![line.nonzero]].concat();
        let is_text = line.from == "text";
        let remark = if is_text {
            "  from the kernel's text"
        } else {
            ""
        };
        (
            format!("/proc/{} {}", line.file, line.line),
            numbers,
            remark,
        )
    });
    let heading = [&HEADING[..], &["non-zero"]].concat();
    table(
        out,
        ("field", 32),
        &heading,
        fields.chain(texts).chain(lines),
    )?;
    if let Some(aged) = &report.aged_interrupts {
        writeln!(
            out,
            "/proc/stat, interrupt counts up to {} ms old: {} rows compared, {} kept, {} read again, {} wrong",
            aged.latency_ms, aged.counts.compared, aged.kept, aged.renewed, aged.counts.wrong
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn a_wrong_counter_is_wrong_and_nothing_is_not_right() {
        let command = <Args as clap::Args>::augment_args(clap::Command::new("verify"));
        let matches = command.get_matches_from(["verify"]);
        let args = Args::from_arg_matches(&matches).expect("it has defaults");
        let tally = Tally::default();
        for (compared, wrong, code) in [
            (3, 0, ExitCode::SUCCESS),
            (3, 1, ExitCode::FAILURE),
            (0, 0, ExitCode::FAILURE),
        ] {
            let counts = Counts {
                compared,
                wrong,
                ..Counts::default()
            };
            let counters = counters::Seen {
                texts: vec![("stat", counts)],
                ..counters::Seen::default()
            };
            let report = report(&args, SourceKind::Procfs, 0, &tally, counters, None);
            assert_eq!((report.compared, report.wrong), (compared, wrong));
            assert_eq!(Outcome::code(report.compared, report.wrong), code);
        }
    }
}
