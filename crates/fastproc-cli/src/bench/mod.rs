//! `fastproc bench`: what it costs, measured here and now.

mod all;
mod decimal;
mod herd;
pub mod measure;
mod report;
mod scan;
mod scan_fastproc;
mod scan_proc;
mod scrape;
mod stat;
mod stat_latency;
mod taskstats;
mod text;

use std::{error::Error, process::ExitCode};

use clap::Subcommand;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum Bench {
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
    /// Run all of them, and write one Markdown table.
    All(all::Args),
}

impl Bench {
    /// Runs it and prints its report on standard output.
    pub fn run(&self) -> Result<ExitCode, Box<dyn Error + Send + Sync>> {
        match self {
            Self::Scan(args) => scan::run(args)?,
            Self::Scrape(args) => scrape::run(args)?,
            Self::Stat(args) => stat::run(args)?,
            Self::StatLatency(args) => stat_latency::run(args)?,
            Self::Text(args) => text::run(args)?,
            Self::All(args) => all::run(args)?,
            Self::Decimal(args) => return decimal::run(args),
        }
        Ok(ExitCode::SUCCESS)
    }
}
