//! Storms on machines with many CPUs, on which the kernel keeps many parts of a process's counters per CPU: every value of
//! every process, by the walk that keeps records, and by a service that uses it.

use std::{
    io,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    json, proofs::FASTPROC, reporter::Reporter, service::Service, survey::read, testbed::TESTBED,
};

/// After this time no further comparison begins.
const LASTS: Duration = Duration::from_secs(240);
/// Comparisons of every process by one `verify`. Each takes dozens of snapshots, and from the second on records are kept.
const ROUNDS: &str = "1";
/// Fewer comparisons prove too little.
const AT_LEAST: u64 = 20_000;

/// Compares by both sources while there is a storm. This many CPUs must be possible.
pub fn compare(reporter: &mut Reporter, cpus: usize) -> io::Result<()> {
    let possible = read("/sys/devices/system/cpu/possible");
    let meant = format!("0-{}", cpus - 1);
    reporter.check("possible CPUs", possible.trim() == meant, possible.trim())?;
    let service = Service::start(&[])?;
    let mut storm = Command::new(TESTBED)
        .arg("--storm")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    for source in ["bpf", "service"] {
        let found = compare_for(LASTS, source)?;
        let name = format!("a storm with {cpus} possible CPUs, by {source}");
        let detail = found.to_string();
        reporter.fact(&name, &*detail)?;
        let right = found.wrong == 0 && found.missing == 0 && found.compared >= AT_LEAST;
        reporter.check(&name, right, detail)?;
    }
    // It takes enough snapshots to check each kept record once.
    let doctor = json::of(&[FASTPROC, "doctor", "--json"])?;
    let kept = &doctor["records"];
    let right = kept["kept"] == true && kept["disproven"] == 0;
    reporter.check("kept records", right, kept.to_string())?;
    let status = json::of(&[FASTPROC, "serve", "--status", "--json"])?;
    let [kept, disproven] =
        ["records_kept_total", "records_disproven_total"].map(|name| status[name].as_u64());
    // The proof of the CPUs that a process may use has one word.
    let right = (kept > Some(0)) == (cpus <= 64) && disproven == Some(0);
    let detail = format!("{kept:?} kept, {disproven:?} disproven");
    reporter.check("records that the service kept", right, detail)?;
    drop(storm.stdin.take());
    let status = storm.wait()?;
    reporter.check("the storm", status.success(), status.to_string())?;
    service.stop(reporter)
}

/// What all runs of `verify` found.
#[derive(Default)]
struct Found {
    compared: u64,
    in_motion: u64,
    wrong: u64,
    missing: u64,
    runs: u64,
    examples: Vec<String>,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            compared,
            in_motion,
            wrong,
            missing,
            runs,
            examples,
        } = self;
        write!(
            f,
            "{compared} values compared in {runs} runs, {in_motion} in motion, {wrong} wrong, {missing} processes missing {}",
            examples.join(" ")
        )
    }
}

fn compare_for(time: Duration, source: &str) -> io::Result<Found> {
    let started = Instant::now();
    let mut found = Found::default();
    while found.runs == 0 || started.elapsed() < time {
        let argv = [
            FASTPROC, "verify", "--json", "--rounds", ROUNDS, "--source", source,
        ];
        let report = json::of(&argv)?;
        let number = |name: &str| report[name].as_u64().unwrap_or_default();
        found.runs += 1;
        found.compared += number("compared");
        found.in_motion += number("in_motion");
        found.wrong += number("wrong");
        found.missing += number("missing");
        if number("wrong") > 0 {
            let examples = format!("{} {}", report["examples"], report["line_examples"]);
            found.examples.push(examples);
        }
    }
    Ok(found)
}
