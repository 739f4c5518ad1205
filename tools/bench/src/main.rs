//! `fastproc-bench`, which `fastproc bench` runs: measures the cost of reading on this machine.

mod attach;
mod background;
mod cgroups;
mod command;
mod counters;
mod exits;
mod files;
mod forks;
mod history;
mod hostile;
mod idle;
mod latency;
mod measure;
mod python;
mod report;
mod scale;
mod scan;
mod scan_proc;
mod scrape;
mod server;
mod service;
mod top;

use std::process::ExitCode;

use clap::Parser;

use self::measure::{Common, Failure};

/// The benchmark could not run, or the command line is invalid (clap's status).
const FAILED: u8 = 2;

/// Measure the cost of reading on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "fastproc-bench",
    bin_name = "fastproc bench",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Subcommand)]
enum Bench {
    /// Read every process once, by /proc and by the other sources of this machine.
    Scan(scan::Args),
    /// Read up to a hundred thousand processes and threads, which are started here, and check what is read.
    Scale(scale::Args),
    /// Read the machine's counters once, by the kernel's texts and by BPF.
    Counters(counters::Args),
    /// Read every cgroup once, by the kernel's files and by the other sources of this machine.
    Cgroups(cgroups::Args),
    /// Read every open file once, by lsof, ss and /proc, and by BPF.
    Files(files::Args),
    /// Holds open files for the benchmark of this name.
    #[command(hide = true)]
    HoldFiles(files::HoldArgs),
    /// Scrape the metrics that `fastproc serve` serves.
    Scrape(scrape::Args),
    /// Record every exit: its cost, the sustainable rate, and whether CPU time adds up.
    Exits(exits::Args),
    /// Wait for the CPU, as a real-time and as an ordinary thread, while processes are read on it.
    Latency(latency::Args),
    /// Read the processes from Python, by psutil and by the package fastproc.
    Python(python::Args),
    /// Take single snapshots, by ps(1) and by fastproc with and without a service; CPU time of reader and service
    /// together.
    Attach(attach::Args),
    /// Take snapshots from the service while another user attacks it.
    Hostile(hostile::Args),
    /// Show processes on a screen: fastproc top, htop, btop and top.
    Top(top::Args),
    /// Record a history beside atop, and read it.
    History(history::Args),
    /// Measure changes that others made to make the kernel's texts cheaper, beside their figures.
    Background(background::Args),
}

fn run(Arguments { bench, common }: &Arguments) -> Result<(), Failure> {
    match bench {
        Bench::Scan(args) => scan::run(args, *common),
        Bench::Counters(args) => counters::run(args, *common),
        Bench::Scale(args) => scale::run(args, *common),
        Bench::Cgroups(args) => cgroups::run(args, *common),
        Bench::Files(args) => files::run(args, *common),
        Bench::HoldFiles(args) => files::hold(args),
        Bench::Scrape(args) => scrape::run(args, *common),
        Bench::Exits(args) => exits::run(args, *common),
        Bench::Latency(args) => latency::run(args, *common),
        Bench::Python(args) => python::run(args, *common),
        Bench::Attach(args) => attach::run(args, *common),
        Bench::Hostile(args) => hostile::run(args, *common),
        Bench::Top(args) => top::run(args, *common),
        Bench::History(args) => history::run(args, *common),
        Bench::Background(args) => background::run(args, *common),
    }
}

fn main() -> ExitCode {
    let Err(failure) = run(&Arguments::parse()) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("fastproc-bench: {}", fastproc::error_chain(&*failure));
    ExitCode::from(FAILED)
}
