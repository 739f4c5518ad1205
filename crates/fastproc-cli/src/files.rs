//! `fastproc files`: the table of open files.

mod lsof;
mod path;
pub mod sockets;
mod table;

use std::{path::PathBuf, process::ExitCode};

use fastproc_columns::files::{Each, Row};

use self::{lsof::Letters, path::Holds, table::Table};
use crate::{completed::lines, failure::Failure};

const QUESTIONS: &str = "\
Who holds deleted files?
  fastproc files --filter 'deleted && kind == file' --sort -size
Who has most descriptors?
  fastproc files --count --top 10
Who keeps /mnt from being unmounted?
  fastproc files --path /mnt
What has this process open?
  fastproc files 4242
Who writes below /var/log?
  fastproc files --path /var/log --filter 'mode != r'
Who uses the GPU?
  fastproc files --count -o pid,user,gpu_time,gpu_memory,comm --filter 'gpu_time > 0' --sort -gpu_time
In a script that reads lsof -F
  fastproc files -F pcfn";

fn long_help() -> String {
    let fields = lines(fastproc_columns::files::COLUMNS, |_| String::new(), 98);
    format!("Fields:\n{fields}{LONG_HELP}{EXIT_STATUS}")
}

const LONG_HELP: &str = "
  A - means that a process has no such value, or that the kernel does not show it to this user. Names
  are those of readlink /proc/PID/fd/N: paths as the process sees them, with \" (deleted)\" behind a
  removed one. The current directory (cwd), the root directory (rtd) and the program (txt) of a
  process are rows, too. Files that are only mapped into memory are not shown.

Filters:
  Filters are those of fastproc ps: comparisons with == != < <= > >=, =~ and !~ with a regular
  expression, joined by && || ! and parentheses. Sizes may have units: deleted && size > 1G.

lsof:
  -F writes the lines of lsof -F: a letter and a value. fastproc knows p (pid), c (name), u (user id),
  L (user), f (descriptor), a (mode), t (type), D (device), i (inode), s (size), o (position), n
  (name), and for sockets P (protocol) and T (state and queues). lsof itself reads /proc, and does not
  become faster.

";

const EXIT_STATUS: &str = "
Exit status:
  0  at least one row was shown
  1  no row was shown
  2  the command line is invalid, or files cannot be read";

/// Show the open files of processes, and who holds a path.
///
/// fastproc files asks a service, if one runs, or reads the tables of all processes in one pass by BPF. Where neither can be used,
/// for single processes, and where few files are open, it reads /proc.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, before_help = QUESTIONS, after_long_help = long_help())]
pub struct Args {
    #[command(flatten)]
    table: table::Common,

    /// Show a row for each process, with its numbers of open files; those with most come first.
    #[arg(long, conflicts_with_all = ["path", "lsof"])]
    count: bool,

    /// Show only who holds this file, or files below this folder or of the file system that is mounted there.
    #[arg(long, value_name = "PATH")]
    path: Vec<PathBuf>,

    /// Write the lines of lsof -F, with the values of these letters.
    #[arg(
        short = 'F',
        id = "lsof",
        value_name = "LETTERS",
        num_args = 0..=1,
        default_missing_value = "pcuftDsin",
        require_equals = false,
        conflicts_with_all = ["fields", "format", "json", "csv"]
    )]
    lsof: Option<Letters>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let each = if args.count {
        Each::Process
    } else {
        Each::File
    };
    let holds = args.path.iter().map(|path| Holds::new(path));
    let holds: Vec<Holds> = holds.collect::<Result<_, _>>()?;
    let mut needs = table::Needs {
        each,
        sort: args.count.then_some("-fds"),
        ..table::Needs::default()
    };
    if !holds.is_empty() {
        needs.fields |= Holds::FIELDS;
    }
    if let Some(letters) = &args.lsof {
        needs.fields |= letters.fields();
    }
    let table = Table::open(&args.table, needs)?;
    let is_wanted = |row: &Row<'_>| {
        let is_held = |(holder, file)| holds.iter().any(|holds| holds.is_by(holder, file));
        holds.is_empty() || row.holder.zip(row.file).is_some_and(is_held)
    };
    match &args.lsof {
        Some(letters) => table.write_with(is_wanted, |rows, lookup, output| {
            letters.write(rows, lookup, output)
        }),
        None => table.write(is_wanted),
    }
}
