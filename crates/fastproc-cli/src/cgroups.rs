//! `fastproc cgroups`: the table of cgroups.

mod past;

use std::{
    collections::HashSet,
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use fastproc::{
    cgroup_path_in,
    cgroups::{self, Cgroups},
    frozen, proc_root,
};
use fastproc_columns::{
    cgroups::{self as columns, Column, Filter, Lookup, Reader, Sort},
    equal_to, parse_interval,
};

use crate::{
    NO,
    completed::lines,
    failure::Failure,
    format::{Follows, Format, Layout, RowWriter, Rows},
    output::{Output, OutputError},
    privileges,
    ps::selection::Pids,
    redraw::Redraw,
    rows::Options,
    terminal,
};

const AFTER_HELP: &str = "\
Examples:
  fastproc cgroups
      Show the cgroups that use most memory
  fastproc cgroups --tree --interval 2
      Show the tree every two seconds, with what each cgroup used in between
  fastproc cgroups --interval 1 --sort -cpu --filter 'cpu > 5 && path =~ kubepods'
      Show the busy ones of Kubernetes
  fastproc cgroups --fields path,memory,oom_kills --json
      Write JSON for another program
  fastproc cgroups --at 03:12 --sort -memory
      Show those of a history: what had the memory at 03:12
  fastproc cgroups --from 03:00 --to 03:20 --sort -cpu_time
      Show what each did between the two, also those that were removed";

fn long_help() -> String {
    let marks = |column: &Column| {
        if column.is_rate {
            "*".into()
        } else {
            String::new()
        }
    };
    let columns = lines(columns::COLUMNS, marks, 98);
    format!("Fields:\n{columns}{LONG_HELP}{AFTER_HELP}{EXIT_STATUS}")
}

const SORT: &str = "\
Sort by these fields; a minus sign puts the largest value first.

The default is -memory, or -cpu with --interval, or path where neither is known. With --tree it is the order among siblings, \
by default by path.";
const TOP: &str = "\
Show only the first N rows; with --tree, the N rows that use most, or are first by --sort, and their ancestors";

const LONG_HELP: &str = "  Fields marked * are known only with --interval. A - means that there is no limit, or that the
  value is not known: the controller is not enabled for the cgroup, or it is on version 1 (fastproc
  doctor names those). A default field that is unknown for every row is left out.
  Values cover a cgroup and its descendants, except those marked “own”. A table pads a column to at
  most 256 columns; a longer path moves the rest of its row. The totals below it are left out with
  --no-headers.

Filters:
  Filters are those of fastproc ps: comparisons with == != < <= > >=, =~ and !~ with a regular
  expression, joined by && || ! and parentheses. Sizes, times and shares may have units:
  memory > 100M && (cpu > 50% || throttled_time > 1m).

JSON and CSV:
  Numbers are exact: times in nanoseconds (_ns), sizes in bytes (_bytes), shares in percent. JSON says
  when the snapshot began (boottime_ns); with --interval, each row of CSV begins with it. left_out is
  the number of cgroups that are not shown, with those below them, because their paths are too long:
  of more than 4,000 bytes, or 1,024 or 64 parts from a service.

";

const EXIT_STATUS: &str = "

Exit status:
  0  at least one row was shown
  1  no row was shown
  2  the command line is invalid, or cgroups cannot be read";

/// Show the cgroups of version 2 and what they use.
///
/// fastproc cgroups reads all cgroups in one pass by BPF, and the root from the kernel's files. Where BPF cannot be used, and for
/// one table of at most 50 cgroups, it reads all from the files.
#[derive(Debug, clap::Args)]
#[command(
    max_term_width = 100,
    after_help = AFTER_HELP,
    after_long_help = long_help(),
    mut_arg("sort", |sort| sort.long_help(SORT)),
    mut_arg("top", |top| top.help(TOP))
)]
pub struct Args {
    #[command(flatten)]
    rows: Options<columns::Cgroups>,

    /// Show only the cgroups in which these processes are.
    #[arg(short, long, value_name = "PID,…")]
    pid: Vec<Pids>,

    /// Show descendants below their cgroup.
    #[arg(long)]
    tree: bool,

    /// Repeat at this interval, as in 2, 0.5 or 500ms, with shares and rates over it.
    #[arg(long, value_name = "DURATION", value_parser = parse_interval, conflicts_with_all = ["at", "from"])]
    interval: Option<Duration>,

    /// Stop after N tables; the default is to continue until interrupted.
    #[arg(long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with_all = ["at", "from"])]
    count: Option<u64>,

    /// Read cgroups from this source.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["at", "from"])]
    source: Source,

    #[command(flatten)]
    times: past::Times,
}

/// Where cgroups are read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Source {
    /// The first of the following sources that works on this machine, or the files for one table of few cgroups
    #[default]
    Auto,
    /// A BPF program (Linux 6.7 and later)
    Bpf,
    /// A service (fastproc serve --no-metrics --socket), which shows a user what it may read
    Service,
    /// The kernel's files; needs no privileges
    #[value(alias = "procfs")]
    Files,
}

impl Source {
    fn kind(self) -> Option<cgroups::Source> {
        match self {
            Self::Auto => None,
            Self::Bpf => Some(cgroups::Source::Bpf),
            Self::Service => Some(cgroups::Source::Service),
            Self::Files => Some(cgroups::Source::Files),
        }
    }
}

/// What is left for the path by leaving out other columns.
const ROOM_FOR_PATH: usize = 24;

/// A value is known only over an interval.
#[derive(Debug, thiserror::Error)]
#[error("{0} is known only over an interval: {1}")]
struct NeedsInterval(&'static str, &'static str);

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let is_repeated = args.interval.is_some();
    let window = args.times.asks_for_window()?;
    let has_rates = is_repeated || window == Some(true);
    let options = &args.rows;
    let filter = options.filter_and(in_cgroups_of(&args.pid)?);
    let shown = options.fields_or(|| columns::defaults(has_rates));
    let named = options.sort.iter().flat_map(Sort::fields);
    let named: Vec<_> = named
        .chain(filter.iter().flat_map(Filter::fields))
        .collect();
    let used: Vec<_> = shown.iter().chain(&named).copied().collect();
    if !has_rates {
        if let Some(filter) = &filter {
            filter.check_for_one_snapshot()?;
        }
        if let Some(rate) = used.iter().find(|column| column.is_rate) {
            let give = window.map_or("add --interval", |_| "give --from instead of --at");
            return Err(NeedsInterval(rate.name, give).into());
        }
    }
    if let Some(window) = window {
        past::check(window, options.fields.iter().chain(&named).copied())?;
    }
    let by_default: Sort = if has_rates { "-cpu" } else { "-memory" }.parse()?;
    let columns: Vec<_> = used.iter().copied().chain(by_default.fields()).collect();
    let format = options.written.format();
    let redraw = Redraw::new(is_repeated && format == Format::Table);
    let layout = Layout {
        headings: !options.written.no_headers,
        may_drop: options.fields.is_empty(),
        room_for_last: ROOM_FOR_PATH,
        follows: Follows::after(redraw.as_ref()),
        no_formulas: options.written.no_formulas,
        ..Layout::new(shown.into_iter().map(Into::into).collect())
    };
    let mut screen = Screen {
        options,
        filter,
        pick: options.sort.clone().unwrap_or(by_default),
        tree: args.tree.then(HashSet::new),
        layout,
        writer: None,
        redraw,
        lookup: Lookup::default(),
        output: Output::default(),
    };
    let any = if window.is_some() {
        let past = args.times.read(&columns, options.quiet)?;
        privileges::drop()?;
        screen.show(past.rows(), past.document(), None)?
    } else {
        watch(args, &columns, &mut screen)?
    };
    Ok(if any {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO)
    })
}

/// Shows the cgroups of now, once or at every interval. Returns whether there was a row.
fn watch(args: &Args, columns: &[&Column], screen: &mut Screen<'_>) -> Result<bool, Failure> {
    let is_repeated = args.interval.is_some();
    let mut reader = Reader::open(columns, args.source.kind(), !is_repeated)?;
    privileges::drop()?;
    let options = screen.options;
    if !options.quiet {
        warn(reader.cgroups(), options.written.format());
    }
    let mut any = false;
    let mut due = Instant::now();
    let mut left_out = 0;
    for times in 0.. {
        reader.read()?;
        let last = reader.cgroups().last();
        // The totals that are drawn in place tell it, and other text would disturb the drawing.
        let is_told = options.quiet || times > 0 && screen.has_total() && screen.redraw.is_some();
        if let Some(count) = more(&mut left_out, last.left_out()).filter(|_| !is_told) {
            say_left_out(count);
        }
        if times > 0 || !is_repeated {
            let document = format!(
                r#"{{"source":"{}","boottime_ns":{},"left_out":{},"cgroups":["#,
                reader.cgroups().source(),
                last.began_ns(),
                last.left_out(),
            );
            let boottime_ns = is_repeated.then(|| last.began_ns());
            any |= screen.show(reader.rows(), document, boottime_ns)?;
            if Some(times) == args.count {
                break;
            }
        }
        let Some(interval) = args.interval else {
            break;
        };
        due += interval;
        let now = Instant::now();
        due = due.max(now);
        frozen::sleep(due - now);
    }
    Ok(any)
}

/// Shows rows.
struct Screen<'o> {
    options: &'o Options<columns::Cgroups>,
    filter: Option<Filter>,
    /// Which rows come first.
    pick: Sort,
    tree: Option<HashSet<u64>>,
    layout: Layout<columns::Cgroups>,
    writer: Option<Box<dyn RowWriter<columns::Cgroups>>>,
    redraw: Option<Redraw>,
    lookup: Lookup,
    output: Output,
}

impl Screen<'_> {
    fn has_total(&self) -> bool {
        let written = &self.options.written;
        written.format() == Format::Table && !written.no_headers
    }

    /// Returns whether there are any.
    fn show(
        &mut self,
        mut rows: columns::Rows<'_>,
        document: String,
        boottime_ns: Option<u64>,
    ) -> Result<bool, Failure> {
        let (options, format) = (self.options, self.options.written.format());
        let sort = options.sort.as_ref();
        let sort = sort.or(self.tree.is_none().then_some(&self.pick));
        rows.arrange(sort, self.tree.as_ref(), self.filter.as_ref());
        let total = self.has_total().then(|| rows.total());
        let mut top = options.top.unwrap_or(usize::MAX);
        if self.tree.is_some() && options.top.is_some() {
            rows.keep_first(&self.pick, top);
            top = usize::MAX;
        }
        let lookup = &mut self.lookup;
        let writer = self.writer.get_or_insert_with(|| {
            if self.layout.may_drop && format == Format::Table && !rows.is_empty() {
                self.layout.columns.retain(|column| {
                    let mut values = rows.iter();
                    values.any(|row| column.field.value(row, lookup).kind().is_some())
                });
            }
            format.writer(self.layout.clone())
        });
        let any = !rows.is_empty() && top > 0;
        let room = self.redraw.as_ref().map_or(usize::MAX, Redraw::rows);
        let shown = Rows {
            document,
            boottime_ns,
            shown: Box::new(rows.iter().copied().take(top.min(room))),
        };
        let mut table = Vec::new();
        let to: &mut dyn Write = if self.redraw.is_some() {
            &mut table
        } else {
            &mut self.output
        };
        let written = writer.write(shown, lookup, to);
        written.map_err(OutputError::from)?;
        let written = match (&mut self.redraw, total) {
            (Some(redraw), total) => redraw.draw(&table, total.as_deref(), &mut self.output),
            (None, Some(total)) if terminal::is_standard_output() => {
                writeln!(self.output, "\n{total}")
            }
            _ => Ok(()),
        };
        written.map_err(OutputError::from)?;
        self.output.finish()?;
        Ok(any)
    }
}

/// A process that is in no cgroup of version 2.
#[derive(Debug, thiserror::Error)]
#[error("process {0} does not exist, or is in no cgroup of version 2")]
struct NoCgroup(u32);

/// The filter for the cgroups of processes.
fn in_cgroups_of(pids: &[Pids]) -> Result<Option<Filter>, Failure> {
    let path = |pid: u32| {
        let file = std::fs::read(proc_root::path(&format!("/proc/{pid}/cgroup"))).ok()?;
        Some(equal_to("path", cgroup_path_in(&file)?))
    };
    let pids = pids.iter().flat_map(|list| &list.0);
    let paths = pids.map(|&pid| path(pid).ok_or(NoCgroup(pid)));
    let paths: Vec<_> = paths.collect::<Result<_, _>>()?;
    let filter = Some(paths.join(" || ")).filter(|filter| !filter.is_empty());
    Ok(filter.map(|filter| filter.parse()).transpose()?)
}

/// How many cgroups are left out, if more than the last time.
fn more(last: &mut usize, now: usize) -> Option<usize> {
    let before = std::mem::replace(last, now);
    (now > before).then_some(now)
}

/// Says that the output does not have all cgroups. JSON has their number in each snapshot, too.
fn say_left_out(count: usize) {
    // Nothing can be reported if standard error is closed.
    let _ = writeln!(
        io::stderr(),
        "fastproc: not shown because their paths are too long: {count} cgroups, and those below them"
    );
}

/// Says on a terminal which values are not known.
fn warn(reader: &Cgroups, format: Format) {
    let absent = reader.absent_controllers();
    if format == Format::Table && !absent.is_empty() && terminal::shows_errors() {
        // Nothing can be reported if standard error is closed.
        let _ = writeln!(
            io::stderr(),
            "fastproc: not on version 2, so not known and left out: {}",
            absent.join(", ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::more;

    #[test]
    fn that_cgroups_are_left_out_is_said_whenever_there_are_more() {
        let mut last = 0;
        let told = [0, 2, 2, 3, 1, 2].map(|now| more(&mut last, now));
        assert_eq!(told, [None, Some(2), None, Some(3), None, Some(2)]);
    }
}
