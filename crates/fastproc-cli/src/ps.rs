//! `fastproc ps`: the process table.

mod field;
mod filter;
mod form;
mod help;
mod names;
mod number;
mod sort;
mod subject;
mod summary;
mod threads;
mod value;

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use fastproc::{Baseline, Collector, Fields, Snapshot};

use self::{
    filter::Filter,
    form::{Column, Form, Format, Rows},
    sort::{Sort, Sorter},
    subject::{Lookup, Subject},
    summary::Summary,
    threads::ThreadBaseline,
};
use crate::{
    NO,
    failure::Failure,
    output::{Output, OutputError},
    privileges,
    source::Source,
};

/// Columns if none are named.
const COLUMNS: &str = "pid,user,state,pcpu,pmem,rss,vsize,num_threads,etime,time,comm";
/// The same for threads.
const THREAD_COLUMNS: &str = "pid,tid,user,state,pcpu,processor,etime,time,comm";

/// Show the processes
///
/// Every process is read at once and from one source, in a moment. Without --interval the CPU share of a process is
/// that over its lifetime, as in ps(1); with it, everything that is a share or a rate is over the last interval.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, after_help = help::SHORT, after_long_help = help::long())]
pub struct Args {
    /// Columns to show
    ///
    /// Fields by their names in proc(5) or ps(1), in letters of either case; see Fields below. May be given more than
    /// once. Only what the columns, --sort and --filter name is collected.
    ///
    /// If none is named: pid, user, state, pcpu, pmem, rss, vsize, threads, etime, time and comm.
    #[arg(
        short = 'o',
        long = "fields",
        value_name = "FIELD,…",
        value_delimiter = ','
    )]
    fields: Vec<Column>,

    /// What to sort by; with a minus sign, the largest first
    ///
    /// Rows of which the value is not known come last, and equal ones in the order of their ids.
    #[arg(
        long,
        value_name = "[-]FIELD",
        default_value = "-pcpu",
        allow_hyphen_values = true
    )]
    sort: Sort,

    /// Show no more than the first N rows
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Show only what meets a condition, as in 'rss > 100M && user != root'
    ///
    /// See Filters below. If nothing ever meets it, the exit status is 1.
    #[arg(long, value_name = "EXPR")]
    filter: Option<Filter>,

    /// Show every thread on a row of its own
    #[arg(long)]
    threads: bool,

    /// Repeat every so many seconds, with shares and rates over that time
    ///
    /// Nothing is shown before the first interval is over.
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    interval: Option<Duration>,

    /// Stop after N times; until interrupted if not said
    #[arg(long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// How to write it
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Where to read from
    #[arg(long, value_enum, default_value_t)]
    source: Source,

    /// Do not say on standard error what was read
    #[arg(short, long)]
    quiet: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
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
    let columns = if args.fields.is_empty() {
        let names = if args.threads {
            THREAD_COLUMNS
        } else {
            COLUMNS
        };
        names.split(',').map(str::parse).collect::<Result<_, _>>()?
    } else {
        args.fields
    };
    let mut collector = Collector::builder()
        .fields(needs(
            &columns,
            args.sort,
            args.filter.as_ref(),
            args.threads,
        ))
        .source(args.source.kind())
        .open()?;
    privileges::drop()?;
    // The kernel itself decides what its text shows.
    let sees_all = collector.array().is_none() || privileges::may_trace_all();
    let mut screen = Screen {
        lookup: Lookup::new(collector.host(), sees_all)?,
        form: args.format.writer(columns),
        sort: args.sort,
        top: args.top.unwrap_or(usize::MAX),
        filter: args.filter,
        threads: args.threads,
        repeated: args.interval.is_some(),
        quiet: args.quiet,
        sorter: Sorter::default(),
        scratch: Vec::new(),
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

/// The groups of fields that these ask for, and no other.
fn needs(columns: &[Column], sort: Sort, filter: Option<&Filter>, threads: bool) -> Fields {
    let mut needs = columns
        .iter()
        .fold(sort.field.needs, |needs, column| needs | column.field.needs);
    needs |= filter.map_or(Fields::empty(), Filter::needs);
    needs.set(Fields::THREADS, threads);
    needs
}

/// What the last snapshot had.
#[derive(Debug, Default)]
struct Before {
    processes: Baseline,
    threads: ThreadBaseline,
}

/// Shows a snapshot at the end of every interval. Returns whether any had a row.
fn watch(
    collector: &mut Collector,
    screen: &mut Screen,
    interval: Duration,
    count: Option<u64>,
) -> Result<bool, Failure> {
    let mut before = Before::default();
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
        before.processes.set(&snapshot);
        if screen.threads {
            before.threads.set(&snapshot);
        }
        screen.lookup.details.forget_gone(&snapshot);
        // Where a snapshot was late, what was missed is not made up for.
        due = (due + interval).max(Instant::now());
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(any)
}

/// Everything that is shown goes through here.
struct Screen {
    lookup: Lookup,
    form: Box<dyn Form>,
    sort: Sort,
    top: usize,
    filter: Option<Filter>,
    threads: bool,
    repeated: bool,
    quiet: bool,
    sorter: Sorter,
    scratch: Vec<u8>,
    output: Output,
}

impl Screen {
    /// Shows a snapshot. Returns whether it had a row.
    fn show(
        &mut self,
        snapshot: &Snapshot<'_>,
        before: Option<&Before>,
        fallback: Option<&str>,
    ) -> Result<bool, Failure> {
        self.lookup.set_clock(snapshot);
        let subjects = self.select(snapshot, before);
        let rows = self
            .sorter
            .first(self.sort, self.top, &subjects, &mut self.lookup);
        let shown = rows.len();
        let rows = Rows {
            stats: snapshot.stats(),
            processes: snapshot.len(),
            threads: self.threads,
            repeated: self.repeated,
            subjects: Box::new(rows),
        };
        self.form
            .write(rows, &mut self.lookup, &mut self.output)
            .map_err(OutputError::from)?;
        self.output.finish()?;
        if !self.quiet {
            let summary = Summary {
                snapshot: *snapshot,
                shown,
                threads: self.threads,
                fallback,
            };
            summary.write();
        }
        Ok(shown > 0)
    }

    /// The processes or threads that the filter admits.
    fn select<'a>(&mut self, snapshot: &Snapshot<'a>, before: Option<&Before>) -> Vec<Subject<'a>> {
        let mut subjects = Vec::with_capacity(if self.filter.is_none() {
            snapshot.len()
        } else {
            0
        });
        let mut take = |subject: Subject<'a>| {
            let admitted = self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.admits(&subject, &mut self.lookup, &mut self.scratch));
            if admitted {
                subjects.push(subject);
            }
        };
        if self.threads {
            let mut process = None;
            for thread in snapshot.threads() {
                // Threads of a process mostly follow one another.
                if process.is_none_or(|process: fastproc::Process<'_>| process.pid() != thread.tgid)
                {
                    process = snapshot.get(thread.tgid);
                }
                let Some(process) = process else { continue };
                take(Subject {
                    process,
                    thread: Some(thread),
                    change: before.map(|before| before.threads.change(process, thread, snapshot)),
                });
            }
        } else if let Some(before) = before {
            before.processes.changes(snapshot).for_each(|change| {
                take(Subject {
                    process: change.process,
                    thread: None,
                    change: Some(change),
                });
            });
        } else {
            snapshot.iter().for_each(|process| {
                take(Subject {
                    process,
                    thread: None,
                    change: None,
                });
            });
        }
        subjects
    }
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
            needs(
                &columns,
                sort.parse().expect("a field"),
                filter.as_ref(),
                false,
            )
        };
        assert_eq!(
            needs("pid,comm,cmdline,etime", "pid", None),
            Fields::empty()
        );
        assert_eq!(needs("pid,rss", "-pcpu", None), Fields::TOP);
        assert_eq!(
            needs("pid", "pid", Some("user == root && read_bytes > 0")),
            Fields::CREDENTIALS | Fields::IO
        );
        assert_eq!(
            needs(COLUMNS, "-pcpu", None),
            Fields::TOP | Fields::CREDENTIALS
        );
    }

    #[test]
    fn an_interval_is_a_time() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "nan", "inf", "x", "", "1e300"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
