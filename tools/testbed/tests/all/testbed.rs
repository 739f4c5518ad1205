//! The testbed keeps its promises: `/proc` shows each test process as promised, and none outlives the testbed.

use crate::gone;

use crate::gone::{is_gone, kill, stat, status, threads};
use fastproc_testbed::{Expect, Options, Testbed, TestbedError, Why, catalogue, gate};

fn open(labels: &[&str]) -> Testbed {
    Testbed::open(&Options::only(labels.iter().copied())).unwrap()
}

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
        gone::wait_until(|| {
            let checked = process.check();
            checked.map_err(|mismatch| format!("{}: expected {mismatch}", process.label))
        });
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

// The testbed's own reader checks the promises; another reader checks these.

#[test]
fn a_dead_leader_has_threads_that_live() {
    let testbed = open(&["dead-leader"]);
    let pid = testbed.process("dead-leader").unwrap().pid;
    // Threads have started when the testbed opens; on a busy machine they may not rest yet.
    gone::wait_until(|| {
        let states: Vec<char> = threads(pid)
            .map(|tid| stat(&format!("{pid}/task/{tid}")).unwrap().0)
            .collect();
        if states == ['Z', 'S', 'S', 'S'] {
            Ok(())
        } else {
            Err(format!("threads in the states {states:?}"))
        }
    });
}

#[test]
fn traced_names_its_tracer() {
    let testbed = open(&["traced", "traced-child"]);
    for (tracer, traced) in [("tracer", "traced"), ("tracing-parent", "traced-child")] {
        let [tracer, traced] = [tracer, traced].map(|label| testbed.process(label).unwrap().pid);
        assert_eq!(status(traced, "TracerPid"), tracer.to_string());
        assert_eq!(stat(&traced.to_string()).unwrap().0, 't');
    }
}

#[test]
fn an_orphan_belongs_to_the_supervisor() {
    let testbed = open(&["orphan"]);
    assert_eq!(
        status(testbed.process("orphan").unwrap().pid, "PPid"),
        testbed.supervisor_pid().to_string()
    );
}

#[test]
fn nested_namespaces_number_from_one() {
    let testbed = open(&["pidns-3"]);
    if testbed.processes().is_empty() {
        gate::skipped(&format!("{:?}", testbed.absent()));
        return;
    }
    let numbers = |label: &str| {
        let text = status(testbed.process(label).unwrap().pid, "NSpid");
        text.split_whitespace()
            .skip(1)
            .map(|word| word.parse().unwrap())
            .collect::<Vec<u32>>()
    };
    assert_eq!(numbers("pidns-1"), [1]);
    assert_eq!(numbers("pidns-2"), [2, 1]);
    assert_eq!(numbers("pidns-3"), [3, 2, 1]);
    assert_eq!(numbers("pidns-3-second"), [4, 3, 2]);
}

#[test]
fn groups_are_counted() {
    let testbed = open(&["groups-300"]);
    let Some(process) = testbed.process("groups-300") else {
        gate::skipped(&format!("it needs root: {:?}", testbed.absent()));
        return;
    };
    let groups = status(process.pid, "Groups");
    assert_eq!(groups.split_whitespace().count(), 300);
    assert!(groups.starts_with("5000 5003 "), "{groups}");
}

#[test]
fn relatives_are_related() {
    let testbed = open(&[
        "vfork-child",
        "clone-vm",
        "clone-sighand",
        "terminal-leader",
    ]);
    for (parent, child) in [
        ("vfork-parent", "vfork-child"),
        ("clone-vm", "clone-vm-child"),
        ("clone-sighand", "clone-sighand-child"),
        ("terminal-leader", "terminal-background"),
    ] {
        let (Some(parent), Some(child)) = (testbed.process(parent), testbed.process(child)) else {
            gate::skipped(&format!("{parent}: {:?}", testbed.absent()));
            continue;
        };
        assert_eq!(status(child.pid, "PPid"), parent.pid.to_string());
        assert_eq!(status(child.pid, "Tgid"), child.pid.to_string());
    }
}

#[test]
fn a_label_that_does_not_exist_is_refused() {
    let result = Testbed::open(&Options::only(["zombie", "unicorn"]));
    assert!(matches!(result, Err(TestbedError::UnknownLabel(label)) if label == "unicorn"));
}

#[test]
fn only_what_was_asked_for_is_started() {
    let testbed = open(&["stopped"]);
    let labels: Vec<_> = testbed
        .processes()
        .iter()
        .map(|process| process.label)
        .collect();
    assert_eq!(labels, ["stopped"]);
    assert_eq!(testbed.processes()[0].expect, [Expect::State('T')]);
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
fn a_testbed_outlives_the_thread_that_opened_it() {
    let testbed = std::thread::spawn(|| open(&["idle", "zombie"]))
        .join()
        .unwrap();
    for process in testbed.processes() {
        gone::wait_until(|| process.check().map_err(|mismatch| mismatch.to_string()));
        assert!(!is_gone((process.pid, process.starttime)));
    }
    assert_eq!(testbed.processes().len(), 2);
}
