//! `fastproc ps`: the process table.

pub mod form;
pub mod help;
mod redraw;
#[cfg(test)]
mod round_trip;
mod screen;
pub mod selection;
mod style;
mod summary;

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use fastproc::{Baseline, Collector, Fields, Texts};
use fastproc_columns::{Field, Filter, Lookup, Sort, Sorter};

use self::{
    form::{Column, Follows, Format, Layout},
    redraw::Redraw,
    screen::Screen,
    selection::{Pids, Select, Selection},
    style::{Style, Words},
};
use crate::{NO, failure::Failure, output::Output, privileges, source::Source};

/// Show the processes
///
/// Every process is read in one pass and from one source. Without --interval the CPU share of a process is that over its
/// lifetime, as in ps(1); with it, everything that is a share or a rate is over the last interval.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, after_help = help::SHORT, after_long_help = help::long())]
#[allow(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Args {
    /// As for ps(1): aux, ax, and process ids
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// Columns to show
    ///
    /// Fields by their names in proc(5) or ps(1), in letters of either case; see Fields below. May be given more than
    /// once. Only what the columns, --sort and --filter name is collected.
    ///
    /// If none is named: pid, user, state, pcpu, pmem, rss, vsize, threads, etime, time and comm; on a narrow terminal as
    /// many of them, from the left, as there is room for, and comm.
    #[arg(
        short = 'o',
        long = "fields",
        value_name = "FIELD,…",
        value_delimiter = ',',
        value_parser = help::FieldParser,
        hide_possible_values = true
    )]
    fields: Vec<Column>,

    /// What to sort by; with a minus sign, the largest first; the next field decides between equals
    ///
    /// Rows of which the value is not known come last, and equal ones in the order of their ids.
    ///
    /// [default: -pcpu; pid with --tree and the columns of ps(1)]
    #[arg(long, value_name = "[-]FIELD,…", allow_hyphen_values = true)]
    sort: Option<Sort>,

    /// Show no more than the first N rows
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Show only what meets a condition, as in 'rss > 100M && user != root'
    ///
    /// See Filters below. If nothing ever meets it, the exit status is 1.
    #[arg(long, value_name = "EXPR")]
    filter: Option<Filter>,

    #[command(flatten)]
    select: Select,

    /// Show every thread on a row of its own
    #[arg(long, short_alias = 'L', visible_short_alias = 'T')]
    threads: bool,

    /// Show children below their parents
    #[arg(long, visible_alias = "forest", conflicts_with = "threads")]
    tree: bool,

    /// Repeat every so many seconds, with shares and rates over that time
    ///
    /// Every share is the CPU time used within the interval divided by the interval, of a process that was born in it too.
    /// Nothing is shown before the first interval is over. An interval that is missed is skipped. On a terminal each
    /// table takes the place of the one before, and has as many rows as there is room for.
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    interval: Option<Duration>,

    /// Show what ended in the interval as well, with what it did in it
    ///
    /// Processes that lived between two looks are among them, however short. Their shares are of the whole interval,
    /// as all are, so that all rows add up to what the machine did. Their state is X; a process may be told of one interval late.
    /// Takes a service, or the privileges of reading by BPF.
    #[arg(long, requires = "interval", conflicts_with = "threads")]
    exited: bool,

    /// Stop after N times; until interrupted if not set
    #[arg(long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// How to write it
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Do not name the columns of a table or of csv
    #[arg(long, visible_alias = "no-headings")]
    no_headers: bool,

    /// In csv, write a ' before texts that a spreadsheet would take for a formula
    #[arg(long)]
    no_formulas: bool,

    /// Where to read from
    #[arg(long, value_enum, default_value_t)]
    source: Source,

    /// Do not say on standard error what was read
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    as_in_ps: AsInPs,
}

/// What people are used to type.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "As in ps(1)")]
#[allow(clippy::struct_excessive_bools, reason = "one for each letter")]
struct AsInPs {
    /// Every process, as without it
    #[arg(short = 'e', short_alias = 'A')]
    every: bool,

    /// The columns of ps -f: user, pid, ppid, c, start, tty, time, cmdline
    #[arg(short = 'f')]
    full: bool,

    /// The columns of ps -l
    #[arg(short = 'l')]
    long: bool,

    /// Wide, as without it: lines are cut only on a terminal
    #[arg(short = 'w', action = clap::ArgAction::Count, hide = true)]
    wide: u8,

    /// In ps(1) other processes than most people think
    #[arg(short = 'a', hide = true)]
    with_terminal: bool,
}

/// Something that ps(1) would do, and this does not.
#[derive(Debug, thiserror::Error)]
enum UsageError {
    #[error(
        "-a and -x choose processes by their terminal in ps(1). {}",
        style::HINT
    )]
    Terminal,
    #[error(
        "cannot sort by '{0}', a rate over an interval, and there is none; give one, as in --interval 1"
    )]
    Rate(&'static str),
    #[error("threads cannot be shown together with what has ended")]
    ExitedThreads,
    #[error("what ends cannot be recorded")]
    Exits(#[source] Box<fastproc::Error>),
    #[error("--tree and threads cannot be shown together")]
    TreeOfThreads,
}

/// Seconds between two looks.
pub fn interval(text: &str) -> Result<Duration, String> {
    let range = 0.01..=1e7;
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| range.contains(seconds));
    let seconds = seconds.ok_or("give seconds, at least 0.01, as in 2 or 0.5")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Shows the table, once or again and again.
pub fn run(args: Args) -> Result<ExitCode, Failure> {
    if args.as_in_ps.with_terminal {
        return Err(UsageError::Terminal.into());
    }
    let words = style::understand(&args.words)?;
    let threads = args.threads || words.threads;
    let tree = args.tree || words.tree;
    if threads && tree {
        return Err(UsageError::TreeOfThreads.into());
    }
    if threads && args.exited {
        return Err(UsageError::ExitedThreads.into());
    }
    let style = style(&args.as_in_ps, &words, threads);
    let columns = columns(args.fields, words.columns.as_deref())?;
    let may_drop = columns.is_empty();
    let columns = if may_drop {
        parse_columns(style.columns())?
    } else {
        columns
    };
    let sort = match args.sort {
        Some(sort) => sort,
        None if tree => "pid".parse()?,
        None => style.sort().parse()?,
    };
    if args.interval.is_none() {
        if let Some(filter) = &args.filter {
            filter.check_for_one_snapshot()?;
        }
        if let Some(rate) = sort.fields().find(|field| field.is_rate) {
            return Err(UsageError::Rate(rate.name).into());
        }
    }
    let mut select = args.select;
    let pids = (!words.pids.is_empty()).then_some(Pids(words.pids));
    select.pid.extend(pids);
    let selection = Selection::from(select);
    let mut fields = needs(&columns, &sort, args.filter.as_ref()) | selection.needs();
    fields.set(Fields::THREADS, threads);
    let of_shown = texts(columns.iter().map(|column| column.field));
    let of_all = texts(
        sort.fields()
            .chain(args.filter.iter().flat_map(Filter::fields)),
    );
    let cmdlines = (of_shown | of_all).contains(Texts::CMDLINE);
    // Of a few rows they are read one by one.
    let shows_all = args.top.is_none() && args.filter.is_none() && selection.admits_all();
    let wanted = if shows_all { of_shown | of_all } else { of_all };
    let kept = wanted & Texts::CMDLINE;
    let mut collector = Collector::builder()
        .fields(fields)
        .source(args.source.kind())
        .exits(args.exited)
        .exit_cmdlines(args.exited && cmdlines)
        .texts(kept)
        .texts_max_age(Texts::MAX_AGE)
        .one_shot(args.interval.is_none())
        .open()?;
    if let Some(error) = collector.take_exits_refused() {
        return Err(UsageError::Exits(Box::new(error)).into());
    }
    privileges::drop()?;
    let redraw = Redraw::new().filter(|_| args.interval.is_some() && args.format == Format::Table);
    let layout = Layout {
        columns,
        headings: !args.no_headers,
        may_drop,
        follows: if redraw.is_some() {
            Follows::InPlace
        } else {
            Follows::Apart
        },
        no_formulas: args.no_formulas,
    };
    let mut screen = Screen {
        lookup: Lookup::new(collector.host(), false)?,
        form: args.format.writer(layout),
        sort,
        top: args.top.unwrap_or(usize::MAX),
        selection,
        filter: args.filter,
        threads,
        tree,
        exited: args.exited,
        repeated: args.interval.is_some(),
        quiet: args.quiet,
        redraw,
        sorter: Sorter::default(),
        output: Output::default(),
    };
    let any = match args.interval {
        None => {
            let fallback = summary::fallback(&collector);
            screen.show(&collector.snapshot()?, None, fallback.as_deref())?
        }
        Some(interval) => watch(&mut collector, &mut screen, interval, args.count)?,
    };
    Ok(if any {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO)
    })
}

fn style(flags: &AsInPs, words: &Words, threads: bool) -> Style {
    if flags.full {
        Style::Full
    } else if flags.long {
        Style::Long
    } else if threads && words.style == Style::Default {
        Style::Threads
    } else {
        words.style
    }
}

/// The columns that are asked for by name.
fn columns(mut fields: Vec<Column>, words: Option<&str>) -> Result<Vec<Column>, Failure> {
    if let Some(names) = words {
        fields.extend(parse_columns(names)?);
    }
    Ok(fields)
}

fn parse_columns(names: &str) -> Result<Vec<Column>, Failure> {
    Ok(names.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

/// The groups of fields that these ask for, and no other.
fn needs(columns: &[Column], sort: &Sort, filter: Option<&Filter>) -> Fields {
    let needs = columns
        .iter()
        .fold(sort.needs(), |needs, column| needs | column.field.needs);
    needs | filter.map_or(Fields::empty(), Filter::needs)
}

/// The texts that these are taken from.
fn texts<'a>(fields: impl Iterator<Item = &'a Field>) -> Texts {
    fields.map(Field::texts).collect()
}

/// Shows a snapshot at the end of every interval. Returns whether any had a row.
fn watch(
    collector: &mut Collector,
    screen: &mut Screen,
    interval: Duration,
    count: Option<u64>,
) -> Result<bool, Failure> {
    let mut before = Baseline::default();
    let mut any = false;
    let mut due = Instant::now();
    // The first snapshot is only what the second is compared with.
    for times in 0.. {
        let fallback = summary::fallback(collector);
        let snapshot = collector.snapshot()?;
        if times > 0 {
            any |= screen.show(&snapshot, Some(&before), fallback.as_deref())?;
            if Some(times) == count {
                break;
            }
        }
        before.set(&snapshot);
        let now = Instant::now();
        due = next_due(due, interval, now);
        thread::sleep(due.saturating_duration_since(now));
    }
    Ok(any)
}

/// When to take the next snapshot: a whole number of intervals after the last one was due.
///
/// One that is missed is skipped, and so is one that is less than half an interval away: shares over so short a time
/// would say little.
fn next_due(due: Instant, interval: Duration, now: Instant) -> Instant {
    let late = now.saturating_duration_since(due);
    let intervals = (late.as_secs_f64() / interval.as_secs_f64() + 1.5).floor();
    due + interval.mul_f64(intervals.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_collected() {
        let needs = |columns: &str, sort: &str, filter: Option<&str>| {
            let columns: Vec<Column> = columns
                .split(',')
                .map(|name| name.parse().expect("a field"))
                .collect();
            let filter: Option<Filter> = filter.map(|filter| filter.parse().expect("a filter"));
            let sort = sort.parse().expect("a field");
            needs(&columns, &sort, filter.as_ref())
        };
        assert_eq!(
            needs("pid,comm,cmdline,etime", "pid", None),
            Fields::empty()
        );
        assert_eq!(needs("pid,rss", "-pcpu", None), Fields::TOP);
        assert_eq!(
            needs("pid", "pid", Some("user == root && read_bytes > 0")),
            Fields::USERS | Fields::IO
        );
        assert_eq!(
            needs(Style::Default.columns(), Style::Default.sort(), None),
            Fields::TOP | Fields::USERS
        );
    }

    #[test]
    fn a_missed_interval_is_skipped() {
        let due = Instant::now();
        let interval = Duration::from_secs(10);
        for (late_seconds, next_seconds) in [
            (0, 10),
            (1, 10),
            (4, 10),
            (6, 20),
            (9, 20),
            (10, 20),
            (14, 20),
            (16, 30),
            (104, 110),
        ] {
            let next = next_due(due, interval, due + Duration::from_secs(late_seconds));
            assert_eq!((next - due).as_secs(), next_seconds, "{late_seconds} s");
        }
    }

    #[test]
    fn an_interval_is_a_time() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "nan", "inf", "x", "", "1e300"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
