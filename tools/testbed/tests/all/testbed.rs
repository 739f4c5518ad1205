//! The testbed keeps its promises: `/proc` shows each test process as promised, and none outlives the testbed.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use crate::gone::{self, is_gone, kill, stat};
use fastproc_testbed::{Options, Testbed, Why, catalogue, gate, wait_until};

#[test]
fn every_process_is_there_or_absent_with_a_reason() {
    let testbed = Testbed::open(&Options::default()).unwrap();
    for absent in testbed.absent() {
        gate::skipped(&absent.to_string());
    }
    assert_eq!(
        testbed.processes().len() + testbed.absent().len(),
        catalogue().count()
    );
    let broken: Vec<_> = testbed
        .absent()
        .iter()
        .filter(|absent| absent.why == Why::Broken)
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
    assert!(
        testbed
            .absent()
            .iter()
            .all(|absent| !absent.reason.is_empty())
    );
    // Processes that every kernel since 5.10 permits for all users.
    for label in [
        "zombie",
        "dead-leader",
        "traced",
        "stopped",
        "vfork-parent",
        "name-newline",
        "threads-100",
        "signals-pending",
    ] {
        assert!(testbed.process(label).is_some(), "{label} is absent");
    }
    for process in testbed.processes() {
        // The kernel may run a process for a moment.
        wait_until(process.label, || process.check().is_ok());
    }
    let mut pids: Vec<_> = testbed
        .processes()
        .iter()
        .map(|process| process.pid)
        .collect();
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(
        pids.len(),
        testbed.processes().len(),
        "two processes share a pid"
    );
}

#[test]
fn nothing_remains_after_drop() {
    let testbed = Testbed::open(&Options::default()).unwrap();
    let mut all = gone::descendants(testbed.supervisor_pid());
    assert!(
        all.len() > testbed.processes().len(),
        "the tracer's and the namespaces' helpers are descendants, too"
    );
    all.extend(
        testbed
            .processes()
            .iter()
            .map(|process| (process.pid, process.starttime)),
    );
    all.push((
        testbed.supervisor_pid(),
        stat(&testbed.supervisor_pid().to_string()).unwrap().1,
    ));
    assert!(all.iter().all(|&process| !is_gone(process)));
    drop(testbed);
    // Drop waits, so this need not.
    let left: Vec<_> = all
        .into_iter()
        .filter(|&process| !is_gone(process))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn nothing_remains_after_the_supervisor_is_killed() {
    let testbed = Testbed::open(&Options::default()).unwrap();
    let mut all = gone::descendants(testbed.supervisor_pid());
    all.extend(
        testbed
            .processes()
            .iter()
            .map(|process| (process.pid, process.starttime)),
    );
    kill(testbed.supervisor_pid());
    gone::wait_until_gone(&all);
}

#[test]
fn the_processes_of_the_command_die_when_it_is_killed() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fastproc-testbed"))
        .args(["--only", "idle,traced,dead-leader,clone-vm,pidns-3"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..5 {
        let line = lines.next().unwrap().unwrap();
        assert!(stat(line.split_once('\t').unwrap().0).is_some(), "{line}");
    }
    let all = gone::descendants(child.id());
    assert!(all.len() > 5);
    child.kill().unwrap();
    child.wait().unwrap();
    gone::wait_until_gone(&all);
}
