//! `fastproc top`: the processes on a screen.

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

use crate::{Cli, failure::Failure, output::Output, privileges, source::Source, terminal};

/// Show the processes on a screen, as they change
///
/// The keys are those of htop and top; h shows all of them. Shares and rates are over the time between two looks.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, after_long_help = AFTER_LONG_HELP)]
#[allow(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Args {
    /// Columns to show: fields of fastproc ps, by name
    #[arg(short = 'o', long = "fields", value_name = "FIELD,…", value_delimiter = ',', value_parser = field_name)]
    fields: Vec<String>,

    /// What to sort by; with a minus sign, the largest first [default: -pcpu]
    #[arg(long, value_name = "[-]FIELD,…", allow_hyphen_values = true, value_parser = parsed::<Sort>)]
    sort: Option<String>,

    /// Show only what meets a condition, as for fastproc ps
    #[arg(long, value_name = "EXPR", value_parser = parsed::<Filter>)]
    filter: Option<String>,

    /// Look every so many seconds [default: 1]
    #[arg(short = 'd', long, value_name = "SECONDS", value_parser = super::ps::interval)]
    interval: Option<Duration>,

    /// Leave after N looks, after the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Show every thread on a row of its own
    #[arg(short = 'H', long)]
    threads: bool,

    /// Show children below their parents
    #[arg(long, visible_alias = "forest", conflicts_with = "threads")]
    tree: bool,

    /// Write one screen as text, after one interval, and leave
    ///
    /// As wide as the terminal, or 120 columns; as high as the terminal, or with every row.
    #[arg(long)]
    once: bool,

    /// With --once: write one JSON object, that of fastproc ps --interval
    #[arg(long, requires = "once", conflicts_with = "replay")]
    json: bool,

    /// Write what is looked at into a file, which must not be there yet
    ///
    /// Where standard output is no terminal, it records without a screen until a signal ends it, or --count.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["once", "replay"])]
    record: Option<PathBuf>,

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
}

const AFTER_LONG_HELP: &str = "\
Columns, filters and orders are those of fastproc ps, whose --help has the fields.

What is read of a process itself - its command line and its cgroup's path - is read again once a
second; everything else at every look.

Environment:
  NO_COLOR  if set and not empty, nothing is coloured

Examples:
  fastproc top --interval 0.1
      Ten looks a second
  fastproc top -o pid,pcpu,read/s,write/s,cmdline --sort -write/s
      Who writes
  fastproc top --filter 'user == postgres' --tree
      The processes of a user, children below their parents
  fastproc top --once | head -20
      A single screen, for a script
  fastproc top --interval 10 --record day.fp > /dev/null &
  fastproc top --replay day.fp
      What a machine did, looked at later";

fn field_name(name: &str) -> Result<String, field::UnknownField> {
    field::find(name).map(|field| field.name.to_owned())
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
    if args.json {
        return json(&args);
    }
    let options = Options {
        interval: args.interval,
        columns: args.fields,
        sort: args.sort,
        filter: args.filter,
        threads: args.threads,
        tree: args.tree,
        source: args.source.kind(),
        settings_by_default: args.settings.is_none(),
        settings: args.settings.or_else(default_path),
        record: args.record,
        replay: args.replay,
        count: args.count,
    };
    let records_only = options.record.is_some() && !stdout().is_terminal();
    let mut screen = Screen::open(options)?;
    // Signals and nice values of others.
    privileges::drop_but(CapabilitySet::KILL | CapabilitySet::SYS_NICE)?;
    screen.set_sees_all(privileges::may_trace_all());
    if args.once {
        let on_terminal = stdout().is_terminal();
        let lines = terminal::screen().map(|(lines, _)| lines as u16);
        let width = terminal::width().unwrap_or(120).clamp(20, 1000) as u16;
        let text = screen.once(width, lines.filter(|_| on_terminal))?;
        let mut output = Output::default();
        output.write_all(text.as_bytes())?;
        output.finish()?;
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
