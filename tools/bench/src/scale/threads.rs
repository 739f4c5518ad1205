//! The cost of a thread, if threads are listed.

use std::fmt;

use fastproc::{Collector, Fields, SourceKind};
use serde::Serialize;

use super::{crowd::room_for, other_work, plan};
use crate::{
    idle::{Idle, Kind},
    measure::{self, Case, Failure},
    report::Spread,
};

/// Threads of a process.
const EACH: usize = 1_000;

/// What was measured beside this many threads.
#[derive(Debug, Serialize)]
pub struct Threads {
    /// Idle threads that were started.
    pub count: usize,
    /// The processes that have them.
    pub processes: usize,
    /// CPU time for each thread of the machine, with the fields of `top` and the list of threads.
    pub us: Spread,
    /// The same right after other work.
    pub cold_us: Spread,
    /// The same without a list, because their CPU times are added up.
    pub unlisted_us: Spread,
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} threads in {} processes: {:.3} us of CPU time each if they are listed, {:.3} cold, {:.3} if not",
            self.count,
            self.processes,
            self.us.median,
            self.cold_us.median,
            self.unlisted_us.median
        )
    }
}

/// Starts threads, and measures beside them.
pub fn measure(wanted: usize, rounds: u32) -> Result<Threads, Failure> {
    let counts = (0..wanted)
        .step_by(EACH)
        .map(|first| EACH.min(wanted - first));
    let start = |count| {
        room_for(count)?;
        Ok(Idle::start_kind(count, Kind::Threads)?)
    };
    let groups: Vec<Idle> = counts.map(start).collect::<Result<_, Failure>>()?;
    let open = |fields| {
        Collector::builder()
            .source(Some(SourceKind::Bpf))
            .fields(fields)
            .open()
    };
    let mut listing = open(Fields::TOP | Fields::THREADS)?;
    let listed = check(&groups, &mut listing)?;
    let mut adding = open(Fields::TOP)?;
    let mut cases = [
        other_work(),
        Case {
            name: "listed",
            run: Box::new(|| {
                listing.snapshot()?;
                Ok(listed)
            }),
        },
        Case {
            name: "unlisted",
            run: Box::new(|| {
                adding.snapshot()?;
                Ok(listed)
            }),
        },
    ];
    let measured = measure::measure(&mut cases, plan(rounds), |_| Ok(()), || ())?;
    drop(cases);
    let [_, listed, unlisted] = &measured[..] else {
        return Err("not every case was measured".into());
    };
    Ok(Threads {
        count: wanted,
        processes: groups.len(),
        us: listed.cpu_us(),
        cold_us: listed.cold_cpu_us(),
        unlisted_us: unlisted.cpu_us(),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_was_measured() {
        let threads = Threads {
            count: 2_000,
            processes: 2,
            us: Spread::of([0.25]),
            cold_us: Spread::of([0.5]),
            unlisted_us: Spread::of([0.125]),
        };
        assert_eq!(
            threads.to_string(),
            "2000 threads in 2 processes: 0.250 us of CPU time each if they are listed, 0.500 cold, 0.125 if not"
        );
    }
}
