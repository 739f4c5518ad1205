//! `fastproc-bench`, which `fastproc bench` runs: what reading costs, measured here and now.

mod all;
mod attach;
mod command;
mod decimal;
mod exits;
mod groups;
mod hostile;
mod idle;
mod latency;
mod measure;
mod python;
mod report;
mod scan;
mod scan_fastproc;
mod scan_proc;
mod scrape;
mod server;
mod stat;
mod stat_latency;
mod taskstats;
mod text;
mod tools;
mod top;

use std::process::ExitCode;

use clap::Parser;

use self::measure::Failure;

/// A value was wrong.
const NO: u8 = 1;
/// The benchmark could not run, or was called wrongly (clap's own choice for the latter).
const FAILED: u8 = 2;

/// Measure what reading costs on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "fastproc-bench",
    bin_name = "fastproc bench",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
enum Bench {
    /// Read every process once: by /proc, and by what this machine can do better.
    Scan(scan::Args),
    /// Scrape the metrics that `fastproc serve` serves.
    Scrape(scrape::Args),
    /// Read /proc/stat and /proc/vmstat: the kernel's way, and ours.
    Stat(stat::Args),
    /// Read /proc/stat 10,000 times, with interrupt counts that may be 0 to 1000 ms old.
    StatLatency(stat_latency::Args),
    /// Make the texts of processes: the kernel's way, by printf, and ours.
    Text(text::Args),
    /// Turn numbers into text in base ten: our way, and others.
    Decimal(decimal::Args),
    /// Record every process that ends: what it costs, how many a second it stands, and whether CPU time adds up.
    Exits(exits::Args),
    /// Compare what the exporter's groups count with /proc/stat, while processes come and go as when a program is compiled.
    Groups(groups::Args),
    /// Wait for the CPU, as a real-time and as an ordinary thread, while processes are read there.
    Latency(latency::Args),
    /// Run procps's tools as they are, and with the substitute for their library.
    Tools(tools::Args),
    /// Read the processes from Python: by psutil, and by the package fastproc.
    Python(python::Args),
    /// Look once: ps(1), and ours with and without a resident service; the CPU time of reader and service together.
    Attach(attach::Args),
    /// Look by the service while another user attacks it.
    Hostile(hostile::Args),
    /// Show processes on a screen: fastproc top, htop, btop and top.
    Top(top::Args),
    /// Run all of them but that from Python, and write one JSON object.
    All(all::Args),
}

impl Bench {
    /// Runs it and prints its report on standard output.
    fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Scan(args) => scan::run(args)?,
            Self::Scrape(args) => scrape::run(args)?,
            Self::Stat(args) => stat::run(args)?,
            Self::StatLatency(args) => stat_latency::run(args)?,
            Self::Text(args) => text::run(args)?,
            Self::Latency(args) => latency::run(args)?,
            Self::Exits(args) => exits::run(args)?,
            Self::Groups(args) => groups::run(args)?,
            Self::Tools(args) => tools::run(args)?,
            Self::Python(args) => python::run(args)?,
            Self::Attach(args) => attach::run(args)?,
            Self::Hostile(args) => hostile::run(args)?,
            Self::Top(args) => top::run(args)?,
            Self::All(args) => all::run(args)?,
            Self::Decimal(args) => return decimal::run(args),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn main() -> ExitCode {
    Bench::parse().run().unwrap_or_else(|failure| {
        eprintln!("fastproc-bench: {}", fastproc::error_chain(&*failure));
        ExitCode::from(FAILED)
    })
}
