//! The command `fastproc-testbed`: opens the testbed for a command, or until standard input is closed.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::unix::process::ExitStatusExt,
    process::{Command, ExitCode},
};

use clap::Parser;
use fastproc_testbed::{Options, Storm, Testbed, Why, catalogue};

/// Starts odd processes (zombies, traced ones, names with line breaks, nested namespaces, …), prints the pid and the label
/// of each, and keeps them while COMMAND runs, or until standard input is closed.
///
/// Reports on standard error the processes that this machine cannot provide. Exits with COMMAND's status; with 125 if
/// the testbed could not be opened or a test process failed because of a defect in the testbed.
#[derive(Parser)]
#[command(name = "fastproc-testbed")]
struct Args {
    /// Print the labels, and what /proc shows for each, and exit.
    #[arg(long)]
    list: bool,
    /// Start only these test processes, separated by commas.
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    only: Vec<String>,
    /// Also start and end processes and threads as fast as possible.
    #[arg(long)]
    storm: bool,
    /// The command to run beside the test processes.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// As env(1) and timeout(1): the tool itself failed, not the command.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let args = Args::parse();
    if args.list {
        for (label, expect) in catalogue() {
            let promises: Vec<String> = expect.iter().map(ToString::to_string).collect();
            println!("{label}: {}", promises.join("; "));
        }
        return ExitCode::SUCCESS;
    }
    run(&args).unwrap_or_else(|message| {
        eprintln!("fastproc-testbed: {message}");
        ExitCode::from(FAILED)
    })
}

fn run(args: &Args) -> Result<ExitCode, String> {
    let options = if args.only.is_empty() {
        Options::default()
    } else {
        Options::only(&args.only)
    };
    let testbed = Testbed::open(&options).map_err(|error| error.to_string())?;
    for process in testbed.processes() {
        println!("{}\t{}", process.pid, process.label);
    }
    for absent in testbed.absent() {
        eprintln!("fastproc-testbed: absent: {absent}");
    }
    let storm = if args.storm {
        Some(Storm::start().map_err(|error| error.to_string())?)
    } else {
        None
    };
    let broken = testbed
        .absent()
        .iter()
        .any(|absent| absent.why == Why::Broken);
    let code = match args.command.split_first() {
        None => {
            // The data is ignored; only its end matters.
            io::stdin()
                .lock()
                .read_to_end(&mut Vec::new())
                .map_err(|error| format!("standard input: {error}"))?;
            0
        }
        Some((program, arguments)) => {
            let status = Command::new(program)
                .args(arguments)
                .status()
                .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
            status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) as u8
        }
    };
    if let Some(storm) = storm {
        let tally = storm.stop().map_err(|error| error.to_string())?;
        eprintln!("fastproc-testbed: {tally:?}");
    }
    Ok(ExitCode::from(if broken && code == 0 {
        FAILED
    } else {
        code
    }))
}
