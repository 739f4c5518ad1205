//! The command `fastproc`, with one file for each subcommand.

mod bench;
mod cat;
mod cgroups;
mod colour;
mod completed;
mod doctor;
mod exits;
mod failure;
mod files;
mod format;
mod generate;
mod history;
mod output;
mod paragraphs;
mod privileges;
mod program;
mod ps;
mod record;
mod redraw;
mod rows;
mod run;
mod serve;
mod source;
mod standard;
mod terminal;
mod top;
mod usage;
mod verify;
mod version;

use std::{
    ffi::OsStr,
    io::{self, IsTerminal as _, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{
    ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};

use failure::Failure;

/// A negative result: no row matched, or a value was wrong.
const NO: u8 = 1;
/// The command line is invalid (clap's status), or the command could not run.
const FAILED: u8 = 2;

/// Read processes and counters of Linux by BPF, instead of parsing /proc.
///
/// A BPF program writes plain records of all processes into memory that it shares with this command, which costs a small
/// fraction of reading the files of /proc. Where BPF cannot be used, fastproc reads /proc and shows the same values.
#[derive(Debug, Parser)]
#[command(name = "fastproc", version, max_term_width = 100)]
#[command(after_help = SHORT_AFTER_HELP)]
#[command(after_long_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Read the proc file system that is mounted at this folder, as in a container that has the host's.
    #[arg(long, value_name = "FOLDER", global = true, hide_short_help = true)]
    procfs: Option<PathBuf>,
    /// Take the cgroup hierarchy of version 2 that is mounted at this folder, where several are.
    #[arg(long, value_name = "FOLDER", global = true, hide_short_help = true)]
    cgroup_root: Option<PathBuf>,
    /// Search this folder of a container runtime for names too, such as a data-root of Docker. Can be repeated.
    #[arg(long, value_name = "FOLDER", global = true, hide_short_help = true)]
    container_root: Vec<PathBuf>,
    /// Colour the tables of ps, exits, cgroups, files and sockets and the report of doctor; auto: on a terminal.
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        global = true,
        hide_short_help = true
    )]
    color: ColorChoice,
}

impl Cli {
    fn run(self) -> Result<ExitCode, Failure> {
        if let Some(folder) = &self.procfs {
            fastproc::proc_root::set(folder)?;
        }
        if let Some(folder) = &self.cgroup_root {
            fastproc::cgroup_root::set(folder)?;
        }
        fastproc::set_roots(self.container_root)?;
        terminal::set_colour(self.color);
        if self.command.prints() {
            standard::output()?;
        }
        self.command.run()
    }
}

const SHORT_AFTER_HELP: &str = "\
Without a command, fastproc shows top on a terminal, and this help elsewhere.
fastproc COMMAND -h lists the options of a command; --help also explains them.";

const AFTER_HELP: &str = "\
fastproc COMMAND -h lists the options of a command; --help also explains them.

Examples:
  fastproc ps --top 20       List the processes with the largest CPU share
  fastproc top               Show the processes on a screen, as fastproc alone does on a terminal
  fastproc exits             Show processes as they exit
  fastproc ps --at 03:12     List the processes of that time, if fastproc record keeps a history
  fastproc cgroups --tree    Show the cgroups and what they use
  fastproc files --count     List the processes with the most open files
  fastproc sockets --listen  List who listens where
  fastproc serve             Serve metrics to Prometheus, at 127.0.0.1:9256
  fastproc record            Record what runs each second, for later
  fastproc run -- top        Run the top of procps, with faster reading
  fastproc cat /proc/1/stat  Print the file, rendered from a record
  fastproc verify            Compare every value with the kernel's own files
  fastproc doctor            Report what works on this machine, and what is missing
  fastproc --version --json  Report the version and how it was built, for programs

Data:
  ps, exits, cgroups, files, sockets and top --once write JSON and CSV with exact numbers: --format. Python has the
  same fields as tables for Polars, pandas and Arrow: import fastproc.

Durations:
  A duration is a number of seconds, as in 2 or 0.5, or has units (ns, us, ms, s, m, h, d), as in
  500ms or 1m30s.

Exit status:
  0  success; also if the reader of a pipe closed it early
  1  a negative result: ps, exits, cgroups, files and sockets showed no row, cat could not print a file, verify
     found a wrong value or compared nothing, or run --system status found that it is off
  2  the command line is invalid, or the command could not run; standard error has the reason

Environment:
  NO_COLOR         if set and not empty, no colour is used unless --color says so
  COLUMNS          the width of a table, instead of that of the terminal
  HOST_PROC        where the proc file system is mounted, as --procfs says
  FASTPROC_SOCKET  the socket of the service, instead of /run/fastproc/fastproc.sock; if empty, no
                   service is used

Privileges:
  Reading by BPF needs CAP_BPF and CAP_PERFMON. When the BPF programs are loaded, fastproc drops all
  other capabilities except CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, which reading the files of other
  users' processes in /proc needs.";

#[derive(Debug, Subcommand)]
enum Command {
    Ps(Box<ps::Args>),
    Top(Box<top::Args>),
    Exits(Box<exits::Args>),
    History(history::Args),
    Cgroups(Box<cgroups::Args>),
    Files(Box<files::Args>),
    Sockets(Box<files::sockets::Args>),
    Doctor(doctor::Args),
    Verify(verify::Args),
    Cat(cat::Args),
    Serve(Box<serve::Args>),
    Record(Box<record::Args>),
    Run(run::Args),
    #[command(hide = true)]
    Bench(bench::Args),
    #[command(hide = true)]
    Generate(generate::Args),
}

impl Command {
    /// Whether it is of no use without standard output.
    fn prints(&self) -> bool {
        !matches!(
            self,
            Self::Top(_) | Self::Serve(_) | Self::Record(_) | Self::Run(_) | Self::Bench(_)
        )
    }

    fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Ps(args) => ps::run(*args),
            Self::Top(args) => top::run(*args),
            Self::Exits(args) => exits::run(*args),
            Self::History(args) => history::run(&args),
            Self::Cgroups(args) => cgroups::run(&args),
            Self::Files(args) => files::run(&args),
            Self::Sockets(args) => files::sockets::run(&args),
            Self::Doctor(args) => doctor::run(&args),
            Self::Verify(args) => verify::run(&args),
            Self::Cat(args) => cat::run(&args),
            Self::Serve(args) => serve::run(&args),
            Self::Record(args) => record::run(&args),
            Self::Run(args) => run::run(&args),
            Self::Bench(args) => bench::run(&args),
            Self::Generate(args) => generate::run(&args),
        }
    }
}

/// The definition of the command line, with help texts as they are shown.
fn command() -> clap::Command {
    usage::complete(plain_command())
}

fn plain_command() -> clap::Command {
    Cli::command().mut_args(|arg| arg.help_heading("Options of all commands"))
}

fn parse(arguments: &[impl AsRef<OsStr>]) -> clap::error::Result<Cli> {
    // Completing the help takes longer than parsing, so that is left to who reads the help or an error.
    let words = || arguments.iter().map(AsRef::<OsStr>::as_ref);
    let parsed = plain_command().try_get_matches_from(words());
    let parsed = parsed.or_else(|_| command().try_get_matches_from(words()));
    Cli::from_arg_matches(&parsed?)
}

/// Raises the limit of open files to its maximum, because files that are read repeatedly stay open.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let limits = Rlimit {
            current: maximum,
            maximum,
        };
        // If this fails, the limit stays.
        let _ = setrlimit(Resource::Nofile, limits);
    }
}

fn main() -> ExitCode {
    raise_descriptor_limit();
    if version::is_asked(std::env::args_os()) {
        if let Err(error) = standard::output() {
            return failed(&error);
        }
        return match version::print_json() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        };
    }
    let mut arguments = ps::as_in_ps(serve::with_two_dashes(std::env::args_os()));
    if arguments.len() < 2 {
        let shows_top = io::stdin().is_terminal() && io::stdout().is_terminal();
        arguments.push(if shows_top { "top" } else { "-h" }.into());
    }
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => return answer(&usage::in_our_words(error, &arguments)),
    };
    match cli.run() {
        Ok(code) => code,
        Err(failure) if failure::is_broken_pipe(failure.as_ref()) => ExitCode::SUCCESS,
        Err(failure) => failed(failure.as_ref()),
    }
}

/// Prints the help, the version, or what is wrong with the command line.
fn answer(error: &clap::Error) -> ExitCode {
    if let (Err(closed), false) = (standard::output(), error.use_stderr()) {
        return failed(&closed);
    }
    let printed = match error.get(ContextKind::Custom) {
        Some(ContextValue::String(list)) => io::stdout().write_all(list.as_bytes()),
        _ if error.use_stderr() => {
            let text = error.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            io::stderr().write_all(format!("fastproc: {text}").as_bytes())
        }
        _ => error.print(),
    };
    match printed {
        Err(failure) if failure.kind() != io::ErrorKind::BrokenPipe && !error.use_stderr() => {
            failed(&failure)
        }
        _ if error.use_stderr() => ExitCode::from(FAILED),
        _ => ExitCode::SUCCESS,
    }
}

fn failed(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    // Nothing can be reported if standard error is closed.
    let _ = writeln!(io::stderr(), "fastproc: {}", failure::shown(error));
    ExitCode::from(FAILED)
}
