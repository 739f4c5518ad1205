//! `fastproc bench all`: every benchmark, one after the other, in one JSON object.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use super::measure::{Failure, progress};

/// The benchmarks of docs/performance.md.
const BENCHES: [&str; 6] = ["scan", "latency", "scrape", "attach", "exits", "top"];

/// Arguments of `fastproc bench all`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write the object to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs every benchmark as a separate process, like a user, and combines their reports.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (program, machine) = (std::env::current_exe()?, machine());
    let progress = progress(BENCHES.len() as u64, "{pos}/{len} {msg} {elapsed}");
    progress.enable_steady_tick(Duration::from_secs(1));
    let mut reports = Vec::new();
    for name in BENCHES {
        progress.set_message(name);
        let output = Command::new(&program)
            .args([name, "--json"])
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            progress.finish_and_clear();
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("fastproc bench {name}: {}: {}", output.status, why.trim()).into());
        }
        reports.push(String::from_utf8(output.stdout)?.trim().to_owned());
        progress.inc(1);
    }
    progress.finish_and_clear();
    // One report on each line.
    let text = format!(
        "{{\"machine\":{},\"reports\":[\n{}\n]}}\n",
        serde_json::to_string(&machine)?,
        reports.join(",\n")
    );
    match &args.output {
        Some(path) => fs::write(path, text)?,
        None => print!("{text}"),
    }
    Ok(())
}

/// A short description of the machine.
fn machine() -> String {
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("processor not named", |(_, model)| model);
    let uname = rustix::system::uname();
    let memory = rustix::system::sysinfo();
    format!(
        "Linux {} ({}), {} CPUs ({model}), {:.0} GiB of memory, a load of {:.1} before",
        uname.release().to_string_lossy(),
        uname.machine().to_string_lossy(),
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory.totalram as f64 * f64::from(memory.mem_unit) / f64::from(1 << 30),
        memory.loads[0] as f64 / f64::from(1 << 16),
    )
}
