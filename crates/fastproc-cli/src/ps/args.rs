//! The command line of `fastproc ps`.

use std::time::Duration;

use fastproc_columns::Filter;

use super::{
    form::{Column, Format},
    help,
    selection::{More, Select},
};
use crate::source::Source;

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
    pub(super) words: Vec<String>,

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
    pub(super) fields: Vec<Column>,

    /// What to sort by; with a minus sign, the largest first; the next field decides between equals
    ///
    /// Rows of which the value is not known come last, and equal ones in the order of their ids.
    ///
    /// [default: -pcpu; pid with --tree and the columns of ps(1)]
    #[arg(long, value_name = "[-]FIELD,…", allow_hyphen_values = true)]
    pub(super) sort: Option<String>,

    /// Show no more than the first N rows
    #[arg(long, value_name = "N")]
    pub(super) top: Option<usize>,

    /// Show only what meets a condition, as in 'rss > 100M && user != root'
    ///
    /// See Filters below. If nothing ever meets it, the exit status is 1.
    #[arg(long, value_name = "EXPR")]
    pub(super) filter: Option<Filter>,

    #[command(flatten)]
    pub(super) select: Select,

    /// Show every thread on a row of its own
    #[arg(long)]
    pub(super) threads: bool,

    /// Show children below their parents
    #[arg(long, conflicts_with = "threads")]
    pub(super) tree: bool,

    /// Repeat every so many seconds, with shares and rates over that time
    ///
    /// Every share is the CPU time used within the interval divided by the interval, of a process that was born in it too.
    /// Nothing is shown before the first interval is over. An interval that is missed is skipped. On a terminal each
    /// table takes the place of the one before, and has as many rows as there is room for.
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    pub(super) interval: Option<Duration>,

    /// Show what ended in the interval as well, with what it did in it
    ///
    /// Processes that lived between two looks are among them, however short. Their shares are of the whole interval,
    /// as all are, so that all rows add up to what the machine did. Their state is X; a process may be told of one interval late.
    /// Takes a service, or the privileges of reading by BPF.
    #[arg(long, requires = "interval", conflicts_with = "threads")]
    pub(super) exited: bool,

    /// Stop after N times; until interrupted if not set
    #[arg(long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,

    /// How to write it
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,

    /// Write JSON: short for --format json
    #[arg(long, conflicts_with = "format")]
    pub(super) json: bool,

    /// Do not name the columns of a table or of csv
    #[arg(long, visible_alias = "no-headings", aliases = NO_HEADINGS)]
    pub(super) no_headers: bool,

    /// In csv, write a ' before texts that a spreadsheet would take for a formula
    #[arg(long)]
    pub(super) no_formulas: bool,

    /// Where to read from
    #[arg(long, value_enum, default_value_t)]
    pub(super) source: Source,

    /// Do not say on standard error what was read
    ///
    /// It is said only below a table of fastproc's own that goes to a terminal.
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Say it in any case
    #[arg(long, conflicts_with = "quiet")]
    pub(super) verbose: bool,

    #[command(flatten)]
    pub(super) as_in_ps: AsInPs,

    #[command(flatten)]
    pub(super) more: More,
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
pub(super) struct AsInPs {
    /// Columns as ps(1) writes them: pid,user:20,rss=MEMORY
    ///
    /// With a heading of one's own after =, none at all if nothing follows, and a width after a colon.
    #[arg(short = 'o', value_name = "COLUMN,…", conflicts_with = "fields")]
    pub(super) columns: Vec<String>,

    /// The same between the process id and the state, the terminal, the time and the command
    #[arg(short = 'O', value_name = "COLUMN,…", conflicts_with_all = ["fields", "columns"])]
    pub(super) inserted: Vec<String>,

    /// Every process
    #[arg(short = 'e', short_alias = 'A')]
    pub(super) every: bool,

    /// Those on a terminal, but for those that lead a session
    #[arg(short = 'a')]
    pub(super) on_terminals: bool,

    /// Those that do not lead a session
    #[arg(short = 'd')]
    pub(super) not_leaders: bool,

    /// The columns of ps -f: user, pid, ppid, c, start, tty, time, command line
    #[arg(short = 'f')]
    pub(super) full: bool,

    /// The same with memory and CPU
    #[arg(short = 'F')]
    pub(super) extra_full: bool,

    /// The columns of ps -l
    #[arg(short = 'l')]
    pub(super) long: bool,

    /// Process groups and sessions
    #[arg(short = 'j')]
    pub(super) jobs: bool,

    /// With -l: resident memory instead of addresses
    #[arg(short = 'y', requires = "long")]
    pub(super) no_address: bool,

    /// Class and priority of scheduling
    #[arg(short = 'c')]
    pub(super) class: bool,

    /// The CPU
    #[arg(short = 'P')]
    pub(super) processor: bool,

    /// What a security module calls it
    #[arg(short = 'M', short_alias = 'Z', long = "context")]
    pub(super) label: bool,

    /// Children below their parents, by spaces
    #[arg(short = 'H')]
    pub(super) indented: bool,

    /// Children below their parents, by lines
    #[arg(long)]
    pub(super) forest: bool,

    /// Every thread, with its id
    #[arg(short = 'L')]
    pub(super) lwp: bool,

    /// The same as -L, under another heading
    #[arg(short = 'T', conflicts_with = "lwp")]
    pub(super) spid: bool,

    /// Wide: 132 columns, or as long as need be if given twice. A pipe or a file has no width
    #[arg(short = 'w', action = clap::ArgAction::Count)]
    pub(super) wide: u8,

    /// Columns of a line
    #[arg(long, value_name = "N", aliases = ["columns", "width"], value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) cols: Option<u32>,

    /// Numbers of users and groups instead of names
    #[arg(short = 'n')]
    pub(super) numbers: bool,
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
