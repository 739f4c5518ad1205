//! The command line of `fastproc ps`.

use std::time::Duration;

use fastproc_columns::{Filter, Needle, Processes, parse_instant, parse_interval};

use super::{
    help, plan,
    selection::{More, Select},
};
use crate::{
    completed::completed,
    format::{Column, Written},
    history::when::When,
    source::Source,
};

/// List processes.
///
/// fastproc ps reads every process in one pass and from one source. Without --interval, the CPU share of a process covers its
/// lifetime, as in ps(1). With --interval, all shares and rates cover the last interval.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, after_help = help::short(), after_long_help = help::long())]
#[allow(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Args {
    /// Options of ps(1) without a dash, such as aux or ax, and process ids.
    #[arg(value_name = "WORD")]
    pub(super) words: Vec<String>,

    /// Show these fields.
    ///
    /// They are named as in proc(5) or ps(1), or as their headings; see Fields below, or --fields help. The option can be
    /// repeated.
    /// Only these fields, and those that --sort and --filter name, are read.
    ///
    /// The default is pid, user, state, pcpu, pmem, rss, vsize, threads, etime, time and comm. A narrow terminal gets as many
    /// of these as fit, from the left, and comm. A list that begins with + is added to these, as in +sockets,listen.
    #[arg(
        long = "fields",
        value_name = "FIELD,…",
        value_delimiter = ',',
        value_parser = completed::<Processes, _>(plan::parse_field),
        hide_possible_values = true
    )]
    pub(super) fields: Vec<Column>,

    /// Sort by these fields; a minus sign puts the largest value first.
    ///
    /// The second field orders rows that are equal in the first, and so on; rows that are equal in all of them are ordered by
    /// process id. Rows without a value come last.
    ///
    /// The default is -pcpu; with --tree or the output of ps(1) it is pid.
    #[arg(
        long,
        value_name = "[-]FIELD,…",
        allow_hyphen_values = true,
        value_parser = help::sort_parser(),
        hide_possible_values = true
    )]
    pub(super) sort: Option<String>,

    /// Show only the first N rows; with --tree, the N rows that use most, or are first by --sort, and their ancestors.
    ///
    /// Without it a terminal gets as many rows as fit, and all rows of a selection, a filter or a tree; -e selects all.
    #[arg(long, value_name = "N")]
    pub(super) top: Option<usize>,

    /// Show only rows that match an expression, as in 'rss > 100M && user != root'.
    ///
    /// See Filters below. If no row matches, the exit status is 1.
    #[arg(long, value_name = "EXPR")]
    pub(super) filter: Option<Filter>,

    /// Show only processes whose name or command line has this text, in letters of either case.
    ///
    /// A terminal highlights it. The default columns then end with cmdline instead of comm.
    #[arg(long, value_name = "TEXT")]
    pub(super) search: Option<Needle>,

    #[command(flatten)]
    pub(super) select: Select,

    /// Show each thread on its own row.
    #[arg(long)]
    pub(super) threads: bool,

    /// Show children below their parents.
    #[arg(long, conflicts_with = "threads")]
    pub(super) tree: bool,

    /// Repeat at this interval, as in 2, 0.5 or 500ms, with shares and rates over it.
    ///
    /// A number without a unit is in seconds. The first table appears after the first interval. A share is the CPU time used
    /// in the interval divided by the length of the interval, also for a process that started within it. An interval that is
    /// missed is skipped. On a terminal each table replaces the previous one and has as many rows as fit.
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    pub(super) interval: Option<Duration>,

    /// Also show the processes that exited in the interval, with what they did in it.
    ///
    /// This includes processes that started and exited within the interval. Their shares are fractions of the whole interval,
    /// so that all rows add up to the work of the machine. Their state is X. An exit may appear one interval late.
    /// The option needs a service, or the privileges to read by BPF.
    #[arg(long, requires = "interval", conflicts_with = "threads")]
    pub(super) exited: bool,

    /// Stop after N tables; the default is to continue until interrupted.
    #[arg(long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,

    #[command(flatten)]
    pub(super) written: Written,

    /// Read processes from this source.
    #[arg(long, value_enum, default_value_t)]
    pub(super) source: Source,

    /// Do not print a summary to standard error.
    ///
    /// By default the summary is printed only if standard output is a terminal and the output is not that of ps(1).
    #[arg(long)]
    pub(super) quiet: bool,

    /// Always print the summary to standard error.
    #[arg(long, conflicts_with = "quiet")]
    pub(super) verbose: bool,

    /// Show the processes as they were at this time, as fastproc record has kept them.
    ///
    /// They are as the last walk before it saw them. --from has the forms of a time. Fields that the history does not keep
    /// are refused.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_instant, help_heading = "Looking back",
          conflicts_with_all = ["from", "to", "interval", "exited", "count", "threads", "source"])]
    pub(super) at: Option<i64>,

    #[command(flatten)]
    pub(super) when: When,

    #[command(flatten)]
    pub(super) as_in_ps: AsInPs,

    #[command(flatten)]
    pub(super) more: More,
}

impl Args {
    /// The option for more than one table.
    pub(super) fn repeats(&self) -> Option<&'static str> {
        self.interval.map(|_| "--interval")
    }
}

/// Options of ps(1), as people are used to typing them.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "As in ps(1)")]
#[allow(clippy::struct_excessive_bools, reason = "one for each letter")]
pub(super) struct AsInPs {
    /// Show these columns in the layout of ps(1), as in pid,user:20,rss=MEMORY.
    ///
    /// Text after = replaces the heading; without text there is no heading. A number after a colon is the width. A list can
    /// have codes of AIX instead, as in '%p %y %c'.
    #[arg(short = 'o', value_name = "COLUMN,…")]
    pub(super) columns: Vec<String>,

    /// Show these columns between the process id and the state, terminal, time and command.
    #[arg(short = 'O', value_name = "COLUMN,…", conflicts_with = "columns")]
    pub(super) inserted: Vec<String>,

    /// Select every process.
    #[arg(short = 'e', short_alias = 'A')]
    pub(super) every: bool,

    /// Select processes on a terminal, except session leaders.
    #[arg(short = 'a')]
    pub(super) on_terminals: bool,

    /// Select every process that is not a session leader.
    #[arg(short = 'd')]
    pub(super) not_leaders: bool,

    /// Show the columns of ps -f: user, pid, ppid, C, start, terminal, time, command line.
    #[arg(short = 'f')]
    pub(super) full: bool,

    /// Show the columns of ps -F: those of -f, with size, resident memory and CPU number.
    #[arg(short = 'F')]
    pub(super) extra_full: bool,

    /// Show the columns of ps -l.
    #[arg(short = 'l')]
    pub(super) long: bool,

    /// Show process groups and sessions.
    #[arg(short = 'j')]
    pub(super) jobs: bool,

    /// With -l, show resident memory instead of the address.
    #[arg(short = 'y', requires = "long")]
    pub(super) no_address: bool,

    /// Show scheduling class and priority.
    #[arg(short = 'c')]
    pub(super) class: bool,

    /// Show the number of the CPU that the process last ran on.
    #[arg(short = 'P')]
    pub(super) processor: bool,

    /// Show the security label.
    #[arg(short = 'M', short_alias = 'Z')]
    pub(super) label: bool,

    /// Show the process id, the security label and the command line.
    #[arg(long, conflicts_with_all = ["columns", "inserted"])]
    pub(super) context: bool,

    /// Show children below their parents, indented by spaces.
    #[arg(short = 'H')]
    pub(super) indented: bool,

    /// Show children below their parents, connected by lines.
    #[arg(long)]
    pub(super) forest: bool,

    /// Show each thread, with its id as LWP.
    #[arg(short = 'L')]
    pub(super) lwp: bool,

    /// Show each thread, with its id as SPID.
    #[arg(short = 'T', conflicts_with = "lwp")]
    pub(super) spid: bool,

    /// Use a width of 132 columns, or an unlimited width if given twice; a pipe or a file is not limited.
    #[arg(short = 'w', action = clap::ArgAction::Count)]
    pub(super) wide: u8,

    /// Set the width of a line, in columns.
    #[arg(long, value_name = "N", aliases = ["columns", "width"], value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) cols: Option<u32>,

    /// Show numeric ids of users and groups instead of names.
    #[arg(short = 'n')]
    pub(super) numbers: bool,
}
