//! What reading every cgroup costs, in instructions. The figures are in docs/cgroups.md.

use std::{
    io,
    process::{Command, Output},
    time::Instant,
};

use serde_json::Value;

use crate::reporter::Reporter;

/// A thousand cgroups. In a quarter of them a process runs before each reading.
const BENCH: [&str; 11] = [
    "/fastproc-bench",
    "cgroups",
    "--json",
    "--cgroups",
    "1000",
    "--processes",
    "250",
    "--rounds",
    "1",
    "--cpu",
    "0",
];

/// How many times cheaper a case is at least than another.
pub struct AtLeast {
    case: &'static str,
    than: &'static str,
    times: f64,
}

const fn at_least(case: &'static str, than: &'static str, times: f64) -> AtLeast {
    AtLeast { case, than, times }
}

/// A few percent less than what was measured with two CPUs, on 6.12 and 7.3.
pub const SMALL: [AtLeast; 3] = [
    at_least("bpf-pressure", "open-14", 72.0),
    at_least("bpf-pressure", "kept-14", 27.0),
    at_least("bpf-pressure-flush", "open-14", 68.0),
];
/// The same with eight.
pub const BIG: [AtLeast; 3] = [
    at_least("bpf-pressure", "open-14", 60.0),
    at_least("bpf-pressure", "kept-14", 23.0),
    at_least("bpf-pressure-flush", "open-14", 54.0),
];

/// Runs `bench cgroups`, and checks its ratios.
pub fn measure(reporter: &mut Reporter, wanted: &[AtLeast]) -> io::Result<()> {
    let started = Instant::now();
    let output = Command::new(BENCH[0]).args(&BENCH[1..]).output();
    let report: Value = output
        .as_ref()
        .ok()
        .and_then(|Output { stdout, .. }| serde_json::from_slice(stdout).ok())
        .unwrap_or_default();
    reporter.command("cgroups cost", &BENCH, started, output)?;
    let rows = report["rows"].as_array();
    let cost = |case: &str| {
        let row = rows?.iter().find(|row| row["case"] == case)?;
        row["cpu_us_per_cgroup"]["median"].as_f64()
    };
    for &AtLeast { case, than, times } in wanted {
        let found = cost(case)
            .zip(cost(than))
            .map_or(0.0, |(case, than)| than / case);
        reporter.check(
            &format!("{case} against {than}"),
            found >= times,
            format!("{found:.1} times cheaper; at least {times} are expected"),
        )?;
    }
    Ok(())
}
