//! What happens between two sections of a walk.

use std::process::{Child, Command};

use fastproc_testbed::gate;

use super::*;

/// Needs root and BPF.
#[test]
fn a_walk_also_pauses_while_it_searches_for_a_process_that_still_exists() {
    if !gate::bpf() {
        return;
    }
    let host = Host::read().expect("a host");
    let options = Options {
        lone_threads: true,
        keeps_records: false,
        walks_once: true,
    };
    let mut children: Vec<Child> = (0..20)
        .map(|_| Command::new("sleep").arg("600").spawn())
        .collect::<Result<_, _>>()
        .expect("processes start");
    let processes = running_processes().unwrap_or(0);
    let mut bpf = Bpf::open(
        Walk::OpenCoded,
        Fields::empty(),
        &host,
        (processes, processes),
        options,
    )
    .expect("there is BPF");
    bpf.set_section(Duration::ZERO);
    bpf.prepare().expect("it can be prepared");
    let records = |bpf: &Bpf| bpf.tasks.run.as_slice()[0].records as usize;
    let has = |bpf: &Bpf, pid: u32| bpf.index().iter().any(|&at| IndexEntry(at).pid() == pid);
    while !children.iter().all(|child| has(&bpf, child.id())) {
        assert_eq!(bpf.tasks.run.as_slice()[0].done, 0);
        bpf.tasks.one_section().expect("it runs");
    }
    for child in &mut children {
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
    }
    let mut sections = 0;
    while bpf.tasks.run.as_slice()[0].done == 0 {
        let before = records(&bpf);
        bpf.tasks.one_section().expect("it runs");
        // A section of no length goes back by one process.
        assert!(records(&bpf) + 1 >= before, "{} of {before}", records(&bpf));
        sections += 1;
    }
    assert!(sections > children.len());
    assert!(has(&bpf, std::process::id()));
    let ended = |child: &Child| !has(&bpf, child.id());
    assert!(children.iter().all(ended));
}
