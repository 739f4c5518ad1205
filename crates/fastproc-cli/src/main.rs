//! The command `fastproc`: one file a subcommand.

mod bench;
mod cat;
mod doctor;
mod exits;
mod failure;
mod generate;
mod output;
mod privileges;
mod ps;
mod run;
mod serve;
mod source;
mod terminal;
mod top;
mod usage;
mod verify;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

use failure::Failure;

/// The answer is no: nothing matched, or a value was wrong.
const NO: u8 = 1;
/// The command could not run, or was called wrongly (clap's own choice for the latter).
const FAILED: u8 = 2;

/// What a Linux machine says about itself, straight from the kernel's structures.
///
/// The process table is read by a BPF program that writes plain records into memory which it shares with this command,
/// at a small part of what it costs to read the files of /proc. Where BPF cannot be used, /proc is read, and shows the
/// same values.
#[derive(Debug, Parser)]
#[command(
    name = "fastproc",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
#[command(after_help = "Every subcommand has a --help of its own.")]
#[command(after_long_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Every subcommand has a --help of its own.

Examples:
  fastproc ps --top 20     the processes that used most CPU time
  fastproc top             the same on a screen, as it changes
  fastproc exits           processes as they end
  fastproc doctor          what this machine allows, and what is missing
  fastproc verify          whether every value is the kernel's own

Exit status:
  0  success; also when the reader of a pipe had enough and went away
  1  the answer is no: nothing matched, a value was wrong (each subcommand says which)
  2  the command line is wrong, or the command could not run; standard error says why

Environment:
  NO_COLOR  if set and not empty, nothing is coloured
  COLUMNS   width of a table, instead of the terminal's

Privileges:
  Reading by BPF takes CAP_BPF and CAP_PERFMON. What else root has is given up as soon as the
  programs are loaded, apart from what reading /proc of others takes (CAP_SYS_PTRACE and
  CAP_DAC_READ_SEARCH).";

#[derive(Debug, Subcommand)]
enum Command {
    Ps(Box<ps::Args>),
    Top(Box<top::Args>),
    Exits(Box<exits::Args>),
    Doctor(doctor::Args),
    Verify(verify::Args),
    Cat(cat::Args),
    Serve(Box<serve::Args>),
    Run(run::Args),
    Bench(bench::Args),
    #[command(hide = true)]
    Generate(generate::Args),
}

impl Command {
    fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Ps(args) => ps::run(*args),
            Self::Top(args) => top::run(*args),
            Self::Exits(args) => exits::run(*args),
            Self::Doctor(args) => doctor::run(&args),
            Self::Verify(args) => verify::run(&args),
            Self::Cat(args) => cat::run(&args),
            Self::Serve(args) => serve::run(&args),
            Self::Run(args) => run::run(&args),
            Self::Bench(args) => bench::run(&args),
            Self::Generate(args) => generate::run(&args),
        }
    }
}

/// As many descriptors as this process may have: what is read again and again is kept open.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let limits = Rlimit {
            current: maximum,
            maximum,
        };
        // Whoever may not raise it has as many as before.
        let _ = setrlimit(Resource::Nofile, limits);
    }
}

fn main() -> ExitCode {
    raise_descriptor_limit();
    let arguments = ps::as_in_ps(serve::with_two_dashes(std::env::args_os()));
    let cli =
        Cli::try_parse_from(arguments).unwrap_or_else(|error| usage::in_our_words(error).exit());
    match cli.command.run() {
        Ok(code) => code,
        Err(failure) if failure::is_broken_pipe(failure.as_ref()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where standard error is closed there is nobody to tell.
            let _ = writeln!(
                io::stderr(),
                "fastproc: {}",
                failure::chain(failure.as_ref())
            );
            ExitCode::from(FAILED)
        }
    }
}
