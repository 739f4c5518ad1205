use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{
    base::source_kind::SourceKind,
    records::{fields::Fields, record::Record},
    snapshot::{
        EndedExits, Places, Slot, SnapshotStats,
        exit::Exit,
        kept::{Kept, Number},
        table::Table,
    },
};

mod ended;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// An artificial snapshot.
#[derive(Clone, Debug)]
struct Made {
    records: Vec<Record>,
    threads: Vec<ThreadRecord>,
    order: Vec<Slot>,
    stats: SnapshotStats,
    exits: Option<Vec<Exit>>,
}

impl Made {
    fn new(boottime_ns: u64, read_for_ns: u64, records: Vec<Record>) -> Self {
        let pids = records.iter().map(|record| record.identity.tgid);
        Self {
            order: pids
                .zip(0..)
                .map(|(pid, at)| Slot::walked(pid, at))
                .collect(),
            records,
            threads: Vec::new(),
            stats: SnapshotStats {
                read_for: Duration::from_nanos(read_for_ns),
                ..SnapshotStats::new(SourceKind::Bpf, boottime_ns, 0)
            },
            exits: None,
        }
    }

    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            walked: Table {
                records: &self.records,
                threads: &self.threads,
                ..Table::default()
            },
            patched: Table::default(),
            texts: crate::snapshot::texts::TextTable::default(),
            places: Places::Slots(&self.order),
            stats: self.stats,
            exits: self
                .exits
                .as_deref()
                .map(|exits| EndedExits { exits, lines: &[] }),
            number: Number::NONE,
            kept: Kept::NONE,
        }
    }
}

fn process(pid: u32, start_ns: u64, run_ns: u64) -> Record {
    let mut record = Record::default();
    record.identity.tgid = pid;
    record.identity.start_ns = start_ns;
    record.identity.num_threads = 1;
    record.identity.groups = (Fields::CPU | Fields::IO).bits();
    record.cpu.sum_exec_ns = run_ns;
    record.cpu.utime_ns = run_ns;
    record
}

/// The same record as the text would give it: in ticks, and without the precise run time.
fn as_text(record: &Record) -> Record {
    let tick = |ns: u64| ns / TICK_NS * TICK_NS;
    let mut text = *record;
    text.identity.start_ns = tick(record.identity.start_ns);
    text.cpu.utime_ns = tick(record.cpu.utime_ns);
    text.cpu.stime_ns = tick(record.cpu.stime_ns);
    text.cpu.sum_exec_ns = 0;
    text
}

/// The only change between the last two snapshots.
fn last_change(snapshots: &[Made]) -> (bool, [Option<f64>; 7]) {
    let (now, before) = snapshots.split_last().expect("there are some");
    let mut baseline = Baseline::default();
    for snapshot in before {
        baseline.set(&snapshot.snapshot());
    }
    let snapshot = now.snapshot();
    let mut changes = baseline.changes(&snapshot);
    let change = changes.next().expect("there is a process");
    assert!(changes.next().is_none());
    (change.born, values(&change))
}

fn values(change: &Change<'_>) -> [Option<f64>; 7] {
    [
        change.cpu_share,
        change.user_share,
        change.system_share,
        change.minflt_per_second,
        change.majflt_per_second,
        change.read_bytes_per_second,
        change.write_bytes_per_second,
    ]
}

/// A time namespace shifts the reader's clock, but not the start times of processes.
#[test]
fn a_time_namespace_changes_no_share() {
    for offset_seconds in [0, 86_400, -90] {
        let at = |kernel_ns: u64, records| {
            let offset_ns = offset_seconds * SECOND as i64;
            let mut made = Made::new(kernel_ns.saturating_add_signed(offset_ns), 0, records);
            made.stats.boot_offset_ns = offset_ns;
            made
        };
        let (born, [share, ..]) = last_change(&[
            at(100 * SECOND, vec![]),
            at(102 * SECOND, vec![process(7, 101 * SECOND, SECOND / 2)]),
        ]);
        assert_eq!((born, share), (true, Some(0.25)), "{offset_seconds} s");
    }
}

/// Guards against an old fault: the change was divided by the time from the process's start to the snapshot's time
/// stamp, which is before the process was read.
#[test]
fn a_process_born_while_the_walk_goes_on_has_no_spike() {
    for start_ns in [101 * SECOND - 1, 101 * SECOND, 101 * SECOND + 400_000] {
        let mut born = process(7, start_ns, 300_000);
        born.cpu.minflt = 100;
        born.io.read_bytes = 4096;
        let (is_born, [share, user, _, minflt, _, read, _]) = last_change(&[
            Made::new(100 * SECOND, 500_000, vec![]),
            Made::new(101 * SECOND, 500_000, vec![born]),
        ]);
        assert!(is_born);
        // All rates are over the time between the snapshots.
        assert_eq!((share, user), (Some(0.0003), Some(0.0003)));
        assert_eq!((minflt, read), (Some(100.0), Some(4096.0)));
    }
}

#[test]
fn the_shortest_time_is_not_more_than_what_lies_between_the_snapshots() {
    let (_, [share, ..]) = last_change(&[
        Made::new(SECOND, 0, vec![process(7, 1, 0)]),
        Made::new(SECOND + 2 * MS, 0, vec![process(7, 1, MS)]),
    ]);
    assert_eq!(share, Some(0.5));
}

#[test]
fn a_record_is_of_the_time_at_which_it_was_read() {
    // The second of two records is read in the middle of the time that reading takes, which is longer the second time.
    let made = |began_ns, read_for_ns, run_ns| {
        let others = vec![process(1, 1, 0), process(2, 1, run_ns)];
        Made::new(began_ns, read_for_ns, others)
    };
    let mut before = Baseline::default();
    before.set(&made(100 * SECOND, 100 * MS, 0).snapshot());
    let now = made(101 * SECOND, 300 * MS, 1100 * MS);
    let shares: Vec<_> = before
        .changes(&now.snapshot())
        .map(|change| change.cpu_share)
        .collect();
    assert_eq!(shares, [Some(0.0), Some(1.0)]);
}

/// Threads may have come and gone between two snapshots, so the numbers at the two limit nothing.
#[test]
fn shares_of_a_process_are_bounded_by_the_machine() {
    let share = |threads: [u32; 2], run_ns: u64| {
        let mut records = [process(7, SECOND, 0), process(7, SECOND, run_ns)];
        records[1].cpu.stime_ns = run_ns;
        for (record, threads) in records.iter_mut().zip(threads) {
            record.identity.num_threads = threads;
        }
        let mut before = Baseline::default();
        before.set_cpus(8);
        before.set(&Made::new(100 * SECOND, 0, vec![records[0]]).snapshot());
        let now = Made::new(101 * SECOND, 0, vec![records[1]]);
        let now = now.snapshot();
        let change = before.changes(&now).next().expect("there is one");
        let parts = change.user_share.expect("known") + change.system_share.expect("known");
        assert!(parts <= 8.0 + 1e-9, "{parts}");
        change.cpu_share
    };
    for threads in [[1, 1], [1, 2], [2, 0], [u32::MAX, 1]] {
        assert_eq!(share(threads, 2 * SECOND), Some(2.0), "{threads:?}");
        assert_eq!(share(threads, 1000 * SECOND), Some(8.0), "{threads:?}");
    }
}

/// Shares of running, new and exited processes are all over one interval.
#[test]
fn shares_of_all_processes_add_up() {
    let made = [
        Made::new(100 * SECOND, 0, vec![process(7, SECOND, 0)]),
        Made::new(
            102 * SECOND,
            0,
            vec![
                process(7, SECOND, SECOND),
                process(8, 101 * SECOND + SECOND / 2, SECOND / 2),
                process(9, 102 * SECOND - MS, MS),
            ],
        ),
    ];
    let mut before = Baseline::default();
    before.set(&made[0].snapshot());
    let now = made[1].snapshot();
    let shares = before.changes(&now).map(|change| change.cpu_share);
    let shares: Vec<_> = shares.map(|share| share.expect("known")).collect();
    assert_eq!(shares, [0.5, 0.25, 0.0005]);
}

#[test]
fn a_counter_that_falls_gives_no_negative_rate_and_no_spike() {
    // A counter that is never known has no part in the time of the one that falls.
    for hidden in [Fields::empty(), Fields::IO] {
        let at = |second: u64, minflt| {
            let mut record = process(7, SECOND, second * SECOND / 2);
            record.cpu.minflt = minflt;
            record.identity.groups &= !hidden.bits();
            Made::new(second * SECOND, 0, vec![record])
        };
        let minflt = |snapshots: &[Made]| last_change(snapshots).1[3];
        let made = [
            at(10, 1000),
            at(11, 200),
            at(12, 300),
            at(13, 1600),
            at(14, 1800),
        ];
        assert_eq!(minflt(&made[..2]), Some(0.0));
        assert_eq!(minflt(&made[..3]), Some(0.0));
        // It grew by 600 in three seconds.
        assert_eq!(minflt(&made[..4]), Some(200.0));
        assert_eq!(minflt(&made), Some(200.0));
        // The other counters are over the last second each time.
        assert_eq!(last_change(&made[..4]).1[0], Some(0.5));
    }
}

#[test]
fn another_source_in_between_changes_nothing_but_precision() {
    let exact = |ms: u64| process(7, SECOND + 123_456, ms * 9 * MS / 10 + 999_999);
    let at = |ms: u64, record| Made::new(SECOND + ms * MS, 0, vec![record]);
    let mut made = Vec::new();
    for step in 1..40 {
        let record = exact(100 * step);
        made.push(at(
            100 * step,
            if step % 3 == 0 {
                as_text(&record)
            } else {
                record
            },
        ));
        if made.len() > 1 {
            let (born, [share, ..]) = last_change(&made);
            let share = share.expect("known");
            assert!(!born);
            assert!((0.7..=1.0).contains(&share), "{step}: {share}");
        }
    }
}

#[test]
fn counters_that_were_hidden_are_no_spike_when_they_are_known() {
    let at = |second: u64, hidden: bool| {
        let mut record = process(7, SECOND, 0);
        record.io.read_bytes = 1000 * second;
        if hidden {
            record.identity.groups &= !Fields::IO.bits();
        }
        Made::new(second * SECOND, 0, vec![record])
    };
    let read = |snapshots: &[Made]| last_change(snapshots).1[5];
    let made = [at(100, true), at(101, false), at(102, true), at(104, false)];
    assert_eq!(
        read(&made[..2]),
        Some(101_000.0 / 100.0),
        "over its whole life"
    );
    assert_eq!(read(&made[..3]), None);
    assert_eq!(read(&made), Some(1000.0));
}

#[test]
fn an_old_process_that_was_missed_is_no_spike() {
    let old = process(7, 10 * SECOND, 45 * SECOND);
    let (born, [share, ..]) = last_change(&[
        Made::new(99 * SECOND, 0, vec![]),
        Made::new(100 * SECOND, 0, vec![old]),
    ]);
    assert_eq!((born, share), (true, Some(0.5)));
}

#[test]
fn a_pid_that_is_given_away_is_another_process() {
    let made = [
        Made::new(100 * SECOND, 0, vec![process(7, SECOND, 50 * SECOND)]),
        Made::new(102 * SECOND, 0, vec![process(7, 101 * SECOND, SECOND / 4)]),
    ];
    let (born, [share, ..]) = last_change(&made);
    assert_eq!((born, share), (true, Some(0.125)));
    let mut before = Baseline::default();
    before.set(&made[0].snapshot());
    let gone: Vec<_> = before.gone(&made[1].snapshot()).collect();
    assert_eq!(
        gone,
        [Gone {
            pid: 7,
            start_ns: SECOND
        }]
    );
}

/// Between two snapshots one process ends and another gets its pid, within a tick.
#[test]
fn two_processes_with_one_pid_in_one_tick_are_two() {
    let (first_ns, second_ns) = (101 * SECOND + 1, 101 * SECOND + 3 * MS);
    let at = |second, records| Made::new(second * SECOND + 2 * MS, 0, records);
    let before = at(101, vec![process(7, first_ns, MS)]);
    let now = at(103, vec![process(7, second_ns, SECOND)]);
    let mut baseline = Baseline::default();
    baseline.set(&before.snapshot());
    let gone: Vec<_> = baseline
        .gone(&now.snapshot())
        .map(|gone| gone.start_ns)
        .collect();
    assert_eq!(gone, [first_ns]);
    let (born, [share, ..]) = last_change(&[before, now]);
    assert_eq!((born, share), (true, Some(0.5)));
}

fn with_thread(second: u64, tid: u32, run_ns: u64, minflt: u64) -> Made {
    let mut made = Made::new(second * SECOND, 0, vec![process(7, SECOND, 0)]);
    made.threads = vec![ThreadRecord {
        tgid: 7,
        tid,
        start_ns: SECOND,
        sum_exec_ns: run_ns,
        minflt,
        ..ThreadRecord::default()
    }];
    made
}

fn thread_change(before: &Made, now: &Made) -> (bool, Option<f64>, Option<f64>) {
    let mut baseline = Baseline::default();
    baseline.set(&before.snapshot());
    let snapshot = now.snapshot();
    let change = baseline.thread_changes(&snapshot).next().expect("a thread");
    assert_eq!(
        change.thread.map(|thread| thread.tid),
        Some(now.threads[0].tid)
    );
    (change.born, change.cpu_share, change.minflt_per_second)
}

#[test]
fn threads_are_compared_as_processes_are() {
    let before = with_thread(10, 8, SECOND, 10);
    assert_eq!(
        thread_change(&before, &with_thread(12, 8, 2 * SECOND, 30)),
        (false, Some(0.5), Some(10.0))
    );
    assert_eq!(
        thread_change(&before, &with_thread(11, 9, 5 * SECOND, 30)),
        (true, Some(0.5), Some(3.0))
    );
}

/// exec(2) in a thread that does not lead: afterwards it is the leading one, with its own counters.
#[test]
fn a_thread_that_took_the_place_of_another_is_measured_from_its_start() {
    let before = with_thread(10, 7, SECOND, 1000);
    assert_eq!(
        thread_change(&before, &with_thread(11, 7, 5 * SECOND, 2000)),
        (true, Some(0.5), Some(200.0)),
        "it ran for longer than there was time"
    );
    assert_eq!(
        thread_change(&before, &with_thread(11, 7, SECOND, 500)),
        (true, Some(0.1), Some(50.0)),
        "it has fewer faults"
    );
}

proptest! {
    /// For any sequence of snapshots, every value is a number, not negative, and within its bounds.
    #[test]
    fn every_value_is_within_its_bounds(
        snapshots in prop::collection::vec((any::<u64>(), any::<u64>(), prop::collection::btree_map(
            0..6_u32,
            (any::<[u64; 8]>(), 0..4_u32, any::<bool>(), 0..3_u64),
            0..6,
        )), 1..6),
        small in any::<bool>(),
    ) {
        let scale = |number: u64| if small { number % (5 * SECOND) } else { number };
        let mut baseline = Baseline::default();
        let machine = f64::from(Baseline::default().cpus());
        for (boottime_ns, read_for_ns, processes) in snapshots {
            let records: Vec<Record> = processes.into_iter().map(|(pid, (numbers, threads, text, start))| {
                let [run, user, system, minflt, majflt, read, write, start_ns] = numbers.map(scale);
                let mut record = process(pid, if small { start } else { start_ns }, run);
                (record.cpu.utime_ns, record.cpu.stime_ns) = (user, system);
                (record.cpu.minflt, record.cpu.majflt) = (minflt, majflt);
                (record.io.read_bytes, record.io.write_bytes) = (read, write);
                record.identity.num_threads = threads;
                if text { as_text(&record) } else { record }
            }).collect();
            let mut made = Made::new(scale(boottime_ns), scale(read_for_ns), records);
            made.threads = made.records.iter().map(|record| ThreadRecord {
                tgid: record.identity.tgid,
                tid: record.identity.tgid,
                start_ns: record.identity.start_ns,
                sum_exec_ns: record.cpu.sum_exec_ns,
                utime_ns: record.cpu.utime_ns,
                minflt: record.cpu.minflt,
                ..ThreadRecord::default()
            }).collect();
            let snapshot = made.snapshot();
            for change in baseline.changes(&snapshot).chain(baseline.thread_changes(&snapshot)) {
                for value in values(&change) {
                    let value = value.expect("it is known");
                    prop_assert!(value.is_finite() && value >= 0.0, "{value}");
                }
                let [share, user, system, ..] = values(&change).map(Option::unwrap_or_default);
                prop_assert!(share <= machine && user + system <= machine * 1.000_000_1);
                if change.thread.is_some() {
                    prop_assert!(share <= 1.0);
                }
            }
            baseline.set(&snapshot);
        }
    }

    /// However often a counter is read, and whatever its values in between, the growths add up to the highest value
    /// minus the first.
    #[test]
    fn growth_sums_up_to_the_highest_mark(looks in prop::collection::vec((0..1000_u64, any::<bool>()), 1..50)) {
        let mut marks = Marks::at_start(0);
        let (mut sum, mut highest) = (0, 0);
        for (time, (value, known)) in (1..).zip(looks) {
            let mut record = process(7, 0, 0);
            record.io.read_bytes = value;
            if known {
                highest = highest.max(value);
            } else {
                record.identity.groups = 0;
            }
            let growth = marks.advance(&TaskCounters::from_process(Process::new(&record, &[])), time);
            prop_assert_eq!(growth.get(Counter::ReadBytes).is_some(), known);
            sum += growth.get(Counter::ReadBytes).unwrap_or(0);
        }
        prop_assert_eq!(sum, highest);
    }

    /// Growth before the first mark does not count, and an unknown counter counts from the first time that it is known.
    #[test]
    fn counts_before_the_baseline_are_not_counted(first in 0..1000_u64, then in 0..1000_u64, last in 0..1000_u64, known in any::<bool>()) {
        let counters = |value: u64, known: bool| {
            let mut record = process(7, 0, 0);
            record.io.read_bytes = value;
            if !known {
                record.identity.groups = 0;
            }
            TaskCounters::from_process(Process::new(&record, &[]))
        };
        let mut marks = Marks::at(&counters(first, known), 1);
        let grown = marks.advance(&counters(first + then, true), 2).get(Counter::ReadBytes);
        prop_assert_eq!(grown, known.then_some(then));
        let grown = marks.advance(&counters(first + then + last, true), 3).get(Counter::ReadBytes);
        prop_assert_eq!(grown, Some(last));
    }
}
