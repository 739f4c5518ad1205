//! What exited processes did since the last snapshot.

use super::*;

fn exit(pid: u32, start_ns: u64, run_ns: u64) -> Exit {
    Exit {
        pid,
        start_ns,
        sum_exec_ns: run_ns,
        utime_ns: run_ns,
        ..Exit::default()
    }
}

fn with_exits(boottime_ns: u64, records: Vec<Record>, exits: Vec<Exit>) -> Made {
    Made {
        exits: Some(exits),
        ..Made::new(boottime_ns, 0, records)
    }
}

/// Processes that ended by a snapshot: pid, whether born since the one before, run time since, share of a CPU.
fn ended(baseline: &Baseline, now: &Made) -> Vec<(u32, bool, Option<u64>, Option<f64>)> {
    let snapshot = now.snapshot();
    let ended = baseline.ended(&snapshot);
    ended
        .map(|ended| {
            let record = ended.exit.to_record();
            let change = ended.change(&record);
            assert_eq!(change.born, ended.born);
            let run = ended.growth(Counter::Run);
            (change.process.pid(), ended.born, run, change.cpu_share)
        })
        .collect()
}

#[test]
fn an_exit_adds_the_counts_since_the_last_snapshot() {
    let mut baseline = Baseline::default();
    let second = |n: u64| n * SECOND;
    // Two run. The exit of 9 does not count: it began and ended before the first snapshot.
    let first = with_exits(
        second(100),
        vec![process(7, second(10), second(5)), process(8, second(10), 0)],
        vec![exit(9, second(20), second(9))],
    );
    assert!(ended(&baseline, &first).is_empty());
    baseline.set(&first.snapshot());
    // 7 has ended, and so has another that lived for 5 ms. 8 is gone, but its exit has not arrived.
    let then = with_exits(
        second(102),
        vec![],
        vec![
            exit(7, second(10), second(6)),
            exit(20, second(101), 5 * MS),
            exit(6, second(50), second(3)),
        ],
    );
    assert_eq!(
        ended(&baseline, &then),
        [
            (7, false, Some(second(1)), Some(0.5)),
            (20, true, Some(5 * MS), Some(0.0025))
        ]
    );
    baseline.set(&then.snapshot());
    // The exit of 8 arrives later, when another process has its pid.
    let last = with_exits(
        second(103),
        vec![process(8, second(102) + 1, 0)],
        vec![exit(8, second(10), MS)],
    );
    assert_eq!(ended(&baseline, &last), [(8, false, Some(MS), Some(0.001))]);
    baseline.set(&last.snapshot());
    // Each exit is used once.
    assert!(baseline.leaving.find(&exit(8, second(10), MS)).is_none());
}

#[test]
fn the_end_of_who_had_the_pid_next_is_compared_with_nothing() {
    let mut baseline = Baseline::default();
    let second = |n: u64| n * SECOND;
    let first = vec![process(7, second(10), second(5))];
    baseline.set(&with_exits(second(100), first, vec![]).snapshot());
    let exits = vec![
        exit(7, second(10), second(6)),
        exit(7, second(101), second(1)),
    ];
    let then = with_exits(second(102), vec![], exits);
    let told: Vec<_> = ended(&baseline, &then)
        .into_iter()
        .map(|(pid, born, run, _)| (pid, born, run))
        .collect();
    let one = Some(second(1));
    assert_eq!(told, [(7, false, one), (7, true, one)]);
}

#[test]
fn unrecorded_exits_are_not_taken_for_new_processes() {
    let mut baseline = Baseline::default();
    let second = |n: u64| n * SECOND;
    let running = vec![process(7, second(10), second(5))];
    baseline.set(&with_exits(second(100), running, vec![]).snapshot());
    // Both ended in between, or begin after; what they did is unknown.
    baseline.set(&Made::new(second(101), 0, vec![]).snapshot());
    let now = with_exits(
        second(102),
        vec![],
        vec![
            exit(7, second(10), second(6)),
            exit(8, second(100) + MS, second(1)),
            exit(9, second(101) + MS, 3 * MS),
        ],
    );
    assert_eq!(
        ended(&baseline, &now),
        [(9, true, Some(3 * MS), Some(0.003))]
    );
}

#[test]
fn without_exits_nothing_is_kept_of_what_is_gone() {
    let mut baseline = Baseline::default();
    baseline.set(&Made::new(SECOND, 0, vec![process(7, 1, 0)]).snapshot());
    let now = Made::new(2 * SECOND, 0, vec![]);
    assert!(ended(&baseline, &now).is_empty());
    baseline.set(&now.snapshot());
    assert!(baseline.leaving.find(&exit(7, 1, 0)).is_none());
}
