//! `fastproc top`: the processes on a screen.

mod foreign;

use std::{
    io::{IsTerminal, Write, stdout},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::ValueEnum as _;
use fastproc_columns::{Filter, Needle, Processes, Sort, field, parse_instant, parse_interval};
use fastproc_metrics::say;
use fastproc_top::{Left, Options, Place, Screen, default_path};
use rustix::thread::CapabilitySet;

use self::foreign::{Foreign, is_of_top, refuse_order};
use crate::{
    NO,
    completed::completed,
    failure::Failure,
    format::Format,
    history::{
        fields::{self, Of},
        when::Folder,
    },
    output::Output,
    privileges,
    ps::{
        self,
        selection::{Pids, Users},
    },
    source::Source,
    terminal,
};

/// Show processes on a screen, as they change.
///
/// The keys are those of htop and top; h lists them. Shares and rates cover the time between two refreshes.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, after_help = AFTER_HELP, after_long_help = AFTER_LONG_HELP)]
#[allow(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Args {
    /// Show only processes whose name or command line has this text, in letters of either case.
    #[arg(value_name = "TEXT", conflicts_with = "cgroups", value_parser = parsed::<Needle>)]
    search: Option<String>,

    /// Show these fields, named as in fastproc ps.
    #[arg(short = 'o', long = "fields", value_name = "FIELD,…", value_delimiter = ',', value_parser = completed::<Processes, _>(field_name), hide_possible_values = true, allow_hyphen_values = true)]
    fields: Vec<String>,

    /// Show only these processes; 0 means this command itself.
    #[arg(short, long, value_name = "PID,…")]
    pid: Vec<Pids>,

    /// Show only the processes of these effective users, by name or number.
    #[arg(
        short,
        long,
        value_name = "USER,…",
        conflicts_with = "pid",
        alias = "filter-only-euser"
    )]
    user: Vec<Users>,

    /// Sort by these fields; a minus sign puts the largest value first; the default is -pcpu.
    #[arg(long, value_name = "[-]FIELD,…", allow_hyphen_values = true, value_parser = completed::<Processes, _>(parsed::<Sort>), hide_possible_values = true)]
    sort: Option<String>,

    /// Show only rows that match an expression, as in fastproc ps.
    #[arg(long, value_name = "EXPR", value_parser = parsed::<Filter>)]
    filter: Option<String>,

    /// Refresh at this interval, as in 2, 0.5 or 500ms; the default is 1 second.
    #[arg(short = 'd', long, value_name = "DURATION", alias = "delay", value_parser = parse_interval)]
    interval: Option<Duration>,

    /// Exit after N refreshes, not counting the first screen.
    #[arg(short = 'n', long, value_name = "N", aliases = ["iterations", "max-iterations"], value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Show each thread on its own row.
    #[arg(short = 'H', long, alias = "threads-show", conflicts_with_all = ["path", "host"])]
    threads: bool,

    /// Show children below their parents.
    #[arg(
        short = 't',
        long,
        visible_alias = "forest",
        conflicts_with = "threads"
    )]
    tree: bool,

    /// Show cgroups instead of processes; the key v switches.
    #[arg(long, conflicts_with_all = ["fields", "pid", "user", "sort", "filter", "threads", "format", "json"])]
    cgroups: bool,

    /// Write a table as text after every interval, until --count or a signal ends it.
    ///
    /// The width is that of COLUMNS, of the terminal, or 120 columns. On a terminal a table has as many rows as fit; elsewhere
    /// it has all rows. An empty line separates two tables.
    #[arg(short, long, alias = "batch-mode")]
    batch: bool,

    /// Write one table as text and exit; the same as --batch --count 1.
    #[arg(long, conflicts_with = "count")]
    once: bool,

    /// With --once, write in this format; the default is table.
    ///
    /// The others are what fastproc ps --interval writes.
    #[arg(long, value_enum, requires = "once", conflicts_with_all = ["path", "host"])]
    format: Option<Format>,

    /// Write JSON; the same as --format json.
    #[arg(long, requires = "once", conflicts_with_all = ["format", "path", "host"])]
    json: bool,

    /// Read processes from this source.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["path", "host"])]
    source: Source,

    /// Read settings from this file; only the key W writes it.
    ///
    /// The default is fastproc/top.toml in the user configuration folder, normally ~/.config. It must be a regular file of at
    /// most 1 MiB.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    /// Show what was at this time, as fastproc record has kept it.
    ///
    /// It is 03:12 or 03:12:05, which is the last one that has passed, 'yesterday 03:12', '2026-11-30 03:12', 2026-11-30T03:12:05Z,
    /// or -10min. The keys , and . go one walk back and forward, { and } one minute; b goes to a time; Z goes on by itself.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_instant, help_heading = "Looking back",
          conflicts_with_all = ["source", "threads", "format", "json"])]
    at: Option<i64>,

    #[command(flatten)]
    folder: Folder,

    #[command(flatten)]
    foreign: Foreign,
}

const AFTER_HELP: &str = "\
Examples:
  fastproc top nginx
  fastproc top --interval 500ms
  fastproc top -o pid,pcpu,read/s,write/s,cmdline --sort -write/s
  fastproc top --filter 'user == postgres' --tree

See --help for looking back, the environment and more examples; the key h lists the keys.";

const AFTER_LONG_HELP: &str = "\
Columns, filters and sort orders are those of fastproc ps; fastproc ps --help lists the fields.

Command lines and cgroup paths are read once a second, everything else at every refresh.

A signal or a nice value goes to the process that was under the cursor when the key was pressed; a
question names it first. When the table changes, the cursor keeps its row, as in htop; F makes it
follow a process, and after a search it follows what was found, until it is moved. The header counts processes that exited; x shows them, with what they did in the
interval. Keys that arrive faster than a person types count as pasted text: they change no process,
write no settings and do not exit.

At most 1000 columns and 1000 lines of a terminal are used. A signal that ends the command does so even
if nobody reads the terminal, after five seconds.

The key v, or --cgroups, shows cgroups with the columns of fastproc cgroups --interval; Enter shows one
with its history, its values and its processes. Cgroups are read only while they are shown. A - means
that there is no limit, or that the value is not known: its controller is not enabled, or is on
version 1.

The keys , and . go back from now, and forward until now: in the history of this machine, if
/var/lib/fastproc/history has the last minutes, or in the last minutes, which the screen keeps in 32 MB.
With --at or --history they go through what fastproc record has kept. It has no threads, no limits, no
open files, no environments and no single CPUs, and - means that it does not keep a value.

Environment:
  NO_COLOR  if set and not empty, no colour is used
  LC_ALL, LC_CTYPE, LANG
            if the first of these that is set does not name UTF-8, only ASCII is drawn

Examples:
  fastproc top nginx
      Show what has nginx in its name or command line
  fastproc top --interval 100ms
      Refresh ten times a second
  fastproc top -o pid,pcpu,read/s,write/s,cmdline --sort -write/s
      Show what writes to disk
  fastproc top --filter 'user == postgres' --tree
      Show the processes of a user as a tree
  fastproc top --cgroups --tree
      Show the tree of cgroups
  fastproc top -b -n 1 | head -20
      Write a single table, for a script
  fastproc top --at 03:12
      Show what was at that time, and what came before and after
  fastproc record --interval 200ms --for 10m here
      Record for ten minutes, also without root
  fastproc top --history here
      Show the last of it

Exit status:
  0  the command showed its screen, or wrote its tables
  1  with --once or --batch, no row was shown
  2  the command line is invalid, or the command could not run";

impl Args {
    /// What is shown of a history, if it is.
    fn past(&self) -> Option<Place> {
        let Folder { path, host } = &self.folder;
        (self.at.is_some() || path.is_some() || host.is_some()).then(|| Place {
            folder: self.folder.path().into(),
            host: host.clone(),
            time: self.at,
        })
    }
}

fn field_name(name: &str) -> Result<String, field::UnknownField> {
    // refuse_order() checks names of top(1) later, when it has all of them.
    if !is_of_top(name) {
        field::find(name)?;
    }
    Ok(name.to_owned())
}

/// The text that is searched for, and the filter for it.
fn search(args: &Args) -> (String, String) {
    // The past has other processes.
    let own = args.past().is_none().then(ps::own_pid).unwrap_or_default();
    let text = args.search.clone().unwrap_or_default();
    let needle = text.parse().ok().filter(|_| args.search.is_some());
    let filter = needle.map(|needle: Needle| needle.filter(own));
    (text, filter.unwrap_or_default())
}

/// A filter that combines the text, -p, -u and --filter.
fn filter(args: &Args) -> Option<String> {
    let any = |field: &str, numbers: Vec<u32>| {
        let terms = numbers.iter().map(|number| format!("{field} == {number}"));
        terms.collect::<Vec<_>>().join(" || ")
    };
    let own = ps::own_pid();
    let pids = args.pid.iter().flat_map(|list| &list.0);
    let pids = pids.map(|&pid| if pid == 0 { own } else { pid });
    let users = args.user.iter().flat_map(|list| &list.0);
    let filters = [
        search(args).1,
        any("pid", pids.collect()),
        any("euid", users.copied().collect()),
        args.filter.clone().unwrap_or_default(),
    ];
    let given = filters.into_iter().filter(|filter| !filter.is_empty());
    given.reduce(|all, filter| format!("({all}) && ({filter})"))
}

/// Checks that a text can be parsed; the screen keeps the text.
fn parsed<T: std::str::FromStr>(text: &str) -> Result<String, T::Err> {
    text.parse::<T>().map(|_| text.to_owned())
}

/// Writes the output of `fastproc ps` in this format after one interval.
fn write_as_ps(args: &Args, format: &str) -> Result<ExitCode, Failure> {
    let interval = args.interval.unwrap_or(Duration::from_secs(1));
    let mut line = vec![
        "fastproc".to_owned(),
        "ps".into(),
        format!("--format={format}"),
        "--count=1".into(),
        format!("--interval={}", interval.as_secs_f64()),
    ];
    let options = [
        (
            "fields",
            Some(args.fields.join(",")).filter(|fields| !fields.is_empty()),
        ),
        ("sort", args.sort.clone()),
        ("filter", filter(args)),
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
    crate::parse(&line)?.command.run()
}

/// Shows the screen.
pub fn run(args: Args) -> Result<ExitCode, Failure> {
    args.foreign.refuse()?;
    refuse_order(&args.fields)?;
    for name in &args.fields {
        field::find(name)?;
    }
    let format = args.format.filter(|&format| format != Format::Table);
    let format = format.or(args.json.then_some(Format::Json));
    if let Some(format) = format.and_then(|format| format.to_possible_value()) {
        return write_as_ps(&args, format.get_name());
    }
    // A refusal costs others a short wait, and no values.
    let _ = fastproc::give_way();
    let is_text = args.batch || args.once;
    let missing = args.settings.as_ref().filter(|path| !path.exists());
    if let Some(path) = missing.filter(|_| is_text) {
        let path = path.display();
        say(&format!("there is no {path}: these are the defaults"));
    }
    let past = args.past();
    if past.is_some() {
        let named = args.fields.iter().flat_map(|name| field::find(name));
        let sort: Option<Sort> = args.sort.as_deref().and_then(|sort| sort.parse().ok());
        let filter: Option<Filter> = args
            .filter
            .as_deref()
            .and_then(|filter| filter.parse().ok());
        let filter = filter.iter().flat_map(Filter::fields);
        let sort = sort.iter().flat_map(Sort::fields);
        fields::check(named.chain(sort).chain(filter), Of::Window)?;
    }
    let options = Options {
        interval: args.interval,
        filter: filter(&args),
        search: search(&args),
        columns: args.fields,
        sort: args.sort,
        threads: args.threads,
        tree: args.tree,
        cgroups: args.cgroups,
        source: args.source.kind(),
        settings_by_default: args.settings.is_none(),
        settings: args.settings.or_else(default_path),
        past,
        shows_first: !is_text,
        count: if args.once { Some(1) } else { args.count },
    };
    let mut screen = Screen::open(options)?;
    // To send signals to processes of other users, and to change their nice values.
    privileges::drop_but(CapabilitySet::KILL | CapabilitySet::SYS_NICE)?;
    screen.set_sees_all(privileges::may_trace_all());
    if is_text {
        return Ok(if write_tables(&mut screen)? {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(NO)
        });
    }
    match screen.run()? {
        Left::ByChoice => Ok(ExitCode::SUCCESS),
        Left::BySignal(signal) => {
            drop(screen);
            // The parent must see which signal ended this program.
            signal_hook::low_level::emulate_default_handler(signal)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Writes tables as text, one after the other. Returns whether any had a row.
fn write_tables(screen: &mut Screen) -> Result<bool, Failure> {
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
