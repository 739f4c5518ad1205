//! Made processes, recorded and looked at.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use fastproc::{
    Fields, Host, Process, Snapshot, SnapshotStats, SourceKind, Table,
    cgroups::{self, Cgroup, Recorded},
    exits::Exit,
    record::Record,
};
use fastproc_columns::Row;
use fastproc_testbed::Folder as Temporary;

use super::*;
use crate::{
    folder::{Folder, host_name},
    recorder::{
        Bounds, Cell, Kept, Look, Moment as At, Names, Session, Texts as Asked, row_of,
        rows_of_cgroups,
    },
    table::{MACHINE, PROCESSES},
};

const SECOND: i64 = 1_000_000;
/// At the beginning of an hour.
const START: i64 = 1_800_000_000 * SECOND;
const BOOTED: i64 = START - 1_000 * SECOND;
/// One without the other hides sums.
const GROUPS: Fields = Fields::CPU.union(Fields::USERS).union(Fields::IO);

/// Texts by number.
struct Made;

impl Asked for Made {
    fn name(&mut self, _: Names, id: u32) -> Cell {
        format!("user{id}").as_str().into()
    }
    fn line(&mut self, process: Process<'_>) -> Cell {
        format!("line of {}", process.pid()).as_str().into()
    }
    fn line_of_exit(&mut self, _: &Snapshot<'_>, exit: &Exit) -> Cell {
        format!("end of {}", exit.pid).as_str().into()
    }
    fn may_trace(&mut self, _: Process<'_>) -> bool {
        true
    }
}

/// A process: its CPU time and what it has read.
fn record(pid: u32, cpu: u64, read: u64) -> Record {
    let mut record = Record::default();
    record.identity.groups = GROUPS.bits();
    (record.identity.tgid, record.identity.start_ns) = (pid, start_of(pid));
    record.identity.comm[0] = b'a';
    (record.cpu.utime_ns, record.io.read_bytes) = (cpu, read);
    record
}

/// All are younger than the recorder but the first ones.
fn start_of(pid: u32) -> u64 {
    if pid < 10 {
        u64::from(pid)
    } else {
        1_000_000_000_000 + u64::from(pid)
    }
}

fn exit(pid: u32, cpu: u64, second: i64) -> Exit {
    let mut exit = Exit::default();
    (exit.pid, exit.tid, exit.start_ns) = (pid, pid, start_of(pid));
    exit.end_ns = Some(ns(second) - 500_000_000);
    (exit.utime_ns, exit.is_final) = (cpu, true);
    exit
}

/// Since boot.
fn ns(second: i64) -> u64 {
    ((START + second * SECOND - BOOTED) * 1000) as u64
}

struct Recorder {
    session: Session,
    /// Whether exits are recorded.
    exits: bool,
}

impl Recorder {
    fn begin(folder: &Path, host: &str, boot: &str) -> Self {
        Self::thinning(folder, host, boot, [86_400; 2])
    }

    /// Which keeps every walk, and then one of ten, for these seconds.
    fn thinning(folder: &Path, host: &str, boot: &str, [every, each_10]: [i64; 2]) -> Self {
        let bounds = Bounds {
            leave: 0.0,
            every,
            each_10,
            ..Bounds::default()
        };
        let open = Folder::create(folder, host).expect("a folder");
        let now = START / SECOND;
        let (kept, taken, told) = Kept::take(open, host.into(), bounds, now).expect("it is free");
        let second = Duration::from_secs(1);
        Self {
            session: Session::new(kept, boot, second, taken, told).expect("a thread"),
            exits: true,
        }
    }

    fn push(&mut self, second: i64, records: &[Record], exits: &[Exit]) {
        self.push_all(second, records, exits, &Recorded::default());
    }

    fn push_all(&mut self, second: i64, records: &[Record], exits: &[Exit], cgroups: &Recorded) {
        let boot = START + second * SECOND - BOOTED;
        let moment = At {
            wall: START + second * SECOND,
            boot,
            awake: boot,
        };
        let table = Table {
            records,
            ..Table::default()
        };
        let stats = SnapshotStats::recorded(SourceKind::Procfs, ns(second), Duration::ZERO);
        let snapshot = Snapshot::recorded(table, stats).with_exits(exits, 0);
        let mut known = vec![
            ("began_ns", ns(second) as i64),
            ("read_for_ns", 0),
            ("interval_ns", 1_000_000_000),
            ("cpus", 2),
        ];
        known.extend(self.exits.then_some(("lost_exits", 0)));
        let machine = row_of(&MACHINE, &known);
        let look = Look {
            moment,
            snapshot: &snapshot,
            machine: &machine,
            cgroups: &rows_of_cgroups(cgroups.snapshot()),
            waits: &[],
        };
        self.session.push(&look, &mut Made);
    }

    fn end(mut self) {
        assert!(self.session.finish("the test ends"));
    }
}

fn open(folder: &Path) -> History {
    History::open(folder, None).expect("a history")
}

fn at(second: i64) -> i64 {
    START + second * SECOND
}

/// CPU time by pid.
fn seen(moment: &Moment) -> Vec<(u32, u64)> {
    let of = |process: Process<'_>| (process.pid(), process.cpu().map_or(0, |cpu| cpu.utime_ns));
    moment.snapshot().iter().map(of).collect()
}

/// CPU time and bytes read, by pid.
fn did(window: &Window) -> BTreeMap<u32, (u64, Option<u64>)> {
    let of = |process: Process<'_>| {
        let cpu = process.cpu().map_or(0, |cpu| cpu.utime_ns);
        (process.pid(), (cpu, process.io().map(|io| io.read_bytes)))
    };
    window.rows().iter().map(|row| of(row.process)).collect()
}

#[test]
fn a_moment_is_the_last_walk_that_was_not_later() {
    let folder = Temporary::new("moment");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    // Over the end of a row group, and of an hour.
    for second in 3_580..3_620 {
        let mut records = vec![record(1, 7, 0), record(2, second as u64, 0)];
        records.truncate(if second < 3_610 { 2 } else { 1 });
        recorder.push(second, &records, &[]);
    }
    recorder.end();
    let mut history = open(&folder);
    for (time, expected) in [
        (at(3_580), vec![(1, 7), (2, 3_580)]),
        (at(3_599) + 999_999, vec![(1, 7), (2, 3_599)]),
        (at(3_600), vec![(1, 7), (2, 3_600)]),
        (at(3_610), vec![(1, 7)]),
        (at(3_620), vec![(1, 7)]),
    ] {
        let moment = history.at(time, GROUPS).expect("it was recorded");
        assert_eq!(seen(&moment), expected, "{time}");
    }
    let moment = history.at(at(3_590), GROUPS).expect("it was recorded");
    let mut lookup = moment.lookup(Host::read().expect("the host"));
    assert_eq!(lookup.users.name(0), b"user0");
    let snapshot = moment.snapshot();
    let process = snapshot.get(2).expect("it was there");
    let line = lookup.details.cmdline(process).expect("it was kept");
    assert_eq!(line.bytes, b"line\0of\x002\0");
}

#[test]
fn a_gap_says_which_times_are_around_it() {
    let folder = Temporary::new("gap");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    for second in [10, 12, 5_000, 5_001] {
        recorder.push(second, &[record(1, second as u64, 0)], &[]);
    }
    recorder.end();
    let mut history = open(&folder);
    for (second, around) in [
        (9, (None, Some(at(10)))),
        (15, (Some(at(12)), Some(at(5_000)))),
        (4_999, (Some(at(12)), Some(at(5_000)))),
        (5_004, (Some(at(5_001)), None)),
    ] {
        match history.at(at(second), GROUPS) {
            Err(Error::Gap { before, after, .. }) => assert_eq!((before, after), around),
            other => panic!("{second}: {other:?}"),
        }
    }
    let window = history
        .between(at(0), at(9_000), GROUPS)
        .expect("there are walks");
    assert_eq!((window.first.time, window.last.time), (at(10), at(5_001)));
    assert_eq!(window.gaps, [(at(12), at(5_000))]);
    assert_eq!(did(&window)[&1], (4_991, Some(0)));
    let lacks = history
        .lacks_of_exits(at(0), at(9_000))
        .expect("there are walks");
    assert_eq!((lacks.first, lacks.gaps), (at(10), window.gaps));
    let none = history.lacks_of_exits(at(100), at(200));
    assert!(matches!(none, Err(Error::Gap { .. })), "{none:?}");
    let none = history.between(at(100), at(200), GROUPS);
    assert!(matches!(none, Err(Error::Gap { .. })), "{none:?}");
    let backwards = history.between(at(11), at(11), GROUPS);
    assert!(matches!(backwards, Err(Error::Backwards)));
    let spans = history.spans().expect("it can be read");
    assert_eq!(spans, (vec![(at(10), at(12)), (at(5_000), at(5_001))], 1));
}

#[test]
fn a_window_has_what_each_process_did_also_the_ended_ones() {
    let folder = Temporary::new("window");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    let (one, two) = (record(1, 10, 100), record(2, 5, 50));
    recorder.push(0, &[one, two], &[]);
    // It began and ended between two walks; it is in no row of `processes`.
    recorder.push(
        1,
        &[record(1, 12, 130), two, record(11, 3, 0)],
        &[exit(10, 4, 1)],
    );
    recorder.push(2, &[record(1, 30, 170), record(11, 8, 9)], &[exit(2, 9, 2)]);
    // A zombie until the next walk.
    recorder.push(3, &[record(1, 31, 171), record(11, 9, 9)], &[]);
    recorder.push(4, &[record(1, 31, 171)], &[exit(11, 9, 3)]);
    recorder.end();
    let mut history = open(&folder);
    let of = |history: &mut History, from, to| {
        did(&history
            .between(at(from), at(to), GROUPS)
            .expect("it was recorded"))
    };
    let whole = of(&mut history, 0, 4);
    // What an exit has read is not known here.
    let expected = [
        (1, (21, Some(71))),
        (2, (4, None)),
        (10, (4, None)),
        (11, (9, None)),
    ];
    assert_eq!(whole, expected.into());
    assert_eq!(of(&mut history, 1, 2)[&11], (5, Some(9)));
    // Parts of a time add up to it.
    for pid in [1, 2, 10, 11] {
        let parts = [(0, 1), (1, 3), (3, 4)];
        let parts =
            parts.map(|(from, to)| of(&mut history, from, to).get(&pid).map_or(0, |it| it.0));
        assert_eq!(parts.iter().sum::<u64>(), whole[&pid].0, "{pid}");
    }
    let window = history
        .between(at(0), at(4), GROUPS)
        .expect("it was recorded");
    let shares: BTreeMap<_, _> = window
        .rows()
        .iter()
        .map(|row| {
            (
                row.process.pid(),
                row.change.and_then(|change| change.cpu_ns),
            )
        })
        .collect();
    assert_eq!(shares[&1], Some(21));
    let ended = window
        .rows()
        .iter()
        .filter(|row| row.exit().is_some())
        .count();
    assert_eq!(ended, 3);
}

#[test]
fn a_process_without_an_exit_counts_as_it_was_last_seen() {
    let folder = Temporary::new("vanished");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    recorder.exits = false;
    recorder.push(0, &[record(1, 1, 1), record(2, 5, 50)], &[]);
    recorder.push(
        1,
        &[record(1, 1, 1), record(2, 7, 60), record(10, 3, 4)],
        &[],
    );
    recorder.push(2, &[record(1, 1, 1)], &[]);
    recorder.end();
    let mut history = open(&folder);
    let lacks = history
        .lacks_of_exits(at(0), at(2))
        .expect("there are walks");
    assert_eq!(lacks.lost_exits, None);
    let window = history.between(at(0), at(2), GROUPS);
    let window = window.expect("it was recorded");
    assert_eq!(window.lost_exits, None);
    let expected = [(1, (0, Some(0))), (2, (2, Some(10))), (10, (3, Some(4)))];
    assert_eq!(did(&window), expected.into());
    let rows = window.rows();
    let last = rows.iter().find(|row| row.process.pid() == 2);
    let last = last.and_then(Row::exit).expect("it ended");
    assert!(!last.is_final && last.end_ns.is_none() && last.status.is_none());
}

#[test]
fn a_window_over_two_boots_is_refused() {
    let folder = Temporary::new("boots");
    for (boot, seconds) in [("one", 0..3), ("two", 3..6)] {
        let mut recorder = Recorder::begin(&folder, "a", boot);
        for second in seconds {
            recorder.push(second, &[record(1, second as u64, 0)], &[]);
        }
        recorder.end();
    }
    let mut history = open(&folder);
    let over = history.between(at(0), at(5), GROUPS);
    assert!(matches!(over, Err(Error::Booted(one, two)) if one == at(2) && two == at(3)));
    assert!(history.between(at(3), at(5), GROUPS).is_ok());
    let mut exits = 0;
    history
        .exits((at(0), at(9)), |_| exits += 1)
        .expect("it can be read");
    assert_eq!(exits, 0);
}

#[test]
fn the_open_part_of_an_hour_is_read_before_its_row_group_is_written() {
    let folder = Temporary::new("open");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    for second in 0..25 {
        recorder.push(second, &[record(1, second as u64, 0), record(2, 7, 0)], &[]);
    }
    let written = || {
        let entries = Folder::open(&folder).and_then(|folder| folder.list());
        let walks = entries
            .into_iter()
            .flatten()
            .filter(|entry| &*entry.table == "machine");
        walks.count() == 4
    };
    fastproc_testbed::wait_until("four parts are written", written);
    let mut history = open(&folder);
    for second in 0..20 {
        let moment = history.at(at(second), GROUPS).expect("it is written");
        assert_eq!(seen(&moment), [(1, second as u64), (2, 7)]);
    }
    // What is saved begins with all processes.
    let saved = history
        .save((at(12), at(14)), "kept")
        .expect("it is written");
    let moment = open(&saved).at(at(13), GROUPS).expect("it was saved");
    assert_eq!(seen(&moment), [(1, 13), (2, 7)]);
    recorder.end();
}

#[test]
fn an_exit_counts_for_when_it_happened_unless_that_was_known_much_later() {
    let folder = Temporary::new("late");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    recorder.push(0, &[record(1, 0, 0)], &[]);
    recorder.push(400, &[record(1, 0, 0)], &[exit(2, 1, 100), exit(3, 1, 395)]);
    recorder.end();
    let mut history = open(&folder);
    let mut pids = |from, to| {
        let mut pids = Vec::new();
        let read = history.exits_of((at(from), at(to)), |exited| pids.push(exited.exit.pid));
        read.expect("it can be read");
        pids.sort_unstable();
        pids
    };
    assert!(pids(90, 110).is_empty());
    assert_eq!(pids(390, 395), [3]);
    assert_eq!(pids(251, 400), [2, 3]);
}

#[test]
fn where_rows_are_damaged_nothing_is_shown_and_the_rest_is() {
    let folder = Temporary::new("damage");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    for second in [0, 1, 900, 901] {
        recorder.push(
            second,
            &[record(1, second as u64, 0)],
            &[exit(2, 1, second)],
        );
    }
    recorder.end();
    let history = open(&folder);
    let entries = history.entries().expect("it can be listed");
    let damage = |table| {
        let files = entries.iter().filter(|entry| &*entry.table == table);
        let first = files.min_by_key(|entry| entry.from).expect("there are two");
        let path = folder.join(&first.path);
        let mut bytes = fs::read(&path).expect("it can be read");
        bytes[40] ^= 1;
        fs::write(&path, bytes).expect("it can be written");
        first
    };
    let first = damage("processes");
    damage("exits");
    assert_eq!(history.check(first).expect("it can be read").len(), 1);
    let mut history = open(&folder);
    let broken = history.at(at(1), GROUPS);
    assert!(matches!(broken, Err(Error::Damaged { path, .. }) if path == first.path));
    let moment = history.at(at(901), GROUPS).expect("it is intact");
    assert_eq!(seen(&moment), [(1, 901)]);
    let walks = history.walks(at(0), at(901)).expect("they are intact");
    // However often it is asked.
    for _ in 0..2 {
        let exits = history.exits_between(&walks[0], &walks[1], |_| {});
        assert!(matches!(exits, Err(Error::Damaged { .. })), "{exits:?}");
    }
    let exits = history.exits_between(&walks[2], &walks[3], |_| {});
    assert!(exits.is_ok(), "{exits:?}");
}

#[test]
fn a_window_is_saved_as_a_history_of_its_own() {
    let folder = Temporary::new("saved");
    for (host, seconds) in [("a", 0..4_000), (&host_name(b"b/c"), 0..1)] {
        let mut recorder = Recorder::begin(&folder, host, "boot");
        for second in seconds.step_by(100) {
            recorder.push(second, &[record(1, second as u64, 0)], &[]);
        }
        recorder.end();
    }
    let several = History::open(&folder, None);
    assert!(
        matches!(several, Err(Error::Hosts(hosts)) if hosts == ["a", "b%2Fc"]),
        "two hosts"
    );
    assert!(History::open(&folder, Some("b/c")).is_ok());
    let other = History::open(&folder, Some("c"));
    assert!(matches!(other, Err(Error::NoHost { .. })));
    let mut history = History::open(&folder, Some("a")).expect("a history");
    let hour = (at(100), at(200));
    let saved = history.save(hour, "kept").expect("it is written");
    let moment = open(&saved).at(at(200), GROUPS).expect("it was saved");
    assert_eq!(seen(&moment), [(1, 200)]);
    assert!(matches!(history.save(hour, "kept"), Err(Error::Saved(_))));
    for name in ["", "../x", ".x", "a/b"] {
        assert!(
            matches!(history.save(hour, name), Err(Error::Name(_))),
            "{name}"
        );
    }
    let nothing = history.save((at(90_000), at(90_001)), "other");
    assert!(matches!(nothing, Err(Error::Nothing)));
}

#[test]
fn rows_of_a_time_are_those_from_its_first_second_to_before_its_last() {
    let folder = Temporary::new("rows");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    for second in 10..14 {
        recorder.push(second, &[record(1, second as u64, 0)], &[]);
    }
    recorder.end();
    let mut rows = Vec::new();
    let read = open(&folder).read(
        &PROCESSES,
        (at(11), at(13)),
        &["time", "utime_ns"],
        |read| {
            let pairs = read.numbers("time").iter().zip(read.numbers("utime_ns"));
            rows.extend(pairs.map(|(time, cpu)| (time.expect("a time"), cpu.expect("a number"))));
            assert!(read.numbers("pid").is_empty(), "it is not wanted");
        },
    );
    read.expect("it can be read");
    assert_eq!(rows, [(at(11), 11), (at(12), 12)]);
}

/// Processes of each second of an hour, with an exit, and then of a second of the next one, when the first is thinned.
fn thinned(folder: &Path, ages: [i64; 2]) -> History {
    let mut recorder = Recorder::thinning(folder, "a", "boot", ages);
    for second in 0..240 {
        let records = [
            record(1, 7, 0),
            record(2, 1_000 + second as u64, 0),
            record(3, 5, 0),
        ];
        let all = if second < 100 { 3 } else { 2 };
        let exits = [exit(3, 9, 100)];
        let exits = if second == 100 { &exits[..] } else { &[] };
        recorder.push(second, &records[..all], exits);
    }
    for second in [3_600, 4_500] {
        recorder.push(second, &[record(1, 7, 0)], &[]);
    }
    recorder.end();
    open(folder)
}

#[test]
fn a_thinned_hour_is_read_as_it_was_at_the_ends_of_its_intervals() {
    for (ages, seconds) in [([0, 86_400], 10), ([0, 0], 60)] {
        let folder = Temporary::new("thinned");
        let mut history = thinned(&folder, ages);
        let tiers: Vec<_> = history
            .chosen(&PROCESSES, START / SECOND, START / SECOND + 1)
            .expect("it can be read")
            .iter()
            .map(|entry| entry.path.to_string_lossy().into_owned())
            .collect();
        assert!(
            tiers[0].ends_with(&format!("processes-{seconds}s.parquet")),
            "{tiers:?}"
        );
        // The last walk of the interval before.
        let seen_at = |time: i64| time / seconds * seconds - 1;
        let moment = history.at(at(90), GROUPS).expect("it was recorded");
        let cpu = 1_000 + seen_at(90) as u64;
        assert_eq!(seen(&moment), [(1, 7), (2, cpu), (3, 5)]);
        let moment = history.at(at(185), GROUPS).expect("it was recorded");
        assert_eq!(seen(&moment), [(1, 7), (2, 1_000 + seen_at(185) as u64)]);
        let window = history
            .between(at(90), at(185), GROUPS)
            .expect("it was recorded");
        let used = (seen_at(185) - seen_at(90)) as u64;
        let expected = [(1, (0, Some(0))), (2, (used, Some(0))), (3, (4, None))];
        assert_eq!(did(&window), BTreeMap::from(expected));
        assert!(window.gaps.is_empty(), "{:?}", window.gaps);
    }
}

/// Cgroups with an id, a path, CPU time in seconds and memory.
fn hierarchy(all: &[(u64, &str, u64, u64)]) -> Recorded {
    let mut recorded = Recorded::new(0);
    for (id, path, cpu, memory) in all {
        let mut record = cgroups::record::Record::default();
        record.identity.id = *id;
        record.identity.groups = (cgroups::Fields::CPU | cgroups::Fields::MEMORY).bits();
        record.cpu.usage_ns = cpu * 1_000_000_000;
        record.memory.set_current(Some(*memory));
        recorded.add(record, path.as_bytes());
    }
    recorded
}

/// Path, parent, seconds of CPU time, and memory, in order.
fn cgroups_of(snapshot: cgroups::Snapshot<'_>) -> Vec<(String, u64, u64, Option<u64>)> {
    let of = |cgroup: Cgroup<'_>| {
        let cpu = cgroup.cpu().map_or(0, |cpu| cpu.usage_ns / 1_000_000_000);
        let memory = cgroup.memory().and_then(cgroups::record::Memory::current);
        let path = String::from_utf8_lossy(cgroup.path()).into_owned();
        (path, cgroup.record().identity.parent, cpu, memory)
    };
    snapshot.iter().map(of).collect()
}

#[test]
fn a_window_has_the_cgroups_that_were_removed_in_it() {
    let folder = Temporary::new("cgroups");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    let root = (1, "/", 0, 0);
    // One ends before the window, one in it, one at the end of a row group; one begins again under its name.
    for (second, all) in [
        (890, vec![root, (9, "/old", 9, 9)]),
        (
            891,
            vec![root, (2, "/a", 1, 10), (3, "/a/b", 1, 10), (4, "/c", 5, 5)],
        ),
        (
            892,
            vec![root, (2, "/a", 3, 20), (3, "/a/b", 2, 20), (4, "/c", 6, 5)],
        ),
        (899, vec![root, (2, "/a", 4, 30), (5, "/c", 1, 7)]),
        (900, vec![root, (5, "/c", 2, 8)]),
    ] {
        recorder.push_all(second, &[record(1, 7, 0)], &[], &hierarchy(&all));
    }
    recorder.end();
    let mut history = open(&folder);
    let moment = history.cgroups_at(at(892)).expect("it was recorded");
    let row = |path: &str, parent, cpu, memory| (path.to_owned(), parent, cpu, memory);
    assert_eq!(
        cgroups_of(moment.snapshot()),
        [
            row("/", 0, 0, Some(0)),
            row("/a", 1, 3, Some(20)),
            row("/c", 1, 6, Some(5)),
            row("/a/b", 2, 2, Some(20)),
        ]
    );
    let window = history.cgroups_between(at(891), at(900));
    let window = window.expect("it was recorded");
    assert_eq!(
        cgroups_of(window.snapshot()),
        [
            row("/", 0, 0, Some(0)),
            row("/a", 1, 3, None),
            row("/c", 1, 1, None),
            row("/c", 1, 2, Some(8)),
            row("/a/b", 2, 1, None),
        ]
    );
    let before = window.before().expect("it is a window");
    let cpu = window.snapshot().iter().map(|cgroup| {
        let changes = before.changes(window.snapshot(), cgroup);
        changes.cpu.map(|cpu| (cpu * 9.0).round() as u64)
    });
    assert_eq!(cpu.collect::<Vec<_>>(), [0, 3, 1, 2, 1].map(Some));
}

#[test]
fn a_process_ends_at_the_first_walk_without_it() {
    let folder = Temporary::new("life");
    let mut recorder = Recorder::begin(&folder, "a", "boot");
    // One ends at the end of a row group, one in the next one, one never.
    for second in (0..5_400).step_by(30) {
        let all = [(1, 5_400), (2, 1_800), (3, 4_000)];
        let living = all.into_iter().filter(|(_, end)| second < *end);
        let records: Vec<_> = living
            .map(|(pid, _)| record(pid, second as u64, 0))
            .collect();
        recorder.push(second, &records, &[]);
    }
    recorder.end();
    let mut history = open(&folder);
    let mut end = |pid, from| {
        history
            .end_of(pid, start_of(pid), at(from))
            .expect("intact")
    };
    assert_eq!(end(1, 0), None);
    assert_eq!(end(2, 0), Some(at(1_800)));
    assert_eq!([end(3, 30), end(3, 3_990)], [Some(at(4_020)); 2]);
}
