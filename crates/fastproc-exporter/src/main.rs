//! `fastproc-exporter`: `fastproc serve` starts it to serve metrics. Started in another way it executes `fastproc
//! serve`, which has the flags.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use fastproc_exporter::{collected, options::Options, say};
use fastproc_metrics::error_chain;

/// The exit status after a failure.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let result = match Options::parse(&arguments) {
        None => Err(become_fastproc(&arguments)),
        Some(options) => options.and_then(|options| collected::run(&options)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error_chain(&*error));
            ExitCode::from(FAILED)
        }
    }
}

/// Executes the program beside this one, or the one that the shell would find.
fn become_fastproc(arguments: &[OsString]) -> collected::Failure {
    const PROGRAM: &str = "fastproc";
    let beside = env::current_exe()
        .ok()
        .map(|path| path.with_file_name(PROGRAM));
    let beside = beside.filter(|path| path.is_file());
    let program = beside.as_deref().map_or(OsStr::new(PROGRAM), AsRef::as_ref);
    let error = Command::new(program).arg("serve").args(arguments).exec();
    format!("cannot run fastproc, which collects what this program serves: {error}").into()
}
