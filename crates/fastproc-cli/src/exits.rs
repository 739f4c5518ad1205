//! `fastproc exits`: processes as they exit.

mod feed;
mod gathered;
mod known;
mod past;
mod refused;

use std::{
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use fastproc::{
    Cmdline, Host, Process, Texts,
    access::Viewer,
    difference::Ended,
    exits::{Event, Exit, Programs},
    host::boottime_ns,
};
use fastproc_columns::{self as columns, Filter, Lookup, Row, parse_duration};

use self::{
    feed::{Feed, Stops},
    gathered::{Gathered, Kept},
};
use crate::{
    NO,
    failure::Failure,
    format::{Column, Follows, Format, Layout, RowWriter, Rows, Written},
    history::when::When,
    output::{Output, OutputError},
    privileges,
    ps::{
        help::{field_parser, sort_parser},
        selection::{Select, Selection},
    },
    terminal,
    usage::unknown_field,
};

const AFTER_HELP: &str = "\
Examples:
  fastproc exits
  fastproc exits --filter 'status != 0' -o ended,pid,comm,status
  fastproc exits --for 30s --top 10
  fastproc exits --for 1m --summary --sort -time

See --help for fields, the columns of --summary, privileges and the exit status.";

const AFTER_LONG_HELP: &str = "\
Fields and filters are those of fastproc ps, as far as an exited process has them: --fields help
lists these, and others are refused. etime is its lifetime, pcpu covers it, vmhwm is its largest
resident memory, and cutime and the like are those of its children. cgroup and container are known
while the cgroup exists.

cmdline has the arguments with which the process executed its program; if it executed nothing, those
of the process that forked it. It is unknown if that exec or the fork was not recorded, for example
before this command started, or if the process that executed the program ended more than 10 seconds
earlier. At most 4 KiB are kept; 1 KiB while the lines that are kept exceed 4 MiB, and 512 bytes
while a quarter of the ring buffer is unread. If a line is cut, cmdline_cut is true: a table shows …
at the end, JSON has \"cmdline_cut\":true after it, and CSV marks it only in the column cmdline_cut,
if you ask for that. A filter shows a process if what is missing of its command line might meet the
condition.

A process is shown when its parent has waited for it and the kernel has released it, with the
kernel's final values. If the kernel's last record of it was lost, the process is shown some seconds
later with the values that are known, and final is false: the CPU time for releasing its memory and
the last time slice of a running thread are then missing. A process that exited before this command
started is not shown, unless events were lost: then it may appear without ended, ppid and etime.

Examples:
  fastproc exits
      Show every process as it exits
  fastproc exits --execs -o event,pid,ppid,user,cmdline
      Also show every program that is executed, with its arguments
  fastproc exits --filter 'status != 0' -o ended,pid,comm,status
      Show what fails or is killed
  fastproc exits --filter 'time > 1s' -o pid,etime,time,vmhwm,read_bytes,cmdline
      Show what used much CPU time
  fastproc exits --for 30s --top 10
      Show the ten that used most CPU time of all that end in half a minute
  fastproc exits --for 1m --summary --sort -time
      Show how many processes of each name end in a minute, and what they use
  fastproc exits --from 03:00 --to 03:20 --filter 'status != 0'
      Show what failed between the two, if fastproc record keeps a history
  fastproc exits --format ndjson > exits.ndjson
      Write JSON for another program

A table pads a column to at most 256 columns; a longer value moves the rest of its row.

The command runs until Ctrl-C, --for, --count, or until the reader of its output goes away. --sort and
--top keep at most a million processes, and then end.

The columns of --summary are count, failed, time, longest (lifetime), vmhwm (the largest), read_bytes,
write_bytes and comm. A table shows times below a minute as us, ms or s.

Privileges:
  Recording exits needs the privileges to read by BPF, or a service. A service shows each user what
  the kernel would show that user; it has no execs, and reports some tenths of a second later.
  Without the right to trace all processes, as after setcap cap_bpf,cap_perfmon+ep, this command
  shows all exits, but no exit status and no I/O, and arguments only of your own processes. A process
  is yours if all its ids, its user namespace and its capabilities are yours, both when it executed
  its program and when it ended.

Exit status:
  0  at least one row was shown
  1  no row was shown
  2  the command line is invalid, or exits cannot be recorded";

/// Show processes as they exit, however short their lifetime.
///
/// The scheduler's tracepoints record every process that exits, with its final values.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, after_help = AFTER_HELP, after_long_help = AFTER_LONG_HELP)]
#[allow(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Args {
    /// Show these fields, as for fastproc ps.
    ///
    /// The default is ended,pid,ppid,user,etime,time,vmhwm,status,cmdline. With --execs, it begins with event.
    #[arg(
        short = 'o',
        long = "fields",
        value_name = "FIELD,…",
        value_delimiter = ',',
        value_parser = field_parser().of(known::listed),
        hide_possible_values = true
    )]
    fields: Vec<Column>,

    /// Show only rows that match an expression, as in 'time > 1s && user != root'.
    #[arg(long, value_name = "EXPR")]
    filter: Option<Filter>,

    #[command(flatten)]
    select: Select,

    /// Also show every exec.
    #[arg(long, conflicts_with = "from")]
    execs: bool,

    /// Stop after this time, as in 30s or 5m.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, conflicts_with = "from")]
    duration: Option<Duration>,

    /// At the end, print one table of all that ended, sorted by these fields; a minus sign puts the largest value first.
    #[arg(long, value_name = "[-]FIELD,…", allow_hyphen_values = true, conflicts_with = "execs", value_parser = sort_parser().of(known::listed), hide_possible_values = true)]
    sort: Option<String>,

    /// At the end, print one table with the first N rows; the default order is -time.
    #[arg(long, value_name = "N", conflicts_with = "execs")]
    top: Option<usize>,

    /// At the end, print what the processes of each name did; --sort takes the columns of this table.
    #[arg(long, conflicts_with_all = ["execs", "fields"])]
    summary: bool,

    /// Stop after N rows; the default is to continue until interrupted.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    #[command(flatten)]
    when: When,

    #[command(flatten)]
    written: Written,

    /// Do not print to standard error how many events were lost, or what was not recorded.
    #[arg(short, long)]
    quiet: bool,
}

const EXITS: &str = "ended,pid,ppid,user,etime,time,vmhwm,status,cmdline";
/// The most processes that are kept for one table.
const MOST_KEPT: u64 = 1_000_000;
const EXITS_AND_EXECS: &str = "event,ended,pid,ppid,user,etime,time,vmhwm,status,cmdline";

/// Shows events until a signal, the count or a closed output ends it.
pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let (sort, top) = (args.sort.as_deref(), args.top.unwrap_or(usize::MAX));
    let gathered = match (args.summary, sort, args.top) {
        (true, ..) => Some(Gathered::names(sort, top)?),
        (false, None, None) => None,
        _ => {
            let all = Gathered::all(sort, top);
            Some(all.map_err(|error| unknown_field(error.to_string(), "--sort"))?)
        }
    };
    let format = match args.written.format() {
        Format::Json if gathered.is_none() => Format::Ndjson,
        format => format,
    };
    let may_drop = args.fields.is_empty() && gathered.is_some();
    let columns = if args.fields.is_empty() {
        let names = if args.execs { EXITS_AND_EXECS } else { EXITS };
        names.split(',').map(str::parse).collect::<Result<_, _>>()?
    } else {
        args.fields
    };
    let shown = columns.iter().map(|column: &Column| column.field);
    let looked_at = shown.chain(args.filter.iter().flat_map(Filter::fields));
    let looked_at = looked_at.chain(gathered.iter().flat_map(Gathered::fields));
    let looked_at: Vec<_> = looked_at.collect();
    let cmdlines = looked_at
        .iter()
        .any(|field| field.texts().contains(Texts::CMDLINE));
    let layout = Layout {
        headings: !args.written.no_headers,
        may_drop,
        follows: Follows::Continued,
        short_times: true,
        no_formulas: args.written.no_formulas,
        ..Layout::new(columns)
    };
    let keeps = gathered.is_some() && !args.summary;
    let left = args
        .count
        .unwrap_or(if keeps { MOST_KEPT } else { u64::MAX });
    let host = Host::read()?;
    let mut stream = Stream {
        lookup: Lookup::recorded(host.clone(), 0),
        writer: format.writer(layout.clone()),
        gathered,
        selection: (&args.select).into(),
        filter: args.filter,
        execs: args.execs,
        began_ns: 0,
        undated: Vec::new(),
        left,
        shown: 0,
        output: Output::default(),
    };
    if let Some(times) = args.when.times() {
        past::check(looked_at.into_iter())?;
        privileges::drop()?;
        past::show(
            &mut stream,
            &args.when.folder,
            times,
            !args.written.no_headers,
            args.quiet,
        )?;
        return stream.end(format, layout);
    }
    args.when.folder.check("--from")?;
    // Before privileges are dropped, and before any signal can be missed.
    let stops = Stops::new()?;
    stream.lookup = Lookup::new(&host, true)?;
    known::check(looked_at.into_iter(), args.execs, &mut stream.lookup)?;
    stream.began_ns = now_ns(&host);
    let mut feed = Feed::open(args.execs, cmdlines)?;
    privileges::drop()?;
    // A service hides what this user may not see.
    let sees_all = matches!(feed, Feed::Service(_)) || privileges::may_trace_all();
    stream.lookup.sees_all = sees_all;
    stream.lookup.set_time(0);
    if stream.gathered.is_some() {
        if terminal::shows_errors() && !args.quiet {
            // Nothing can be reported if standard error is closed.
            let _ = writeln!(io::stderr(), "fastproc: recording exits; Ctrl-C shows them");
        }
    } else if !args.written.no_headers {
        stream.head()?;
    }
    let began = Instant::now();
    let mut lost = 0;
    loop {
        let left = args
            .duration
            .map_or(Duration::MAX, |all| all.saturating_sub(began.elapsed()));
        let ends = stops.wait(feed.fd(), left.min(feed.patience()))?;
        feed.read(&mut stream)?;
        stream.judge_undated(feed.lost())?;
        stream.output.finish()?;
        if !args.quiet && feed.lost() > lost {
            let more = feed.lost() - lost;
            lost = feed.lost();
            // Nothing can be reported if standard error is closed.
            let _ = writeln!(io::stderr(), "fastproc: {more} events were lost");
        }
        if ends || left.is_zero() || stream.left == 0 {
            break;
        }
    }
    stream.end(format, layout)
}

/// The kernel's time since boot, which may differ from that of this time namespace.
fn now_ns(host: &Host) -> u64 {
    boottime_ns().saturating_add_signed(-host.boot_offset_ns)
}

/// Converts events to rows.
struct Stream {
    lookup: Lookup,
    writer: Box<dyn RowWriter>,
    /// What is shown at the end instead of as it happens.
    gathered: Option<Gathered>,
    selection: Selection,
    filter: Option<Filter>,
    execs: bool,
    /// When this command began, in nanoseconds after boot.
    began_ns: u64,
    /// Exits that came without the time of their end.
    undated: Vec<Kept>,
    left: u64,
    shown: u64,
    output: Output,
}

impl Stream {
    fn take(
        &mut self,
        event: &Event<'_>,
        viewer: &Viewer,
        programs: Option<&mut Programs>,
    ) -> Result<(), OutputError> {
        match event {
            Event::Exit(exit) => {
                let line = programs.and_then(|programs| programs.line(exit));
                let line = line.as_ref();
                self.show_exit(exit, line.and_then(|line| line.shown_to(viewer, exit)))
            }
            Event::Exec(exec) => {
                if let Some(programs) = programs {
                    programs.begins(exec);
                }
                if !self.execs {
                    return Ok(());
                }
                let record = exec.to_record();
                self.show(&Row {
                    event: Some(columns::Event::Exec(exec)),
                    ..Row::new(Process::new(&record, &[]))
                })
            }
            _ => Ok(()),
        }
    }

    fn show_exit(&mut self, exit: &Exit, cmdline: Option<Cmdline<'_>>) -> Result<(), OutputError> {
        match exit.end_ns {
            Some(end_ns) if end_ns < self.began_ns => Ok(()),
            Some(_) => self.show_dated_or_not(exit, cmdline),
            None => {
                self.undated.push(Kept::new(exit, cmdline));
                Ok(())
            }
        }
    }

    /// Shows the exits without the time of their end, if that may have been lost. If nothing has been lost so far,
    /// these processes ended before this command began, and the kernel has released them only now.
    fn judge_undated(&mut self, lost: u64) -> Result<(), OutputError> {
        let undated = std::mem::take(&mut self.undated);
        for kept in undated.iter().filter(|_| lost > 0) {
            self.show_dated_or_not(kept.exit(), kept.cmdline())?;
        }
        Ok(())
    }

    fn show_dated_or_not(
        &mut self,
        exit: &Exit,
        cmdline: Option<Cmdline<'_>>,
    ) -> Result<(), OutputError> {
        let record = exit.to_record();
        let change = Ended::whole(exit).change(&record);
        self.show(&Row::ended(change, cmdline))
    }

    fn show(&mut self, row: &Row<'_>) -> Result<(), OutputError> {
        if self.left == 0 || !self.selection.admits(row) {
            return Ok(());
        }
        self.lookup.now_ns = row.start_ns();
        if let Some(filter) = &self.filter
            && !filter.admits(row, &mut self.lookup)
        {
            return Ok(());
        }
        self.left -= 1;
        self.shown += 1;
        match (&mut self.gathered, row.event) {
            (Some(gathered), Some(columns::Event::Exit(exit, line))) => {
                gathered.add(exit, line);
                Ok(())
            }
            _ => self.write(Some(row)),
        }
    }

    /// Writes what was gathered. Returns the exit status.
    fn end(mut self, format: Format, layout: Layout) -> Result<ExitCode, Failure> {
        if let Some(gathered) = self.gathered.take() {
            let layout = Layout {
                follows: Follows::Apart,
                ..layout
            };
            gathered.write(format, layout, &mut self.lookup, &mut self.output)?;
        }
        self.output.finish()?;
        Ok(if self.shown > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(NO)
        })
    }

    /// Writes the heading, before the first event.
    fn head(&mut self) -> Result<(), OutputError> {
        self.write(None)?;
        self.output.finish()
    }

    fn write(&mut self, row: Option<&Row<'_>>) -> Result<(), OutputError> {
        let rows = Rows::of_events(row.copied().into_iter());
        let (writer, lookup) = (&mut self.writer, &mut self.lookup);
        Ok(writer.write(rows, lookup, &mut self.output)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_before_the_command_began_is_not_shown() {
        let host = Host::read().expect("facts about this machine");
        let mut stream = Stream {
            lookup: Lookup::new(&host, true).expect("a lookup"),
            writer: Format::Ndjson.writer(Layout::new(Vec::new())),
            gathered: None,
            selection: Selection::default(),
            filter: None,
            execs: false,
            began_ns: 10,
            undated: Vec::new(),
            left: 9,
            shown: 0,
            output: Output::default(),
        };
        let mut exit = Exit::default();
        for end_ns in [9, 10, 11] {
            exit.end_ns = Some(end_ns);
            stream.show_exit(&exit, None).expect("it is not written");
        }
        assert_eq!(stream.shown, 2);
        // The kernel released it only now, or what had its time was lost.
        exit.end_ns = None;
        for (lost, shown) in [(0, 2), (1, 3)] {
            stream.show_exit(&exit, None).expect("it is not written");
            stream.judge_undated(lost).expect("it is not written");
            assert_eq!(stream.shown, shown);
        }
    }
}
