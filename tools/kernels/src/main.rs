//! Boots distribution kernels in an emulator and tests fastproc on them.

mod apt;
mod architecture;
mod cache;
mod cpio;
mod cross;
mod evaluate;
mod expected;
mod finding;
mod image;
mod initramfs;
mod machine;
mod mirrors;
mod output;
mod page;
mod profiles;
mod programs;
mod qemu;
mod run;
mod series;
mod summary;

use std::{
    ffi::OsString,
    path::PathBuf,
    process::{Command as Program, ExitCode},
};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use fastproc_guest::scenario::Scenario;

use crate::{cache::Cache, cross::Toolchain, series::Wanted};

/// Boots Debian's cloud kernels in an emulator and tests fastproc on them.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The folder for packages, kernels and results
    #[arg(
        long,
        global = true,
        env = "FASTPROC_KERNELS_CACHE",
        default_value = "cache/kernels"
    )]
    cache: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch kernels into the cache, except those that it has
    Fetch {
        /// Read the archive's lists again, even if the cache has them
        #[arg(long)]
        refresh: bool,
        /// Kernel series such as 6.1 or 6.1-arm64, or “newest”
        #[arg(required = true)]
        series: Vec<Wanted>,
    },
    /// Boot kernels and report the results
    Test {
        /// The scenario that the guests run; may be given more than once
        #[arg(long = "scenario", value_name = "NAME")]
        scenarios: Vec<Scenario>,
        /// Write the findings as expected from now on to kernels/expected.toml and docs/kernels.md
        #[arg(long)]
        update: bool,
        /// Measure several times and compare, and boot the big machine with every kernel instead of only the newest
        #[arg(long)]
        thorough: bool,
        /// The number of guests that run at the same time
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
        jobs: u8,
        /// Kernel series such as 6.1 or 6.1-arm64, or “newest”
        #[arg(required = true)]
        series: Vec<Wanted>,
    },
    /// Write docs/kernels.md again from kernels/expected.toml
    Page,
    /// Run a command with a toolchain for arm64, which is fetched into the cache; without a command, only fetch it
    ///
    /// Cargo uses it with `--target aarch64-unknown-linux-gnu`. `FASTPROC_CROSS_CC` names the C compiler, and
    /// `FASTPROC_CROSS_SYSROOT` the libraries.
    Cross {
        /// The command and its arguments
        #[arg(trailing_var_arg = true)]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fastproc-kernels: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether the command succeeded.
fn run(arguments: Arguments) -> Result<bool> {
    let cache = Cache::at(&arguments.cache)?;
    match arguments.command {
        Command::Fetch { refresh, series } => {
            for image in image::fetch(&cache, &series, refresh)? {
                println!(
                    "{:<8} {:<28} {}",
                    image.series,
                    image.release,
                    image.kernel.display()
                );
            }
            Ok(true)
        }
        Command::Test {
            scenarios,
            update,
            thorough,
            jobs,
            series,
        } => {
            let scenarios = if scenarios.is_empty() {
                Scenario::PROOFS.to_vec()
            } else {
                scenarios
            };
            let plan = run::Plan {
                wanted: &series,
                scenarios: &scenarios,
                jobs: jobs.into(),
                update,
                thorough,
            };
            run::all(&cache, &plan)
        }
        Command::Page => {
            run::write_page()?;
            Ok(true)
        }
        Command::Cross { command } => {
            let toolchain = Toolchain::fetch(&cache)?;
            let Some((program, arguments)) = command.split_first() else {
                return Ok(true);
            };
            let status = Program::new(program)
                .args(arguments)
                .envs(toolchain.environment())
                .status()
                .with_context(|| format!("cannot run {}", program.display()))?;
            Ok(status.success())
        }
    }
}
