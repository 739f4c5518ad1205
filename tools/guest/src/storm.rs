//! Storms in pid namespaces: a reader in a namespace is compared with its `/proc` all the time, and must show no
//! process from outside.

use std::{
    io::{self, BufReader},
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    enter::{INIT, Place},
    json,
    proofs::FASTPROC,
    reporter::Reporter,
    testbed::TESTBED,
};

/// The argument that makes this program compare.
pub const COMPARE: &str = "compare-in-storm";
/// No process in a namespace has this user, and all of the storm outside do.
const OUTSIDER: &str = "54321";
/// The least time of a storm.
const LASTS: Duration = Duration::from_secs(300);
/// Comparisons of every process by one `verify`.
const ROUNDS: &str = "3";
/// Snapshots of all threads by one `ps`.
const LOOKS: &str = "20";

/// The comparisons in one namespace.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Compared {
    source: String,
    seconds: u64,
    /// Values of `verify`, wrong ones, and processes that it missed.
    values: u64,
    wrong: u64,
    missing: u64,
    example: String,
    /// Rows of `ps` and of `exits`, and those that showed a process from outside.
    threads: u64,
    threads_outside: u64,
    exits: u64,
    exits_outside: u64,
    /// Why a program did not run.
    error: String,
}

impl Compared {
    fn is_right(&self) -> bool {
        let wrong = self.wrong + self.missing + self.threads_outside + self.exits_outside;
        let seen = [self.values, self.threads, self.exits];
        self.source == "bpf-iter" && wrong == 0 && !seen.contains(&0) && self.error.is_empty()
    }
}

/// Compares in a namespace, and in one that is nested in another, while there are storms inside and outside.
pub fn in_namespaces(reporter: &mut Reporter) -> io::Result<()> {
    let mut outside = Command::new(TESTBED)
        .args(["--only", "idle", "--storm"])
        .uid(OUTSIDER.parse().map_err(io::Error::other)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    // Checks that processes from outside can be distinguished.
    let seen = look().map_or_else(
        |error| error.to_string(),
        |(_, outside)| outside.to_string(),
    );
    reporter.check(
        "rows from outside, seen from there",
        seen.parse::<u64>().is_ok_and(|seen| seen > 0),
        &*seen,
    )?;
    for depth in 1..=2 {
        let place = Place::PidNamespace.enter().repeat(depth);
        let inside = [TESTBED, "--storm", "--", INIT, COMPARE];
        let output = Command::new(place[0])
            .args(&place[1..])
            .args(inside)
            .output()?;
        // The names of the test processes come before.
        let stdout = String::from_utf8_lossy(&output.stdout);
        let line = stdout.lines().last().unwrap_or_default();
        let compared = serde_json::from_str(line).unwrap_or_else(|error| Compared {
            error: format!("{error}: {line}"),
            ..Compared::default()
        });
        let name = format!("a storm in {depth} pid namespaces");
        reporter.fact(&name, line)?;
        reporter.fact(&name, String::from_utf8_lossy(&output.stderr))?;
        reporter.check(&name, compared.is_right(), line)?;
    }
    drop(outside.stdin.take());
    let status = outside.wait()?;
    reporter.check("the storm outside", status.success(), status.to_string())
}

/// Compares in the namespace, and prints a [`Compared`].
pub fn compare() -> ExitCode {
    let mut compared = Compared::default();
    if let Err(error) = compare_for(LASTS, &mut compared) {
        compared.error = error.to_string();
    }
    match serde_json::to_string(&compared) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn compare_for(time: Duration, compared: &mut Compared) -> io::Result<()> {
    let started = Instant::now();
    let mut recording = Command::new(FASTPROC)
        .args(["exits", "--quiet", "--no-headers", "--format", "csv"])
        .args(["-o", "user"])
        .stdout(Stdio::piped())
        .spawn()?;
    let pipe = recording.stdout.take();
    let users = BufReader::new(pipe.ok_or_else(|| io::Error::other("a pipe is missing"))?);
    let exits = thread::spawn(move || count_users(users));
    while started.elapsed() < time {
        verify(compared)?;
        let (all, outside) = look()?;
        compared.threads += all;
        compared.threads_outside += outside;
    }
    compared.seconds = started.elapsed().as_secs();
    recording.kill()?;
    recording.wait()?;
    let counted = exits.join();
    let (all, outside) = counted.map_err(|_| io::Error::other("counting panicked"))??;
    compared.exits = all;
    compared.exits_outside = outside;
    Ok(())
}

/// Rows of all threads, and those that show a process from outside.
fn look() -> io::Result<(u64, u64)> {
    let mut ps = Command::new(FASTPROC)
        .args(["ps", "--threads", "--source", "bpf-iter", "--no-headers"])
        .args(["--interval", "0.05", "--count", LOOKS, "--format", "csv"])
        .args(["-o", "uid"])
        .stdout(Stdio::piped())
        .spawn()?;
    let pipe = ps.stdout.take();
    let users = BufReader::new(pipe.ok_or_else(|| io::Error::other("a pipe is missing"))?);
    let counted = count_users(users)?;
    if ps.wait()?.success() {
        Ok(counted)
    } else {
        Err(io::Error::other("ps failed"))
    }
}

/// Adds up what `verify` finds.
fn verify(compared: &mut Compared) -> io::Result<()> {
    let report = json::of(&[FASTPROC, "verify", "--json", "--rounds", ROUNDS])?;
    let number = |name: &str| report[name].as_u64().unwrap_or_default();
    let source = report["source"].as_str().unwrap_or_default();
    source.clone_into(&mut compared.source);
    compared.values += number("compared");
    compared.wrong += number("wrong");
    compared.missing += number("missing");
    if number("wrong") > 0 {
        compared.example = format!("{} {}", report["examples"], report["line_examples"]);
    }
    Ok(())
}

/// All rows, and those of processes from outside.
fn count_users(rows: impl io::BufRead) -> io::Result<(u64, u64)> {
    let (mut all, mut outside) = (0, 0);
    for row in rows.lines() {
        all += 1;
        let row = row?;
        outside += u64::from(row.rsplit(',').next() == Some(OUTSIDER));
    }
    Ok((all, outside))
}
