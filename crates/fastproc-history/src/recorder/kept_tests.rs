//! What is kept in a folder.

use fastproc_testbed::{Folder as TestFolder, wait_until};

use super::{
    kept::{Bounds, Error, Kept},
    store::Boot,
    tests::{at, push, record, session},
    writing::Event,
    *,
};
use crate::{
    file::File,
    folder::{Entry, Folder, Place as Where},
    rows::Rows,
    table::{EVENTS, MACHINE, PROCESSES, THINNED, Table, WAITS},
};

const SECOND: i64 = 1_000_000;
/// At the beginning of an hour.
const START: i64 = 1_800_000_000;
const HOUR: i64 = 3_600;

/// Bounds for tests: the disk may be rather full.
fn bounds() -> Bounds {
    Bounds {
        leave: 0.0,
        ..Bounds::default()
    }
}

fn take(folder: &TestFolder, bounds: Bounds, now: i64) -> Result<(Kept, Taken, Vec<Event>), Error> {
    let opened = Folder::create(&folder.join("history"), "host").expect("a folder of ours");
    Kept::take(opened, "host".into(), bounds, now)
}

fn read(folder: &TestFolder) -> Folder {
    Folder::open(&folder.join("history")).expect("the file exists")
}

/// A row of a process.
fn row(values: &[(&str, i64)]) -> Row {
    row_of(&PROCESSES, values)
}

/// A row group with a row of process 1 in each of these seconds.
fn group(from: i64, to: i64, rows: impl IntoIterator<Item = (i64, Row)>) -> Group {
    let boot = Boot {
        id: "boot".into(),
        time: 7,
    };
    let mut group = Group::new(from * SECOND, to * SECOND, &boot);
    for (time, row) in rows {
        group.push(&PROCESSES, (1, 5), time * SECOND, None, &row);
    }
    group
}

fn quarter(from: i64) -> Job {
    let rows = (from..from + 900).map(|time| {
        let value = time * 777_777_777 % 1_000_003;
        (
            time,
            row(&[("pid", 1), ("start_ns", 5), ("utime_ns", value)]),
        )
    });
    Job::Group(group(from, from + 900, rows))
}

fn rows(folder: &Folder, entry: &Entry, table: &'static Table, columns: &[&str]) -> Vec<Rows> {
    let file = folder.read(entry).expect("the file exists");
    let file = File::open(file, table).expect("it is whole");
    let groups = 0..file.groups();
    groups
        .map(|group| file.read(group, columns).expect("it is whole"))
        .collect()
}

fn sealed(folder: &Folder, table: &Table) -> Vec<Entry> {
    let mut entries = folder.list().expect("it is read");
    entries.retain(|entry| entry.place != Where::Open && *entry.table == *table.name);
    entries
}

#[test]
fn an_hour_that_is_over_is_sealed_of_its_row_groups() {
    let folder = TestFolder::new("history-sealed");
    let (mut kept, ..) = take(&folder, bounds(), START).expect("nobody else is there");
    let mut told = Vec::new();
    for at in 0..5 {
        kept.write(&quarter(START + at * 900), &mut told)
            .expect("it is written");
    }
    assert_eq!(told, []);
    let read = read(&folder);
    let entries = read.list().expect("it is read");
    let times: Vec<_> = entries
        .iter()
        .map(|entry| (entry.place, entry.from, entry.to))
        .collect();
    let hour = (Where::Sealed { tier: 1 }, START, START + HOUR);
    let open = (Where::Open, START + HOUR, START + HOUR + 900);
    assert_eq!(times, [hour, open]);
    let groups = rows(&read, &entries[0], &PROCESSES, &["time"]);
    assert_eq!(
        groups.iter().map(|rows| rows.count).collect::<Vec<_>>(),
        [900; 4]
    );
}

#[test]
fn a_second_recorder_is_refused() {
    let folder = TestFolder::new("history-locked");
    let first = take(&folder, bounds(), START).expect("nobody else is there");
    assert!(matches!(
        take(&folder, bounds(), START),
        Err(Error::Locked(_))
    ));
    drop(first);
    assert!(take(&folder, bounds(), START).is_ok());
}

#[test]
fn the_parts_of_a_killed_recorder_are_read_and_sealed() {
    let folder = TestFolder::new("history-killed");
    let (kept, taken, told) = take(&folder, bounds(), START).expect("nobody else is there");
    let second = std::time::Duration::from_secs(1);
    let mut killed = Session::new(kept, "boot", second, taken, told).expect("a thread");
    for second in 0..16 {
        push(
            &mut killed,
            at((START + second) * SECOND),
            &[record(1, 5, second as u64)],
            &[],
        );
    }
    let parts = || {
        read(&folder)
            .chosen("processes", START, START + HOUR)
            .expect("it is read")
    };
    wait_until("three parts", || parts().len() == 3);
    drop(killed);
    let mut again = None;
    wait_until("the thread ends", || {
        again = take(&folder, bounds(), START + 20).ok();
        again.is_some()
    });
    let (kept, taken, told) = again.expect("nobody else is there");
    assert!(taken.contains((START + 14) * SECOND) && !taken.contains((START + 15) * SECOND));
    let mut next = Session::new(kept, "boot", second, taken, told).expect("a thread");
    for second in [20, 21, HOUR] {
        push(
            &mut next,
            at((START + second) * SECOND),
            &[record(1, 5, 0)],
            &[],
        );
    }
    assert!(next.finish("test"));
    let folder = read(&folder);
    let entries = sealed(&folder, &PROCESSES);
    assert_eq!(entries.len(), 1);
    let groups = rows(&folder, &entries[0], &PROCESSES, &["time"]);
    assert_eq!(groups.iter().map(|rows| rows.count).sum::<usize>(), 15 + 1);
    let walks = rows(&folder, &sealed(&folder, &MACHINE)[0], &MACHINE, &["time"]);
    assert_eq!(walks.iter().map(|rows| rows.count).sum::<usize>(), 15 + 2);
}

#[test]
fn the_size_is_never_passed_and_the_oldest_makes_room() {
    let folder = TestFolder::new("history-size");
    let size = 60 << 10;
    let bounds = Bounds { size, ..bounds() };
    let (mut kept, ..) = take(&folder, bounds, START).expect("nobody else is there");
    let mut told = Vec::new();
    let folder = read(&folder);
    for at in 0..24 {
        let written = kept.write(&quarter(START + at * 900), &mut told);
        written.expect("there is room");
        let entries = folder.list().expect("it is read");
        let used: u64 = entries.iter().map(|entry| entry.bytes).sum();
        assert!(used <= size, "{used}");
        assert!(
            entries
                .iter()
                .any(|entry| entry.to == START + (at + 1) * 900)
        );
    }
    let dropped = |told: &&Event| told.event == "dropped";
    assert!(told.iter().any(|told| dropped(&told)));
}

#[test]
fn a_row_group_leaves_room_for_its_parts_and_for_the_ones_before() {
    let folder = TestFolder::new("history-small");
    let size = 1 << 20;
    let bounds = Bounds { size, ..bounds() };
    let (kept, ..) = take(&folder, bounds, START).expect("nobody else is there");
    let mut written = session(kept);
    let read = read(&folder);
    for second in 0..600_i64 {
        let moment = at((START + second) * SECOND);
        let records: Vec<_> = (1..200)
            .map(|pid| {
                record(
                    pid,
                    5,
                    (second * 7_919_777 % 99_999_989).cast_unsigned() << (pid % 9),
                )
            })
            .collect();
        push(&mut written, moment, &records, &[]);
        assert_eq!(
            written
                .take_told()
                .iter()
                .find(|told| told.starts_with("failed")),
            None
        );
    }
    assert!(written.finish("test"));
    let entries = read.list().expect("it is read");
    assert!(entries.iter().map(|entry| entry.bytes).sum::<u64>() <= size);
    let walks = entries.iter().filter(|entry| *entry.table == *MACHINE.name);
    let groups: Vec<_> = walks
        .map(|entry| (entry.from - START, entry.to - START))
        .collect();
    assert!(groups.len() > 2, "{groups:?}");
}

/// A part of five seconds with a walk, a process of many different values, and an event.
fn part(from: i64, whole: i64) -> Job {
    let Job::Group(mut part) = quarter(from) else {
        panic!("a row group")
    };
    part.to = (from + 5) * SECOND;
    let rows = [
        (&MACHINE, row_of(&MACHINE, &[("whole", whole)])),
        (&EVENTS, row_of(&EVENTS, &[])),
    ];
    for (table, row) in rows {
        part.push(table, (0, 0), from * SECOND, None, &row);
    }
    Job::Part(part)
}

#[test]
fn parts_go_with_the_one_that_begins_their_row_group_but_events_stay() {
    let folder = TestFolder::new("history-beginning");
    let (mut kept, ..) = take(&folder, bounds(), START).expect("nobody else is there");
    let mut told = Vec::new();
    let folder = read(&folder);
    let times = |table: &str| -> Vec<_> {
        let mut entries = folder.list().expect("it is read");
        entries.retain(|entry| *entry.table == *table);
        entries.iter().map(|entry| entry.from - START).collect()
    };
    let write = |kept: &mut Kept, told: &mut Vec<Event>, at: i64, whole| {
        let written = kept.write(&part(START + at, whole), told);
        written.expect("there is room");
    };
    for (at, whole) in [(0, 1), (5, 0), (10, 1), (15, 0)] {
        write(&mut kept, &mut told, at, whole);
    }
    let used: u64 = folder
        .list()
        .expect("it is read")
        .iter()
        .map(|entry| entry.bytes)
        .sum();
    kept.bounds.size = used + 5_000;
    write(&mut kept, &mut told, 20, 0);
    assert_eq!(times("processes"), [10, 15, 20]);
    kept.bounds.size = 5_000;
    kept.write(&part(START + 25, 0), &mut told)
        .expect_err("events take more");
    kept.bounds.size = used;
    write(&mut kept, &mut told, 30, 0);
    assert!(times("machine").is_empty());
    write(&mut kept, &mut told, 35, 1);
    write(&mut kept, &mut told, 40, 0);
    assert_eq!(
        (times("machine"), times("processes")),
        (vec![35, 40], vec![35, 40])
    );
    assert_eq!(times("events"), [0, 5, 10, 15, 20, 30, 35, 40]);
    let told: Vec<_> = told.iter().map(|told| [told.since, told.until]).collect();
    let after = |at: i64| Some((START + at) * SECOND);
    let dropped = [(0, 10), (10, 25), (30, 35)];
    assert_eq!(told, dropped.map(|(from, to)| [after(from), after(to)]));
}

#[test]
fn the_open_hour_of_an_earlier_host_is_sealed_as_its_own() {
    let folder = TestFolder::new("history-renamed");
    let (mut kept, ..) = take(&folder, bounds(), START).expect("nobody else is there");
    let mut told = Vec::new();
    let written = kept.write(&quarter(START), &mut told);
    written.expect("it is written");
    let path = folder.join("history");
    let renamed = |now| {
        let opened = Folder::create(&path, "renamed").expect("a folder of ours");
        Kept::take(opened, "renamed".into(), bounds(), now)
    };
    assert!(matches!(renamed(START + 900), Err(Error::Locked(_))));
    drop(kept);
    let (mut kept, ..) = renamed(START + 900).expect("nobody else is there");
    let written = kept.write(&quarter(START + 900), &mut told);
    written.expect("it is written");
    let entries = read(&folder).list().expect("it is read");
    let found: Vec<_> = entries
        .iter()
        .map(|entry| (&*entry.host, entry.place))
        .collect();
    let sealed = ("host", Where::Sealed { tier: 1 });
    assert_eq!(found, [sealed, ("renamed", Where::Open)]);
}

#[test]
fn a_part_whose_write_failed_leaves_no_file() {
    let folder = TestFolder::new("history-half");
    let (mut kept, ..) = take(&folder, bounds(), START).expect("nobody else is there");
    // No file can have this name.
    let name = format!("events-{START}-{}.parquet", START + 5);
    let in_its_way = folder.join("history/open").join(name);
    std::fs::create_dir(&in_its_way).expect("a folder of ours");
    let mut told = Vec::new();
    kept.write(&part(START, 1), &mut told)
        .expect_err("a folder is there");
    assert_eq!(read(&folder).list().expect("it is read"), []);
    std::fs::remove_dir(&in_its_way).expect("it is empty");
    kept.write(&part(START, 1), &mut told)
        .expect("it is written");
    assert_eq!(read(&folder).list().expect("it is read").len(), 3);
}

#[test]
fn the_next_run_tells_that_the_end_of_the_one_before_was_not_written() {
    let folder = TestFolder::new("history-cut");
    let run = |seconds: std::ops::Range<i64>, obstacle: bool| {
        let mut taken = None;
        wait_until("the thread of the run before ends", || {
            taken = take(&folder, bounds(), START + seconds.start).ok();
            taken.is_some()
        });
        let (kept, taken, told) = taken.expect("nobody else is there");
        let second = std::time::Duration::from_secs(1);
        let session = Session::new(kept, "boot", second, taken, told.clone());
        let mut session = session.expect("a thread");
        for second in seconds.clone() {
            let moment = at((START + second) * SECOND);
            push(&mut session, moment, &[record(1, 5, 0)], &[]);
        }
        let begin = START + seconds.start;
        if obstacle {
            let is_part = |entry: &Entry| (entry.from, entry.to) == (begin, begin + 5);
            wait_until("a part", || {
                read(&folder)
                    .list()
                    .is_ok_and(|all| all.iter().any(is_part))
            });
            let name = format!("events-{begin}-{}.parquet", START + seconds.end);
            std::fs::create_dir(folder.join("history/open").join(name)).expect("a folder of ours");
        }
        assert_eq!(session.finish("test"), !obstacle);
        told
    };
    assert_eq!(run(0..7, true), []);
    let told = run(10..12, false);
    let cut = told.iter().map(|told| (told.event, told.since, told.until));
    let second = |at: i64| Some((START + at) * SECOND);
    assert_eq!(
        cut.collect::<Vec<_>>(),
        [("cut_off", second(5), second(10))]
    );
    assert_eq!(run(20..22, false), []);
}

#[test]
fn a_disk_without_room_is_told() {
    let folder = TestFolder::new("history-full");
    let bounds = Bounds {
        leave: 1.0,
        ..bounds()
    };
    let (mut kept, ..) = take(&folder, bounds, START).expect("nobody else is there");
    let written = kept.write(&quarter(START), &mut Vec::new());
    assert!(matches!(written, Err(Error::Full)), "{written:?}");
}

#[test]
fn a_damaged_part_costs_no_other_one() {
    let folder = TestFolder::new("history-damaged");
    let (mut kept, ..) = take(&folder, bounds(), START).expect("nobody else is there");
    let mut told = Vec::new();
    for at in 0..2 {
        kept.write(&quarter(START + at * 900), &mut told)
            .expect("it is written");
    }
    let entry = &read(&folder).list().expect("it is read")[0];
    let path = folder.join("history").join(&entry.path);
    let mut bytes = std::fs::read(&path).expect("the file exists");
    bytes[1_000] ^= 1;
    std::fs::write(&path, bytes).expect("a file of ours");
    kept.write(&quarter(START + HOUR), &mut told)
        .expect("it is written");
    let damaged = |told: &&Event| told.event == "damaged";
    assert_eq!(told.iter().filter(damaged).count(), 1, "{told:?}");
    let folder = read(&folder);
    let groups = rows(
        &folder,
        &sealed(&folder, &PROCESSES)[0],
        &PROCESSES,
        &["time"],
    );
    assert_eq!(groups.len(), 1);
}

#[test]
fn an_old_hour_is_thinned_and_then_removed() {
    let folder = TestFolder::new("history-thinned");
    let bounds = Bounds {
        every: HOUR,
        each_10: 3 * HOUR,
        each_60: 5 * HOUR,
        ..bounds()
    };
    let (mut kept, ..) = take(&folder, bounds, START).expect("nobody else is there");
    let of = |time: i64, rss: i64| {
        let values = [
            ("pid", 1),
            ("start_ns", 5),
            ("utime_ns", time),
            ("rss_anon", rss),
        ];
        (START + time, row(&values))
    };
    let gone = (START + 38, row(&[("pid", 1), ("start_ns", 5), ("gone", 1)]));
    let seen = [
        of(0, 9),
        of(3, 1),
        of(7, 2),
        of(8, 1),
        of(12, 3),
        of(35, 4),
        of(36, 2),
        gone,
    ];
    let mut told = Vec::new();
    let mut first = group(START, START + 900, seen);
    for second in [3, 4, 12] {
        let time = (START + second) * SECOND;
        for thread in [7, 8] {
            let waits = row_of(&WAITS, &[("pid", 1), ("tid", thread)]);
            first.push(&WAITS, (1, thread), time, None, &waits);
        }
    }
    let first = Job::Group(first);
    kept.write(&first, &mut told).expect("it is written");
    let folder = read(&folder);
    let mut tiers = Vec::new();
    for hour in 1..8 {
        for at in 0..4 {
            let job = quarter(START + hour * HOUR + at * 900);
            kept.write(&job, &mut told).expect("it is written");
        }
        let of_first = |entry: &Entry| entry.from == START;
        let entries = sealed(&folder, &PROCESSES);
        let entry = entries.into_iter().find(of_first);
        tiers.push(entry.as_ref().map(|entry| entry.place));
        if let Some(entry) = sealed(&folder, &WAITS).first() {
            assert_eq!(Some(entry.place), tiers[tiers.len() - 1]);
            let rows = &rows(&folder, entry, &WAITS, &["time", "tid"])[0];
            // The first walk is whole.
            let each_60 = entry.place == Where::Sealed { tier: 60 };
            assert_eq!(rows.count, if each_60 { 4 } else { 6 });
        }
        if let Some(entry) = entry.filter(|entry| entry.place == Where::Sealed { tier: 10 }) {
            let columns = ["time", "utime_ns", "rss_anon", "max_rss_anon", "gone"];
            let rows = &rows(&folder, &entry, &THINNED, &columns)[0];
            let after = |time: Option<i64>| time.map(|time| time / SECOND - START);
            let times: Vec<_> = rows.numbers("time").iter().copied().map(after).collect();
            assert_eq!(times, [0, 8, 12, 36, 38].map(Some));
            assert_eq!(
                rows.numbers("utime_ns"),
                [Some(0), Some(8), Some(12), Some(36), None]
            );
            let most = [Some(9), Some(9), Some(3), Some(4), None];
            assert_eq!(rows.numbers("max_rss_anon"), most);
        }
    }
    let tier = |tier| Some(Where::Sealed { tier });
    assert_eq!(tiers[..4], [tier(10), tier(10), tier(60), tier(60)]);
    assert_eq!(tiers[4..], [None; 3]);
}

#[test]
fn a_session_writes_what_is_read() {
    let folder = TestFolder::new("history-session");
    let (kept, ..) = take(&folder, bounds(), START).expect("nobody else is there");
    let mut written = session(kept);
    for second in 0..7 {
        push(
            &mut written,
            at((START + second) * SECOND),
            &[record(1, 5, 0)],
            &[],
        );
    }
    assert!(written.finish("test"));
    let folder = read(&folder);
    for entry in folder.list().expect("it is read") {
        assert_eq!((entry.from, entry.to), (START, START + 7), "{entry:?}");
    }
    let walks = folder
        .chosen("machine", START, START + HOUR)
        .expect("it is read");
    let rows = rows(&folder, &walks[0], &MACHINE, &["whole"]);
    let whole: Vec<_> = rows[0].numbers("whole").iter().flatten().copied().collect();
    assert_eq!(whole, [1, 0, 0, 0, 0, 0, 0]);
}
