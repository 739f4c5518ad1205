//! `fastproc bench all`: every benchmark, one after the other, in one Markdown table.

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

use super::measure::Failure;

/// The benchmarks, each with the arguments it is run with.
const BENCHES: [&[&str]; 6] = [
    &["scan"],
    &["decimal"],
    &["text"],
    &["stat"],
    &["stat-latency"],
    &["scrape"],
];

/// Arguments of `fastproc bench all`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write the table to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs every benchmark in a process of its own, as a person would, and puts their reports together.
pub fn run(args: &Args) -> Result<(), Failure> {
    let fastproc = std::env::current_exe()?;
    let mut rows = String::new();
    for bench in BENCHES {
        eprintln!("fastproc bench {} …", bench.join(" "));
        let output = Command::new(&fastproc)
            .arg("bench")
            .args(bench)
            .arg("--json")
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(format!(
                "fastproc bench {} failed: {}",
                bench.join(" "),
                output.status
            )
            .into());
        }
        let report: Value = serde_json::from_slice(&output.stdout)?;
        rows += &markdown_rows(&report);
    }
    let page = format!(
        "# What fastproc costs\n\n{}\n\n| bench | case | of | measure | median | min | max | times cheaper |\n\
         |---|---|---|---|---:|---:|---:|---:|\n{rows}",
        machine(),
    );
    match &args.output {
        Some(path) => fs::write(path, page)?,
        None => print!("{page}"),
    }
    Ok(())
}

/// The machine, in a sentence.
fn machine() -> String {
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("processor not named", |(_, model)| model);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<f64>().ok());
    let uname = rustix::system::uname();
    format!(
        "Measured by `make bench` on Linux {} ({}), {} CPUs ({model}), {:.0} GiB of memory. A case that has no ratio is \
         what the others of its bench are compared with, or is compared with nothing.",
        uname.release().to_string_lossy(),
        uname.machine().to_string_lossy(),
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        kib.unwrap_or(0.0) / 1024.0 / 1024.0,
    )
}

/// A line for each spread of each row.
fn markdown_rows(report: &Value) -> String {
    let bench = report["bench"].as_str().unwrap_or("?");
    let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let mut text = String::new();
    for row in rows.iter().filter_map(Value::as_object) {
        let case = row.get("case").and_then(Value::as_str).unwrap_or("?");
        let of: Vec<String> = row.iter().filter_map(label).collect();
        let ratio = row.iter().find(|(key, _)| key.starts_with("ratio_"));
        let ratio = ratio.and_then(|(_, ratio)| ratio.as_f64());
        let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let measures = row
            .iter()
            .filter(|(_, value)| value.get("median").is_some() || value.is_f64());
        for (name, value) in measures.filter(|(name, _)| !name.contains("ratio_")) {
            let number = |key: &str| {
                value
                    .get(key)
                    .and_then(Value::as_f64)
                    .map_or(String::new(), short)
            };
            let median = value.as_f64().map_or_else(|| number("median"), short);
            let _ = writeln!(
                text,
                "| {bench} | {case} | {} | {} | {median} | {} | {} | {ratio} |",
                of.join(", "),
                name.replace('_', " "),
                number("min"),
                number("max"),
            );
        }
    }
    text
}

/// What a row is about, besides its case: names, and whole numbers such as a latency.
fn label((key, value): (&String, &Value)) -> Option<String> {
    match value {
        Value::String(name) if key != "case" => Some(name.clone()),
        Value::Number(number) if number.is_u64() && key.ends_with("_ms") => {
            Some(format!("{number} ms"))
        }
        _ => None,
    }
}

fn short(number: f64) -> String {
    if number.abs() < 10.0 {
        format!("{number:.3}")
    } else {
        format!("{number:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spread_of_every_row_is_a_line() {
        let report = serde_json::json!({"bench": "scan", "rows": [
            {"case": "proc-3files", "cpu_us": {"min": 1.0, "median": 20.5, "max": 3.0}, "ratio_vs_x": 1.0},
            {"case": "bpf", "file": "stat", "latency_ms": 10, "elapsed_s": 0.5},
        ]});
        assert_eq!(
            markdown_rows(&report),
            "| scan | proc-3files |  | cpu us | 20.5 | 1.000 | 3.000 | 1.00 |\n\
             | scan | bpf | stat, 10 ms | elapsed s | 0.500 |  |  |  |\n"
        );
    }

    #[test]
    fn a_report_that_is_none_has_no_rows() {
        assert_eq!(markdown_rows(&serde_json::json!({})), "");
    }
}
