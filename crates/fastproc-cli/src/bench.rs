//! `fastproc bench`: runs the program `fastproc-bench`, as git and cargo run their subcommands.

use std::{ffi::OsString, io, os::unix::process::CommandExt as _, process::ExitCode};

use fastproc::proc_root;

use crate::{failure::Failure, program};

/// The program: installed beside this one, or in a folder of PATH.
const PROGRAM: &str = "fastproc-bench";

/// Run a benchmark of fastproc-bench on this machine.
#[derive(clap::Args, Clone, Debug)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Run this benchmark with its arguments; fastproc bench --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error(
        "{PROGRAM} is not installed, neither beside this program nor in PATH. In fastproc's sources, \
         cargo build --release -p fastproc-bench builds it; make bench builds and runs it"
    )]
    NotInstalled,
    #[error("cannot run {PROGRAM}")]
    Failed(#[source] io::Error),
}

/// Replaces this process by the program.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut command = program::command(PROGRAM);
    command.env("HOST_PROC", &*proc_root::path("/proc"));
    let error = command.args(&args.arguments).exec();
    Err(match error.kind() {
        io::ErrorKind::NotFound => BenchError::NotInstalled,
        _ => BenchError::Failed(error),
    }
    .into())
}
