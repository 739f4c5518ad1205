//! More groups and thread names than are shown.

use std::collections::HashMap;

use fastproc_metrics::groups::{Count, Limits, Rank, Tracker};

use crate::groups::machine::{SECOND, machine, minor, procs};

/// The sums over all groups that are shown.
fn sums(tracker: &Tracker) -> (u64, u64, u64) {
    tracker.groups().fold((0, 0, 0), |sum, group| {
        (
            sum.0 + group.now.procs,
            sum.1 + group.now.resident,
            sum.2 + group.grown.get(Count::MinorFaults),
        )
    })
}

#[test]
fn groups_past_the_limit_are_one_and_the_sums_stay_right() {
    let (mut machine, mut tracker) = machine(|options| options.limits.groups = 3);
    for pid in 10..20 {
        machine.start(pid, 1, &format!("p{pid}"), SECOND);
    }
    machine.update(&mut tracker);
    for record in &mut machine.records {
        record.cpu.minflt += 7;
    }
    machine.update(&mut tracker);
    assert_eq!(tracker.groups().count(), 4);
    assert_eq!(tracker.folded_groups(), 7);
    assert_eq!(procs(&tracker, "other"), Some(7));
    assert_eq!(minor(&tracker, "other"), 49);
    assert_eq!(minor(&tracker, "p10"), 7);
    assert_eq!(sums(&tracker), (10, 10_000, 70));
    // A group without processes makes room, and folded counts stay where they were counted.
    machine.exit(10);
    for record in &mut machine.records {
        record.cpu.minflt += 1;
    }
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "p10"), None);
    assert_eq!(minor(&tracker, "p13"), 1);
    assert_eq!(minor(&tracker, "other"), 49 + 6);
    assert_eq!(sums(&tracker), (9, 9_000, 9));
}

#[test]
fn the_groups_with_the_most_are_shown() {
    for (rank, expected) in [(Rank::Memory, ["a", "b"]), (Rank::Cpu, ["c", "d"])] {
        let (mut machine, mut tracker) = machine(|options| {
            options.limits = Limits {
                groups: 2,
                rank,
                ..Limits::default()
            };
        });
        for (pid, name) in (10..).zip(["a", "b", "c", "d", "e"]) {
            machine.start(pid, 1, name, SECOND).memory.rss_anon = 100 - u64::from(pid);
        }
        machine.update(&mut tracker);
        for (pid, ns) in [(12, 500), (13, 900), (14, 1)] {
            machine.get(pid).cpu.utime_ns += ns;
            machine.get(pid).cpu.minflt += 1;
        }
        machine.update(&mut tracker);
        let mut shown: Vec<_> = tracker.groups().map(|group| &*group.name).collect();
        shown.sort_unstable();
        assert_eq!(shown, [expected[0], expected[1], "other"], "{rank:?}");
        assert_eq!(sums(&tracker).2, 3);
        assert_eq!(procs(&tracker, "other"), Some(3));
        let before: HashMap<String, u64> = tracker
            .groups()
            .map(|group| (group.name.to_string(), group.total.get(Count::MinorFaults)))
            .collect();
        // Others come to the top: no counter that is still shown decreases.
        for pid in [10, 14] {
            machine.get(pid).cpu.utime_ns += 5000;
            machine.get(pid).memory.rss_anon += 5000;
            machine.get(pid).cpu.minflt += 1;
        }
        machine.update(&mut tracker);
        for group in tracker.groups() {
            let then = before.get(&*group.name).copied().unwrap_or(0);
            assert!(
                group.total.get(Count::MinorFaults) >= then,
                "{}",
                group.name
            );
        }
        assert_eq!(sums(&tracker).2, 2);
    }
}

#[test]
fn a_group_that_is_called_other_is_counted_with_the_others() {
    let (mut machine, mut tracker) = machine(|options| options.limits.groups = 1);
    for (pid, name) in (10..).zip(["a", "b", "other"]) {
        machine.start(pid, 1, name, SECOND);
    }
    machine.update(&mut tracker);
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "other"), Some(2));
    assert_eq!(sums(&tracker).0, 3);
    assert_eq!(tracker.groups().count(), 2);
}

#[test]
fn names_of_threads_past_the_limit_are_one() {
    let (mut machine, mut tracker) = machine(|options| options.limits.thread_names = 2);
    machine.start(10, 1, "web", SECOND).identity.num_threads = 5;
    for tid in 10..15 {
        machine.thread(10, tid, &format!("t{tid}"), 0);
    }
    machine.update(&mut tracker);
    for thread in &mut machine.threads {
        thread.nvcsw += 2;
    }
    machine.update(&mut tracker);
    assert_eq!(tracker.thread_names().count(), 3);
    let sum: u64 = tracker
        .thread_names()
        .map(|name| name.total.get(Count::Voluntary))
        .sum();
    assert_eq!(sum, 10);
    assert_eq!(tracker.folded_threads(), 3);
}

#[test]
fn empty_groups_are_forgotten_if_asked_for() {
    let (mut machine, mut tracker) = machine(|options| options.remove_empty = true);
    machine.start(10, 1, "scan-1", SECOND);
    machine.update(&mut tracker);
    machine.exit(10);
    machine.update(&mut tracker);
    assert_eq!(tracker.groups().count(), 0);
}
