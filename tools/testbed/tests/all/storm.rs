//! A storm runs, is bounded, and leaves no process behind.

use crate::gone;

use fastproc_testbed::Storm;

#[test]
fn a_storm_changes_processes_and_ends() {
    let storm = Storm::start().unwrap();
    let pid = storm.pid();
    let starttime = gone::stat(&pid.to_string()).unwrap().1;
    let mut seen = gone::descendants(pid);
    let most = (0..20).map(|_| {
        let found = gone::descendants(pid);
        seen.extend(&found);
        found.len()
    });
    let most = most.max().unwrap();
    assert!((5..=100).contains(&most), "{most} processes at once");
    let tally = storm.stop().unwrap();
    for count in [
        tally.forks,
        tally.execs,
        tally.threads,
        tally.dead_leaders,
        tally.thread_execs,
    ] {
        assert!(count > 0, "{tally:?}");
    }
    seen.push((pid, starttime));
    let left: Vec<_> = seen
        .into_iter()
        .filter(|&process| !gone::is_gone(process))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_storm_ends_with_its_root_process() {
    let storm = Storm::start().unwrap();
    let all = gone::descendants(storm.pid());
    gone::kill(storm.pid());
    gone::wait_until_gone(&all);
}
