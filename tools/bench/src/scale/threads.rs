//! The cost of a thread, if threads are listed.

use fastproc::{Collector, Fields};
use serde_json::{Value, json};

use super::{crowd::room_for, open, other_work, plan};
use crate::{
    idle::{Idle, Kind},
    measure::{self, Case, Failure},
    report::Report,
};

/// Threads of a process.
const EACH: usize = 1_000;

/// Starts threads, and measures beside them.
pub fn measure(report: &mut Report, wanted: usize, rounds: u32) -> Result<Value, Failure> {
    let counts = (0..wanted)
        .step_by(EACH)
        .map(|first| EACH.min(wanted - first));
    let start = |count| {
        room_for(count)?;
        Ok(Idle::start_kind(count, Kind::Threads)?)
    };
    let groups: Vec<Idle> = counts.map(start).collect::<Result<_, Failure>>()?;
    let mut listing = open(Fields::TOP | Fields::THREADS)?;
    let listed = check(&groups, &mut listing)?;
    let mut adding = open(Fields::TOP)?;
    let mut cases = [
        other_work(),
        Case::new("listed", || Ok(listing.snapshot().map(|_| listed)?)),
        Case::new("unlisted", || Ok(adding.snapshot().map(|_| listed)?)),
    ];
    let measured = measure::measure(&mut cases, plan(rounds), |_| Ok(()))?;
    drop(cases);
    let [_, listed, unlisted] = &measured[..] else {
        return Err("not every case was measured".into());
    };
    // For each thread of the machine, with the fields of top and the list of threads; the same right after other work; and
    // without a list, because their CPU times are added up.
    let [us, cold, unlisted] = [listed.cpu_us(), listed.cold_cpu_us(), unlisted.cpu_us()];
    report.note(format!(
        "{wanted} threads in {} processes: {:.3} us of CPU time each if they are listed, {:.3} cold, {:.3} if not",
        groups.len(),
        us.median,
        cold.median,
        unlisted.median
    ));
    Ok(json!({
        "count": wanted,
        "processes": groups.len(),
        "us": us.json(),
        "cold_us": cold.json(),
        "unlisted_us": unlisted.json(),
    }))
}

/// Checks that each thread is listed once, with its process. Returns how many threads the machine has.
fn check(groups: &[Idle], collector: &mut Collector) -> Result<usize, Failure> {
    let snapshot = collector.snapshot()?;
    let mut all = 0;
    let mut found: Vec<(u32, u32)> = Vec::new();
    for (process, thread) in snapshot.threads_with_processes() {
        all += 1;
        found.push((process.pid(), thread.tid));
    }
    found.sort_unstable();
    for idle in groups {
        let own = |&&(pid, _): &&(u32, u32)| pid == idle.parent();
        let mut listed: Vec<u32> = found.iter().filter(own).map(|&(_, tid)| tid).collect();
        let mut expected: Vec<u32> = idle.pids().chain([idle.parent()]).collect();
        expected.sort_unstable();
        listed.sort_unstable();
        if listed != expected {
            return Err(format!(
                "of process {} with {} threads {} are listed",
                idle.parent(),
                expected.len(),
                listed.len()
            )
            .into());
        }
    }
    Ok(all)
}
