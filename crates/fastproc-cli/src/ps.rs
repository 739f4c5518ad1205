//! `fastproc ps`: the process table.

mod before;
pub mod form;
pub mod help;
mod ps1;
mod redraw;
#[cfg(test)]
mod round_trip;
mod screen;
pub mod selection;
mod summary;
mod words;

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use fastproc::{Baseline, Collector, Fields, Texts};
use fastproc_columns::{Field, Filter, Lookup, Sort, Sorter};

use self::{
    form::{Column, Follows, Form, Format, Layout},
    redraw::Redraw,
    screen::Screen,
    selection::{Choice, More, Select, Selection},
    words::Words,
};
use crate::{NO, failure::Failure, output::Output, privileges, source::Source, terminal};

pub use self::before::as_in_ps;

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
    sort: Option<String>,

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
    #[arg(long)]
    threads: bool,

    /// Show children below their parents
    #[arg(long, conflicts_with = "threads")]
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

    /// Write JSON: short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Do not name the columns of a table or of csv
    #[arg(long, visible_alias = "no-headings", aliases = NO_HEADINGS)]
    no_headers: bool,

    /// In csv, write a ' before texts that a spreadsheet would take for a formula
    #[arg(long)]
    no_formulas: bool,

    /// Where to read from
    #[arg(long, value_enum, default_value_t)]
    source: Source,

    /// Do not say on standard error what was read
    ///
    /// It is said only below a table of fastproc's own that goes to a terminal.
    #[arg(short, long)]
    quiet: bool,

    /// Say it in any case
    #[arg(long, conflicts_with = "quiet")]
    verbose: bool,

    #[command(flatten)]
    as_in_ps: AsInPs,

    #[command(flatten)]
    more: More,
}

/// Other ways to say --no-headers that ps(1) knows.
const NO_HEADINGS: [&str; 6] = [
    "no-header",
    "no-heading",
    "noheader",
    "noheaders",
    "noheading",
    "noheadings",
];

/// What people are used to type.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "As in ps(1)")]
#[allow(clippy::struct_excessive_bools, reason = "one for each letter")]
struct AsInPs {
    /// Columns as ps(1) writes them: pid,user:20,rss=MEMORY
    ///
    /// With a heading of one's own after =, none at all if nothing follows, and a width after a colon.
    #[arg(short = 'o', value_name = "COLUMN,…", conflicts_with = "fields")]
    columns: Vec<String>,

    /// The same between the process id and the state, the terminal, the time and the command
    #[arg(short = 'O', value_name = "COLUMN,…", conflicts_with_all = ["fields", "columns"])]
    inserted: Vec<String>,

    /// Every process
    #[arg(short = 'e', short_alias = 'A')]
    every: bool,

    /// Those on a terminal, but for those that lead a session
    #[arg(short = 'a')]
    on_terminals: bool,

    /// Those that do not lead a session
    #[arg(short = 'd')]
    not_leaders: bool,

    /// The columns of ps -f: user, pid, ppid, c, start, tty, time, command line
    #[arg(short = 'f')]
    full: bool,

    /// The same with memory and CPU
    #[arg(short = 'F')]
    extra_full: bool,

    /// The columns of ps -l
    #[arg(short = 'l')]
    long: bool,

    /// Process groups and sessions
    #[arg(short = 'j')]
    jobs: bool,

    /// With -l: resident memory instead of addresses
    #[arg(short = 'y', requires = "long")]
    no_address: bool,

    /// Class and priority of scheduling
    #[arg(short = 'c')]
    class: bool,

    /// The CPU
    #[arg(short = 'P')]
    processor: bool,

    /// What a security module calls it
    #[arg(short = 'M', short_alias = 'Z', long = "context")]
    label: bool,

    /// Children below their parents, by spaces
    #[arg(short = 'H')]
    indented: bool,

    /// Children below their parents, by lines
    #[arg(long)]
    forest: bool,

    /// Every thread, with its id
    #[arg(short = 'L')]
    lwp: bool,

    /// The same as -L, under another heading
    #[arg(short = 'T', conflicts_with = "lwp")]
    spid: bool,

    /// Wide: 132 columns, or as long as need be if given twice. A pipe or a file has no width
    #[arg(short = 'w', action = clap::ArgAction::Count)]
    wide: u8,

    /// Columns of a line
    #[arg(long, value_name = "N", aliases = ["columns", "width"], value_parser = clap::value_parser!(u32).range(1..))]
    cols: Option<u32>,

    /// Numbers of users and groups instead of names
    #[arg(short = 'n')]
    numbers: bool,
}

/// Something that ps(1) would do, and this does not.
#[derive(Debug, thiserror::Error)]
enum UsageError {
    #[error(
        "cannot sort by '{0}', a rate over an interval, and there is none; give one, as in --interval 1"
    )]
    Rate(&'static str),
    #[error(
        "what has ended cannot be shown by threads: leave out --exited, or --threads, -L, -T or H"
    )]
    ExitedThreads,
    #[error("what ends cannot be recorded")]
    Exits(#[source] Box<fastproc::Error>),
    #[error("--tree and threads cannot be shown together")]
    TreeOfThreads,
    #[error(
        "a word such as 'u' and an option such as -f each name a set of columns; type one of them, as in ps aux or ps -ef"
    )]
    Sets,
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
    let words = words::understand(&args.words)?;
    let format = if args.json { Format::Json } else { args.format };
    let like_ps = args.is_like_ps(&words, format);
    let Asked {
        form,
        columns,
        selection,
        sort,
        threads,
        tree,
        needs: more,
    } = args.ask(words, format, like_ps)?;
    if threads && tree {
        return Err(UsageError::TreeOfThreads.into());
    }
    if threads && args.exited {
        return Err(UsageError::ExitedThreads.into());
    }
    if args.interval.is_none() {
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
    let mut fields = needs(&columns, &sort, args.filter.as_ref()) | selection.needs() | more;
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
    let mut screen = Screen {
        lookup: Lookup::new(collector.host(), false)?,
        form,
        sort,
        top: args.top.unwrap_or(usize::MAX),
        selection,
        filter: args.filter,
        threads,
        tree,
        tree_of_ps,
        exited: args.exited,
        repeated: args.interval.is_some(),
        quiet: args.quiet || !args.verbose && (like_ps || !terminal::is_standard_output()),
        warns: !args.quiet,
        redraw: redraw(args.interval, format),
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

/// Where one table is drawn over the other.
fn redraw(interval: Option<Duration>, format: Format) -> Option<Redraw> {
    Redraw::new().filter(|_| interval.is_some() && format == Format::Table)
}

/// What a call comes down to, in the words of fastproc or those of ps(1).
struct Asked {
    form: Box<dyn Form>,
    columns: Vec<Column>,
    selection: Selection,
    sort: Sort,
    threads: bool,
    tree: bool,
    /// Groups of fields that the columns of ps(1) are taken from.
    needs: Fields,
}

/// Our own columns, for those who name none.
const DEFAULT: &str = "pid,user,state,pcpu,pmem,rss,vsize,num_threads,etime,time,comm";
/// The same for threads.
const OF_THREADS: &str = "pid,tid,user,state,pcpu,processor,etime,time,comm";
/// Columns of a line after one `-w`.
const WIDE: u32 = 132;

impl Args {
    /// Whether an option or a word says which columns of ps(1) to show.
    fn names_columns_of_ps(&self, words: &Words) -> bool {
        let ps = &self.as_in_ps;
        words.any
            || !(ps.columns.is_empty() && ps.inserted.is_empty())
            || ps.full
            || ps.extra_full
            || ps.long
            || ps.jobs
            || ps.class
            || ps.processor
            || ps.label
            || ps.indented
            || ps.forest
            || ps.lwp
            || ps.spid
    }

    /// Whether an option of ps(1) selects or orders what is shown.
    fn selects_as_ps(&self, selection: &Selection) -> bool {
        let ps = &self.as_in_ps;
        !selection.admits_all()
            || ps.every
            || ps.wide > 0
            || ps.cols.is_some()
            || ps.numbers
            || self.sort.is_some()
            || self.no_headers
    }

    /// Whether an option asks for what ps(1) does not have.
    fn is_own(&self) -> bool {
        self.threads
            || self.tree
            || self.top.is_some()
            || self.filter.is_some()
            || self.interval.is_some()
    }

    /// Whether the output is that of ps(1).
    fn is_like_ps(&self, words: &Words, format: Format) -> bool {
        let selection = &self.selection(words);
        format == Format::Table
            && self.fields.is_empty()
            && (self.names_columns_of_ps(words)
                || (self.selects_as_ps(selection) && !self.is_own()))
    }

    /// Which processes are named, by lists and letters.
    fn selection(&self, words: &Words) -> Selection {
        let mut selection = Selection::from(&self.select);
        selection.and(Selection::from(&self.more));
        selection.and(words.selection.clone());
        let ps = &self.as_in_ps;
        let choices = [
            (ps.every, Choice::All),
            (ps.on_terminals, Choice::OnTerminals),
            (ps.not_leaders, Choice::NotLeaders),
        ];
        for (_, choice) in choices.iter().filter(|(is_chosen, _)| *is_chosen) {
            selection.choose(*choice);
        }
        selection
    }

    fn shape(&self, words: &Words) -> Result<ps1::Shape, UsageError> {
        let ps = &self.as_in_ps;
        let shape = ps1::Shape {
            full: ps.full,
            extra_full: ps.extra_full,
            long: ps.long,
            jobs: ps.jobs,
            no_address: ps.no_address,
            class: ps.class,
            processor: ps.processor,
            label: ps.label || words.shape.label,
            lwp: ps.lwp,
            spid: ps.spid,
            ..words.shape
        };
        if words.sets && shape.is_dashed() {
            return Err(UsageError::Sets);
        }
        Ok(shape)
    }

    /// The columns as ps(1) writes them.
    fn columns_of_ps(&self, words: &Words) -> Result<Vec<ps1::Column>, Failure> {
        let shape = self.shape(words)?;
        let parse = |lists: &[String]| {
            let lists = lists.iter().map(|list| ps1::parse(list));
            let lists = lists.collect::<Result<Vec<_>, _>>();
            lists.map(|lists| lists.into_iter().flatten().collect::<Vec<_>>())
        };
        let ps = &self.as_in_ps;
        let named = [parse(&ps.columns)?, words.columns.clone()].concat();
        if !named.is_empty() {
            return Ok(named);
        }
        let inserted = [parse(&ps.inserted)?, words.inserted.clone()].concat();
        Ok(if inserted.is_empty() {
            shape.columns()
        } else {
            let command = if words.any { "comm" } else { "args" };
            let [before, after] = ["pid", &format!("s,tname,time,{command}")].map(ps1::parse);
            [before?, inserted, after?].concat()
        })
    }

    fn ask(&self, words: Words, format: Format, like_ps: bool) -> Result<Asked, Failure> {
        let ps = &self.as_in_ps;
        let threads = self.threads || words.threads || ps.lwp || ps.spid;
        let tree = self.tree || words.tree || ps.indented || ps.forest;
        let mut selection = self.selection(&words);
        if like_ps && selection.is_open() && !self.is_own() {
            selection.choose(if words.any {
                Choice::Bsd {
                    others: false,
                    without_terminal: false,
                }
            } else {
                Choice::OwnOnTerminal
            });
        }
        let names_columns = self.fields.is_empty() && self.names_columns_of_ps(&words);
        let of_ps = if names_columns || like_ps {
            self.columns_of_ps(&words)?
        } else {
            Vec::new()
        };
        let may_drop = self.fields.is_empty() && of_ps.is_empty();
        let columns = if may_drop {
            parse_columns(if threads { OF_THREADS } else { DEFAULT })?
        } else if of_ps.is_empty() {
            self.fields.clone()
        } else {
            ps1::own(&of_ps)
        };
        let needs = if like_ps {
            ps1::needs(&of_ps)
        } else {
            Fields::empty()
        };
        let default = match (of_ps.is_empty(), tree) {
            // Children in the order in which they were born.
            (false, true) => "starttime",
            (true, false) => "-pcpu",
            _ => "pid",
        };
        let sort = self.sort.as_deref().or(words.sort.as_deref());
        let sort = sort.unwrap_or(default);
        let sort = if like_ps {
            let sort = ps1::sort_keys(sort);
            let by_parents = if tree { "ppid," } else { "" };
            format!("{by_parents}{sort}").parse()?
        } else {
            let own = sort.parse::<Sort>();
            own.or_else(|error| ps1::sort_keys(sort).parse().map_err(|_| error))?
        };
        let headings = !(self.no_headers || words.no_headings);
        let form: Box<dyn Form> = if like_ps {
            let wide = ps.wide.saturating_add(words.wide);
            let one_wide = Some(WIDE.max(terminal::width().unwrap_or(0) as u32));
            Box::new(ps1::Table {
                columns: of_ps,
                headings,
                width: ps
                    .cols
                    .or(one_wide.filter(|_| wide == 1 && terminal::width().is_some()))
                    .map(|width| width as usize),
                unlimited: wide > 1,
                numbers: ps.numbers || words.shape.numbers,
                is_next: false,
            })
        } else {
            format.writer(Layout {
                columns: columns.clone(),
                headings,
                may_drop,
                follows: if redraw(self.interval, format).is_some() {
                    Follows::InPlace
                } else {
                    Follows::Apart
                },
                no_formulas: self.no_formulas,
            })
        };
        Ok(Asked {
            form,
            columns,
            selection,
            sort,
            threads,
            tree,
            needs,
        })
    }
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

    #[test]
    fn an_interval_is_a_time() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "nan", "inf", "x", "", "1e300"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
