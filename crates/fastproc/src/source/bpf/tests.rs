//! What happens between two sections of a walk, and what proves that a record may be kept.

#[cfg(target_arch = "x86_64")]
mod kept;

use fastproc_testbed::{Sleepers, alone, gate};

use super::*;
use crate::base::host::running_processes;

fn open(fields: Fields, keeps_records: bool) -> Bpf {
    let host = Host::read().expect("a host");
    let options = Options {
        lone_threads: !keeps_records,
        keeps_records,
        walks_once: !keeps_records,
    };
    let processes = running_processes().unwrap_or(0);
    let expected = (processes, processes);
    Bpf::open(Walk::OpenCoded, fields, &host, expected, options).expect("there is BPF")
}

/// Needs root and BPF.
#[test]
fn a_walk_also_pauses_while_it_searches_for_a_process_that_still_exists() {
    if !gate::bpf() {
        return;
    }
    // Another process behind these would end the search.
    let _alone = alone();
    let children = Sleepers::start(20);
    let pids = children.pids();
    let mut bpf = open(Fields::empty(), false);
    bpf.set_section(Duration::ZERO);
    bpf.prepare().expect("it can be prepared");
    let records = |bpf: &Bpf| bpf.tasks.run.as_slice()[0].records as usize;
    let has = |bpf: &Bpf, pid: u32| bpf.index().iter().any(|&at| IndexEntry(at).pid() == pid);
    while !pids.iter().all(|&pid| has(&bpf, pid)) {
        assert_eq!(bpf.tasks.run.as_slice()[0].done, 0);
        bpf.tasks.one_section().expect("the BPF program runs");
    }
    drop(children);
    let mut sections = 0;
    while bpf.tasks.run.as_slice()[0].done == 0 {
        let before = records(&bpf);
        bpf.tasks.one_section().expect("the BPF program runs");
        // A section of no length goes back by one process.
        assert!(records(&bpf) + 1 >= before, "{} of {before}", records(&bpf));
        sections += 1;
    }
    assert!(sections > pids.len());
    assert!(has(&bpf, std::process::id()));
    assert!(pids.iter().all(|&pid| !has(&bpf, pid)));
}
