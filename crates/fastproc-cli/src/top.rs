//! `fastproc top`: the processes on a screen.

mod foreign;

use std::{
    io::{IsTerminal, Write, stdout},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Parser as _, ValueEnum as _};
use fastproc_columns::{Filter, Sort, field};
use fastproc_top::{Left, Options, Screen, default_path};
use rustix::thread::CapabilitySet;

use self::foreign::{Foreign, is_of_top, refuse_order};
use crate::{
    Cli,
    failure::Failure,
    output::Output,
    privileges,
    ps::selection::{Pids, Users},
    source::Source,
    terminal,
};

/// Show the processes on a screen, as they change
///
/// The keys are those of htop and top; h shows all of them. Shares and rates are over the time between two looks.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, after_long_help = AFTER_LONG_HELP)]
#[allow(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Args {
    /// Columns to show: fields of fastproc ps, by name
    #[arg(short = 'o', long = "fields", value_name = "FIELD,…", value_delimiter = ',', value_parser = field_name, allow_hyphen_values = true)]
    fields: Vec<String>,

    /// Show only these processes; 0 is this command itself
    #[arg(short, long, value_name = "PID,…")]
    pid: Vec<Pids>,

    /// Show only the processes of these effective users, by name or number
    #[arg(
        short,
        long,
        value_name = "USER,…",
        conflicts_with = "pid",
        alias = "filter-only-euser"
    )]
    user: Vec<Users>,

    /// What to sort by; with a minus sign, the largest first [default: -pcpu]
    #[arg(long, value_name = "[-]FIELD,…", allow_hyphen_values = true, value_parser = parsed::<Sort>)]
    sort: Option<String>,

    /// Show only what meets a condition, as for fastproc ps
    #[arg(long, value_name = "EXPR", value_parser = parsed::<Filter>)]
    filter: Option<String>,

    /// Look every so many seconds [default: 1]
    #[arg(short = 'd', long, value_name = "SECONDS", alias = "delay", value_parser = super::ps::interval)]
    interval: Option<Duration>,

    /// Leave after N looks, after the first
    #[arg(short = 'n', long, value_name = "N", aliases = ["iterations", "max-iterations"], value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Show every thread on a row of its own
    #[arg(short = 'H', long, alias = "threads-show")]
    threads: bool,

    /// Show children below their parents
    #[arg(
        short = 't',
        long,
        visible_alias = "forest",
        conflicts_with = "threads"
    )]
    tree: bool,

    /// Write a table as text after every interval, until --count or a signal ends it
    ///
    /// As wide as the terminal, or COLUMNS, or 120 columns; as high as the terminal, or with every row. A blank line
    /// is between two tables.
    #[arg(short, long, alias = "batch-mode")]
    batch: bool,

    /// Write one table as text and leave: --batch --count 1
    #[arg(long, conflicts_with = "count")]
    once: bool,

    /// With --once: write one JSON object, that of fastproc ps --interval
    #[arg(long, requires = "once", conflicts_with = "replay")]
    json: bool,

    /// Write what is looked at into a file, which must not be there yet
    ///
    /// Where standard output is no terminal, it records without a screen until a signal ends it, or --count.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["once", "batch", "replay"])]
    record: Option<PathBuf>,

    /// Stop when the recording would have more MiB than this
    #[arg(long, value_name = "MIB", default_value_t = 1024, requires = "record",
          value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    record_limit: u64,

    /// Show a recording
    ///
    /// The keys , and . go to the snapshot before and after, { and } a minute, b to a time, Z stops and goes on.
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    replay: Option<PathBuf>,

    /// Where to read from
    #[arg(long, value_enum, default_value_t)]
    source: Source,

    /// The settings file; it is written only by the key W
    ///
    /// [default: fastproc/top.toml where settings are kept, as a rule ~/.config]
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    #[command(flatten)]
    foreign: Foreign,
}

const AFTER_LONG_HELP: &str = "\
Columns, filters and orders are those of fastproc ps, whose --help has the fields.

What is read of a process itself - its command line and its cgroup's path - is read again once a
second; everything else at every look.

A signal or a nice value is for the process that stood under the cursor when the key was pressed, and
the question names it. Otherwise the cursor keeps its row, whichever process comes there, as in
htop; F stays with a process. Processes that exited are counted above the table; x shows them, with
what they did in the interval. What comes faster than a person types is taken for pasted text: it
changes no process, writes no settings and does not leave.

Environment:
  NO_COLOR  if set and not empty, nothing is coloured
  LC_ALL, LC_CTYPE, LANG
            where the first that is set does not name UTF-8, only ASCII is drawn

Examples:
  fastproc top --interval 0.1
      Ten looks a second
  fastproc top -o pid,pcpu,read/s,write/s,cmdline --sort -write/s
      Who writes
  fastproc top --filter 'user == postgres' --tree
      The processes of a user, children below their parents
  fastproc top -b -n 1 | head -20
      A single table, for a script
  fastproc top --interval 10 --record day.fp > /dev/null &
  fastproc top --replay day.fp
      What a machine did, looked at later";

fn field_name(name: &str) -> Result<String, field::UnknownField> {
    // Of a name of top(1) more can be said when all of them are there.
    if !is_of_top(name) {
        field::find(name)?;
    }
    Ok(name.to_owned())
}

/// What -p and -u select, and what the filter admits of it.
fn filter(pids: Vec<Pids>, users: Vec<Users>, filter: Option<String>) -> Option<String> {
    let any = |field: &str, numbers: Vec<u32>| {
        let terms: Vec<_> = numbers
            .iter()
            .map(|number| format!("{field} == {number}"))
            .collect();
        (!terms.is_empty()).then(|| terms.join(" || "))
    };
    let pids = pids.into_iter().flat_map(|list| list.0);
    let pids = pids.map(|pid| match pid {
        0 => std::process::id(),
        pid => pid,
    });
    let users = users.into_iter().flat_map(|list| list.0);
    let selected = any("pid", pids.collect()).or_else(|| any("euid", users.collect()));
    match (selected, filter) {
        (Some(selected), Some(filter)) => Some(format!("({selected}) && ({filter})")),
        (selected, filter) => selected.or(filter),
    }
}

/// A text that can be parsed; the screen keeps the text.
fn parsed<T: std::str::FromStr>(text: &str) -> Result<String, T::Err> {
    text.parse::<T>().map(|_| text.to_owned())
}

/// What `fastproc ps` shows after one interval.
fn json(args: &Args) -> Result<ExitCode, Failure> {
    let interval = args.interval.unwrap_or(Duration::from_secs(1));
    let mut line = vec![
        "fastproc".to_owned(),
        "ps".into(),
        "--json".into(),
        "--count=1".into(),
        format!("--interval={}", interval.as_secs_f64()),
    ];
    let options = [
        (
            "fields",
            Some(args.fields.join(",")).filter(|fields| !fields.is_empty()),
        ),
        ("sort", args.sort.clone()),
        ("filter", args.filter.clone()),
        (
            "source",
            args.source
                .to_possible_value()
                .map(|source| source.get_name().to_owned()),
        ),
    ];
    let options = options.into_iter();
    line.extend(options.filter_map(|(name, value)| Some(format!("--{name}={}", value?))));
    line.extend(args.threads.then(|| "--threads".to_owned()));
    line.extend(args.tree.then(|| "--tree".to_owned()));
    Cli::try_parse_from(line)?.command.run()
}

/// Shows the screen.
pub fn run(args: Args) -> Result<ExitCode, Failure> {
    args.foreign.refuse()?;
    refuse_order(&args.fields)?;
    for name in &args.fields {
        field::find(name)?;
    }
    if args.json {
        return json(&args);
    }
    let options = Options {
        interval: args.interval,
        columns: args.fields,
        sort: args.sort,
        filter: filter(args.pid, args.user, args.filter),
        threads: args.threads,
        tree: args.tree,
        source: args.source.kind(),
        settings_by_default: args.settings.is_none(),
        settings: args.settings.or_else(default_path),
        record: args.record,
        record_limit: args.record_limit << 20,
        replay: args.replay,
        count: if args.once { Some(1) } else { args.count },
    };
    let records_only = options.record.is_some() && !stdout().is_terminal();
    let mut screen = Screen::open(options)?;
    // Signals and nice values of others.
    privileges::drop_but(CapabilitySet::KILL | CapabilitySet::SYS_NICE)?;
    screen.set_sees_all(privileges::may_trace_all());
    if args.batch || args.once {
        write_tables(&mut screen)?;
        return Ok(ExitCode::SUCCESS);
    }
    let left = if records_only {
        screen.record()?
    } else {
        screen.run()?
    };
    match left {
        Left::ByChoice => Ok(ExitCode::SUCCESS),
        Left::BySignal(signal) => {
            drop(screen);
            // Who waits for this program shall see what ended it.
            signal_hook::low_level::emulate_default_handler(signal)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Writes tables as text, one after the other.
fn write_tables(screen: &mut Screen) -> Result<(), Failure> {
    let on_terminal = stdout().is_terminal();
    let lines = terminal::screen().map(|(lines, _)| lines as u16);
    let width = terminal::width().unwrap_or(120).clamp(20, 1000) as u16;
    let mut output = Output::default();
    let mut is_first = true;
    screen.batch(width, lines.filter(|_| on_terminal), |text| {
        if !std::mem::take(&mut is_first) {
            output.write_all(b"\n")?;
        }
        output.write_all(text.as_bytes())?;
        output.finish()?;
        Ok(())
    })
}
