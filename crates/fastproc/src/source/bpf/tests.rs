//! What happens between two sections of a walk.

use std::process::{Child, Command};

use fastproc_testbed::gate;

use super::*;
use crate::base::host::running_processes;

/// Killed when this is dropped.
struct Sleepers(Vec<Child>);

impl Sleepers {
    fn start(count: usize) -> Self {
        let sleep = |_| Command::new("sleep").arg("600").spawn();
        let children = (0..count).map(sleep);
        Self(children.map(|child| child.expect("it starts")).collect())
    }

    fn end(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        self.end();
    }
}

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
    let mut children = Sleepers::start(20);
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
    while !children.0.iter().all(|child| has(&bpf, child.id())) {
        assert_eq!(bpf.tasks.run.as_slice()[0].done, 0);
        bpf.tasks.one_section().expect("it runs");
    }
    children.end();
    let mut sections = 0;
    while bpf.tasks.run.as_slice()[0].done == 0 {
        let before = records(&bpf);
        bpf.tasks.one_section().expect("it runs");
        // A section of no length goes back by one process.
        assert!(records(&bpf) + 1 >= before, "{} of {before}", records(&bpf));
        sections += 1;
    }
    assert!(sections > children.0.len());
    assert!(has(&bpf, std::process::id()));
    let ended = |child: &Child| !has(&bpf, child.id());
    assert!(children.0.iter().all(ended));
}
