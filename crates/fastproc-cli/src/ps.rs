//! `fastproc ps`: the process table.

mod args;
pub mod help;
mod past;
mod plan;
mod ps1;
#[cfg(test)]
mod round_trip;
mod screen;
pub mod selection;
mod summary;
mod translate;
mod words;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use fastproc::{Baseline, Collector, Fields, Host, Texts, frozen, proc_root};
use fastproc_columns::{Field, Filter, Lookup, Sort, Sorter};

use self::{
    past::Past,
    plan::{Plan, UsageError},
    screen::Screen,
};
use crate::{
    NO,
    failure::Failure,
    format::{Column, Format},
    history::fields::Of,
    output::Output,
    privileges,
    redraw::{self, Redraw},
    terminal,
};

pub use self::{args::Args, translate::as_in_ps};

/// Shows the table, once or at every interval.
pub fn run(mut args: Args) -> Result<ExitCode, Failure> {
    let words = words::parse_words(&args.words)?;
    if let Some(needle) = &args.search {
        let search: Filter = needle.filter(own_pid()).parse()?;
        args.filter = Some(match args.filter.take() {
            Some(filter) => search.and(filter),
            None => search,
        });
    }
    let format = args.written.format();
    let like_ps = args.is_like_ps(&words)?;
    let Plan {
        writer,
        columns,
        selection,
        sort,
        threads,
        tree,
        needs: more,
    } = args.plan(&words, format, like_ps)?;
    let is_table = format == Format::Table;
    let like_ps = like_ps && is_table;
    if threads && tree {
        return Err(UsageError::TreeOfThreads.into());
    }
    if threads && args.exited {
        return Err(UsageError::ExitedThreads.into());
    }
    let looks_back = args.looks_back()?;
    if let Some(option) = args.repeats().filter(|_| looks_back.is_some()) {
        return Err(UsageError::PastAgain(option).into());
    }
    if args.interval.is_none() && looks_back != Some(Of::Window) {
        if let Some(filter) = &args.filter {
            filter.check_for_one_snapshot()?;
        }
        if let Some(rate) = sort.fields().find(|field| field.is_rate) {
            return Err(UsageError::Rate(rate.name).into());
        }
    }
    let tree_of_ps = like_ps.then_some(if args.as_in_ps.indented {
        ps1::Tree::Spaces
    } else {
        ps1::Tree::Lines
    });
    let pick: Option<Sort> = match (tree && args.top.is_some(), &args.sort) {
        (true, None) => Some("-pcpu".parse()?),
        (true, Some(_)) => Some(sort.clone()),
        _ => None,
    };
    let mut fields = needs(&columns, &sort, args.filter.as_ref()) | selection.needs() | more;
    fields |= pick.as_ref().map_or(Fields::empty(), Sort::needs);
    fields.set(Fields::THREADS, threads);
    if let Some(of) = looks_back {
        let asked = columns.iter().map(|column| column.field);
        let asked = asked
            .chain(sort.fields())
            .chain(pick.iter().flat_map(Sort::fields));
        past::check(
            of,
            threads,
            asked.chain(args.filter.iter().flat_map(Filter::fields)),
        )?;
    }
    let of_shown = texts(columns.iter().map(|column| column.field));
    let of_all = texts(
        sort.fields()
            .chain(pick.iter().flat_map(Sort::fields))
            .chain(args.filter.iter().flat_map(Filter::fields)),
    );
    let cmdlines = (of_shown | of_all).contains(Texts::CMDLINE);
    let is_of_all = args.filter.is_none() && selection.is_open() && !tree;
    let fits = is_table && !like_ps && is_of_all && args.interval.is_none();
    let room = terminal::screen().filter(|_| fits && args.top.is_none());
    let room = room.map(|(lines, _)| redraw::rows_of(lines));
    let top = args.top.or(room);
    // For a few rows, the command lines are read one by one.
    let shows_all = top.is_none() && args.filter.is_none() && selection.admits_all();
    let wanted = if shows_all { of_shown | of_all } else { of_all };
    let kept = wanted & Texts::CMDLINE;
    let past = looks_back.map(|_| Past::read(&args, fields)).transpose()?;
    let mut live = if past.is_some() {
        None
    } else {
        let few = selection.pids().filter(|pids| pids.len() <= FEW);
        let few = few.filter(|_| args.interval.is_none() && !args.exited && !tree);
        Some(open(&args, fields, kept, args.exited && cmdlines, few)?)
    };
    privileges::drop()?;
    let lookup = match (&past, &live) {
        (Some(past), _) => past.lookup()?,
        (None, live) => {
            let host = live
                .as_ref()
                .map_or_else(Host::read, |live| Ok(live.host().clone()));
            let mut lookup = Lookup::new(&host?, false)?;
            lookup.open_files.read_from(args.source.kind());
            if args.interval.is_none() {
                lookup.open_files.once(selection.pids());
            }
            if args.exited && cmdlines {
                lookup.details.keep_earlier_cmdlines();
            }
            lookup
        }
    };
    let shown = columns.iter().map(|column| column.field);
    let guarded = shown
        .chain(args.filter.iter().flat_map(Filter::fields))
        .find(|field| past.is_none() && (field.is_guarded() || field.is_root_only()));
    let guarded = guarded.map(|field| {
        let whose = if field.is_guarded() {
            " of other users"
        } else {
            ""
        };
        field.column_heading() + whose
    });
    let mut screen = Screen {
        lookup,
        writer,
        pick,
        sort,
        top: top.unwrap_or(usize::MAX),
        is_cut: room.is_some(),
        selection,
        filter: args.filter,
        threads,
        tree,
        tree_of_ps,
        exited: args.exited,
        past: past.as_ref().map(Past::time),
        repeated: args.interval.is_some(),
        guarded,
        quiet: args.quiet || !args.verbose && (like_ps || !terminal::is_standard_output()),
        warns: !args.quiet,
        redraw: Redraw::new(args.interval.is_some() && is_table),
        sorter: if like_ps {
            <Sorter>::by_shown(ps1::write_sorted)
        } else {
            Sorter::default()
        },
        output: Output::default(),
    };
    let any = match (&past, &mut live, args.interval) {
        (Some(past), ..) => past.show(&mut screen)?,
        (None, Some(live), None) => {
            let fallback = summary::fallback(live);
            screen.show(&live.snapshot()?, None, fallback.as_deref())?
        }
        (None, Some(live), Some(interval)) => watch(live, &mut screen, interval, args.count)?,
        (None, None, _) => false,
    };
    Ok(if any {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO)
    })
}

/// So many processes are always read in less time from `/proc` than all by other sources.
const FEW: usize = 50;

/// Opens a collector of these groups of fields.
fn open(
    args: &Args,
    fields: Fields,
    texts: Texts,
    exit_cmdlines: bool,
    pids: Option<Vec<u32>>,
) -> Result<Collector, Failure> {
    let mut collector = Collector::builder()
        .fields(fields)
        .source(args.source.kind())
        .pids(pids)
        .exits(args.exited)
        .exit_cmdlines(exit_cmdlines)
        .texts(texts)
        .texts_max_age(Texts::MAX_AGE)
        .one_shot(args.interval.is_none())
        .open()?;
    match collector.take_exits_refused() {
        Some(error) => Err(UsageError::Exits(Box::new(error)).into()),
        None => Ok(collector),
    }
}

/// The id of this process.
pub fn own_pid() -> u32 {
    proc_root::own_pid().unwrap_or_else(std::process::id)
}

/// The groups of fields that the columns, the order and the filter need.
fn needs(columns: &[Column], sort: &Sort, filter: Option<&Filter>) -> Fields {
    let needs = columns
        .iter()
        .fold(sort.needs(), |needs, column| needs | column.field.needs);
    needs | filter.map_or(Fields::empty(), Filter::needs)
}

/// The texts that these fields need.
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
    // The first snapshot is only compared with the second.
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
        frozen::sleep(due.saturating_duration_since(now));
    }
    Ok(any)
}

/// When to take the next snapshot: a whole number of intervals after the last one was due.
///
/// A missed one is skipped, and so is one that is less than half an interval away: shares over so short a time mean
/// little.
fn next_due(due: Instant, interval: Duration, now: Instant) -> Instant {
    let late = now.saturating_duration_since(due);
    let intervals = (late.as_secs_f64() / interval.as_secs_f64() + 1.5).floor();
    due + interval.mul_f64(intervals.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::{plan::DEFAULT, *};

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
        assert_eq!(needs(DEFAULT, "-pcpu", None), Fields::TOP | Fields::USERS);
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
}
