//! What happens between two sections of a walk, and what proves that a record may be kept.

#[cfg(target_arch = "x86_64")]
mod kept;

use fastproc_testbed::{Sleepers, alone, gate, needs};

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
    needs!(gate::bpf());
    let _alone = alone();
    // A process that starts behind the children ends the search early.
    for _ in 0..100 {
        if searches_behind_children() {
            return;
        }
    }
    panic!("other processes started during each search");
}

/// Tasks that the machine has started since boot.
fn started() -> usize {
    let stat = std::fs::read_to_string("/proc/stat").expect("it can be read");
    let mut lines = stat.lines();
    let count = lines.find_map(|line| line.strip_prefix("processes "));
    let count = count.expect("it has a count of tasks");
    count.parse().expect("it is a number")
}

/// Whether nothing else started meanwhile.
fn searches_behind_children() -> bool {
    let before = started();
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
        let previous = records(&bpf);
        bpf.tasks.one_section().expect("the BPF program runs");
        // A section of no length goes back by one process.
        assert!(
            records(&bpf) + 1 >= previous,
            "{} of {previous}",
            records(&bpf)
        );
        sections += 1;
    }
    if started() != before + pids.len() {
        return false;
    }
    assert!(sections > pids.len(), "{sections} sections");
    assert!(has(&bpf, std::process::id()));
    assert!(pids.iter().all(|&pid| !has(&bpf, pid)));
    true
}
