//! The cost of a thread, if threads are listed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, DirEntry},
    io,
};

use fastproc::{Collector, Fields};
use serde_json::{Value, json};

use super::{
    crowd::{LEAST_BYTES, room_for},
    open, other_work, plan,
};
use crate::{
    idle::Idle,
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
        room_for(count, LEAST_BYTES)?;
        Ok((Idle::start_with_threads(1, count)?, count))
    };
    let groups: Vec<_> = counts.map(start).collect::<Result<_, Failure>>()?;
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
fn check(groups: &[(Idle, usize)], collector: &mut Collector) -> Result<usize, Failure> {
    let snapshot = collector.snapshot()?;
    let (mut all, mut found) = (0, BTreeMap::<u32, BTreeSet<u32>>::new());
    for (process, thread) in snapshot.threads_with_processes() {
        all += 1;
        if !found.entry(process.pid()).or_default().insert(thread.tid) {
            return Err(format!("thread {} is listed twice", thread.tid).into());
        }
    }
    for (idle, threads) in groups {
        for pid in idle.pids() {
            let tasks = fs::read_dir(format!("/proc/{pid}/task"))?;
            let name = |task: io::Result<DirEntry>| Ok(task?.file_name());
            let names = tasks.map(name).collect::<io::Result<Vec<_>>>()?;
            let expected = names.iter().filter_map(|name| name.to_str()?.parse().ok());
            let expected: BTreeSet<u32> = expected.collect();
            if expected.len() != *threads || found.get(&pid) != Some(&expected) {
                return Err(format!(
                    "of process {pid} with {threads} threads /proc lists {} and a snapshot {}",
                    expected.len(),
                    found.get(&pid).map_or(0, BTreeSet::len)
                )
                .into());
            }
        }
    }
    Ok(all)
}
