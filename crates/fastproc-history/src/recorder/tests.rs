//! Sessions of made records.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use fastproc::{
    Fields, Process, Snapshot, SnapshotStats, SourceKind, Table as Records, exits::Exit,
    record::Record,
};
use fastproc_testbed::wait_until;
use proptest::prelude::*;

use super::{
    cells::{Held, Members, place},
    *,
};
use crate::{
    rows::{Cells, Columns},
    table::{self, EVENTS, EXITS, IDENTITIES, MACHINE, PROCESSES, Table},
};

const SECOND: i64 = 1_000_000;
/// At the beginning of a quarter of an hour.
const START: i64 = 1_800_000_000 * SECOND;

/// A table of rows, each with its time.
type Written = BTreeMap<&'static str, Vec<(i64, Row)>>;

fn decoded(store: &Store) -> Vec<(i64, Row)> {
    let table = store.table();
    let columns: Vec<_> = (0..table.columns.len())
        .map(|at| store.column(at))
        .collect();
    let Cells::Numbers(times) = &columns[0] else {
        panic!("time is a number")
    };
    let row = |at: usize| {
        let cell = |column: &Cells| match column {
            Cells::Numbers(values) => values[at].map_or(Cell::Null, Cell::Number),
            Cells::Texts(values) => values[at]
                .clone()
                .map_or(Cell::Null, |text| Cell::Text(text.into())),
        };
        columns[EVERYWHERE..].iter().map(cell).collect()
    };
    let times = times.iter().enumerate();
    times
        .map(|(at, time)| (time.expect("each row has one"), row(at)))
        .collect()
}

/// Row groups and parts by their times.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<Vec<Group>>>);

/// Whether it is a row group, its times, and its rows.
type Group = (bool, i64, i64, Written);

#[derive(Debug, thiserror::Error)]
#[error("no room")]
pub(super) struct Full;

impl Place for Memory {
    type Error = Full;

    fn write(&mut self, job: &Job, _: &mut Vec<Event>) -> Result<(), Full> {
        let (is_whole, group) = match job {
            Job::Part(group) => (false, group),
            Job::Group(group) => (true, group),
        };
        let tables = group
            .tables()
            .map(|store| (store.table().name, decoded(store)));
        let written = (is_whole, group.from, group.to, tables.collect());
        self.0.lock().expect("no panic").push(written);
        Ok(())
    }
}

impl Memory {
    fn groups(&self, whole: bool) -> Vec<(i64, i64, Written)> {
        let all = self.0.lock().expect("no panic");
        let groups = all.iter().filter(|(is_whole, ..)| *is_whole == whole);
        groups
            .map(|(_, from, to, tables)| (*from, *to, tables.clone()))
            .collect()
    }

    /// The values of a column in all row groups.
    pub(super) fn column(&self, table: &'static Table, name: &str) -> Vec<Cell> {
        let at = place(table, name);
        let groups = self.groups(true);
        let rows = groups
            .iter()
            .filter_map(|(.., tables)| tables.get(table.name))
            .flatten();
        rows.map(|(_, row)| row[at].clone()).collect()
    }

    pub(super) fn events(&self) -> Vec<String> {
        let events = self.column(&EVENTS, "event");
        events.iter().map(|event| format!("{event:?}")).collect()
    }

    pub(super) fn has_event(&self, event: &str) -> bool {
        self.events().iter().any(|found| found.contains(event))
    }
}

/// Texts by number.
struct Made(u64);

impl Texts for Made {
    fn begin(&mut self, snapshot: &Snapshot<'_>, _: bool) {
        self.0 = snapshot.stats().kernel_boottime_ns();
    }
    fn now_ns(&self) -> u64 {
        self.0
    }
    fn name(&mut self, of: Names, id: u32) -> Cell {
        format!("{of:?} {id}").as_str().into()
    }
    fn line(&mut self, process: Process<'_>) -> Cell {
        (&*process.name()).into()
    }
    fn may_trace(&mut self, _: Process<'_>) -> bool {
        true
    }
}

pub(super) fn record(pid: u32, start_ns: u64, time: u64) -> Record {
    let mut record = Record::default();
    record.identity.groups = (Fields::CPU | Fields::USERS).bits();
    (record.identity.tgid, record.identity.start_ns) = (pid, start_ns);
    record.identity.comm[0] = b'a';
    record.cpu.utime_ns = time;
    record
}

pub(super) fn at(wall: i64) -> Moment {
    let boot = wall - START + 1_000 * SECOND;
    Moment {
        wall,
        boot,
        awake: boot,
    }
}

pub(super) fn session(place: impl Place) -> Session {
    let second = Duration::from_secs(1);
    Session::new(place, "boot", second, Taken::default(), Vec::new()).expect("a thread")
}

pub(super) fn push(session: &mut Session, moment: Moment, records: &[Record], exits: &[Exit]) {
    look(moment, records, exits, |look| {
        session.push(look, &mut Made(0));
    });
}

fn look(moment: Moment, records: &[Record], exits: &[Exit], each: impl FnOnce(&Look<'_>)) {
    let table = Records {
        records,
        ..Records::default()
    };
    let began = moment.boot.cast_unsigned() * 1000;
    let stats = SnapshotStats::recorded(SourceKind::Procfs, began, Duration::ZERO);
    let snapshot = Snapshot::recorded(table, stats).with_exits(exits, 0);
    let look = Look {
        moment,
        snapshot: &snapshot,
        machine: &row_of(&MACHINE, &[("lost_exits", 0)]),
        cgroups: &[],
        waits: &[],
    };
    each(&look);
}

/// The processes at a time, out of one row group: the last row of each.
fn at_time(group: &Written, time: i64) -> BTreeMap<(Cell, i64), Row> {
    let (pid, start) = (place(&PROCESSES, "pid"), place(&PROCESSES, "start_ns"));
    let gone = place(&PROCESSES, "gone");
    let mut found = BTreeMap::new();
    for (at, row) in &group["processes"] {
        let Cell::Number(started) = row[start] else {
            panic!("each row has a start")
        };
        let key = (row[pid].clone(), started);
        if *at > time {
            continue;
        }
        if row[gone] == Cell::Null {
            found.insert(key, row.clone());
        } else {
            found.remove(&key);
        }
    }
    found
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cell {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        format!("{self:?}").cmp(&format!("{other:?}"))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn each_second_of_a_row_group_has_the_processes_of_its_snapshot(
        seconds in prop::collection::vec(
            (1..200_i64, prop::collection::btree_map(1..6_u32, (1..3_u64, 0..3_u64), 0..5)),
            1..40,
        ),
    ) {
        let memory = Memory::default();
        let mut session = session(memory.clone());
        let mut snapshots = BTreeMap::new();
        let mut now = START + 890 * SECOND;
        for (pause, processes) in seconds {
            let records: Vec<_> = processes
                .iter()
                .map(|(&pid, &(start, time))| record(pid, start * 77_777_777, time))
                .collect();
            push(&mut session, at(now), &records, &[]);
            snapshots.insert(now, records);
            now += pause * SECOND;
        }
        prop_assert!(session.finish("test"));
        let groups = memory.groups(true);
        let members = Members::of(&PROCESSES);
        for (time, records) in snapshots {
            let found = groups.iter().find(|(from, to, _)| *from <= time && time < *to);
            let (.., tables) = found.expect("each time is in a row group");
            let rows = records.iter().map(|record| {
                let groups = record.identity.groups;
                members.row(record, Held { groups, masked: false })
            });
            let rows: Vec<_> = rows.collect();
            let read = if tables.contains_key("processes") { at_time(tables, time) } else { BTreeMap::new() };
            prop_assert_eq!(read.into_values().collect::<Vec<_>>(), rows);
        }
    }
}

#[test]
fn parts_have_the_rows_of_their_group() {
    let memory = Memory::default();
    let mut session = session(memory.clone());
    for second in 0..16_i64 {
        let records = [record(1, 5, 0), record(2, 6, second.cast_unsigned() / 2)];
        push(&mut session, at(START + second * SECOND), &records, &[]);
    }
    // The row group would take the place of those that wait.
    wait_until("three parts", || memory.groups(false).len() == 3);
    assert!(session.finish("test"));
    let parts = memory.groups(false);
    let ends: Vec<_> = parts.iter().map(|part| (part.1 - START) / SECOND).collect();
    assert_eq!(ends, [5, 10, 15]);
    let groups = memory.groups(true);
    assert_eq!(groups.len(), 1);
    for table in table::all() {
        let rows = |written: &Written| written.get(table.name).cloned().unwrap_or_default();
        for (from, to, part) in &parts {
            let mut of_group = rows(&groups[0].2);
            of_group.retain(|(time, _)| (from..to).contains(&time));
            assert_eq!(rows(part), of_group, "{}", table.name);
        }
    }
}

#[test]
fn an_exit_is_in_the_row_group_of_its_end() {
    let memory = Memory::default();
    let mut session = session(memory.clone());
    let ended = |pid, wall: i64| {
        let mut exit = fastproc::record::ExitRecord::default();
        exit.pid = pid;
        exit.set_end_ns(Some(at(wall).boot.cast_unsigned() * 1000));
        exit.to_exit()
    };
    let border = START + 900 * SECOND;
    push(
        &mut session,
        at(border - 2 * SECOND),
        &[record(1, 5, 0)],
        &[],
    );
    let exits = [ended(7, border - 1), ended(8, border + 1), ended(9, START)];
    push(&mut session, at(border + 1_000), &[record(1, 5, 0)], &exits);
    assert!(session.finish("test"));
    let groups = memory.groups(true);
    let rows = |at: usize| &groups[at].2[EXITS.name];
    let pids = |at: usize| {
        let pids = rows(at)
            .iter()
            .map(|(time, row)| (*time, row[place(&EXITS, "pid")].clone()));
        pids.collect::<Vec<_>>()
    };
    let clamped = border - 5 * SECOND;
    let late = clamped.max(border - 2 * SECOND);
    assert_eq!(pids(0), [(late, 9.into()), (border - 1, 7.into())]);
    assert_eq!(pids(1), [(border + 1, 8.into())]);
    assert_eq!(rows(1)[0].1[place(&EXITS, "ppid")], Cell::Null);
}

#[test]
fn the_final_look_is_of_its_second_and_has_the_newest_exits() {
    let memory = Memory::default();
    let rare = Duration::from_secs(20);
    let session = Session::new(memory.clone(), "boot", rare, Taken::default(), Vec::new());
    let mut session = session.expect("a thread");
    push(&mut session, at(START), &[], &[]);
    for after in [5, 9] {
        let moment = at(START + 17 * SECOND + after);
        look(moment, &[], &[Exit::default()], |look| {
            session.push_last(look, &mut Made(0));
        });
    }
    assert!(session.finish("test"));
    let groups = memory.groups(true);
    let (_, end, tables) = &groups[0];
    assert_eq!(*end, START + 18 * SECOND);
    let times = |table: &str| -> Vec<_> {
        let rows = tables[table].iter();
        rows.map(|(time, _)| (time - START) / SECOND).collect()
    };
    assert_eq!(times("machine"), [0, 17]);
    assert_eq!(times("exits"), [17, 17]);
    // The start and the stop: no walk was late.
    assert_eq!(times("events"), [0, 17]);
}

#[test]
fn identities_are_told_when_they_change() {
    let memory = Memory::default();
    let mut session = session(memory.clone());
    let mut records = [record(1, 5, 0)];
    for second in 0..6 {
        records[0].cpu.utime_ns += 1;
        if second == 2 {
            records[0].identity.comm[0] = b'b';
        }
        if second == 4 {
            records[0].users.euid = 3;
        }
        push(&mut session, at(START + second * SECOND), &records, &[]);
    }
    assert!(session.finish("test"));
    let text = |text: &str| Cell::Text(text.into());
    let lines = memory.column(&IDENTITIES, "command_line");
    assert_eq!(lines, [text("a"), text("b"), text("b")]);
    let users = memory.column(&IDENTITIES, "user");
    assert_eq!(users, [text("Users 0"), text("Users 0"), text("Users 3")]);
}

#[test]
fn a_start_time_that_text_has_rounded_is_that_of_the_same_process() {
    let memory = Memory::default();
    let mut session = session(memory.clone());
    for (second, start) in [(0, 50_000_001), (1, 50_000_000), (2, 50_000_001)] {
        let time = second as u64;
        push(
            &mut session,
            at(START + second * SECOND),
            &[record(1, start, time)],
            &[],
        );
    }
    assert!(session.finish("test"));
    let starts = memory.column(&PROCESSES, "start_ns");
    assert_eq!(starts, vec![Cell::Number(50_000_001); 3]);
}

#[test]
fn a_clock_that_is_set_back_gives_no_second_row_group_for_a_time() {
    let memory = Memory::default();
    let mut session = session(memory.clone());
    let mut moments: Vec<_> = (0..10).map(|second| at(START + second * SECOND)).collect();
    for second in 10..18 {
        let mut moment = at(START + second * SECOND);
        moment.wall -= 4 * SECOND;
        moments.push(moment);
    }
    for moment in moments {
        push(&mut session, moment, &[record(1, 5, 0)], &[]);
    }
    assert!(session.finish("test"));
    let spans: Vec<_> = memory
        .groups(true)
        .iter()
        .map(|group| ((group.0 - START) / SECOND, (group.1 - START) / SECOND))
        .collect();
    assert_eq!(spans, [(0, 10), (10, 14)]);
    for event in ["clock", "blind"] {
        assert!(memory.has_event(event), "{event}");
    }
}

#[test]
fn a_clock_that_is_set_over_an_hour_and_back_adds_nothing_to_the_sealed_hour() {
    let memory = Memory::default();
    let mut session = session(memory.clone());
    for second in 0..30 {
        let mut moment = at(START + second * SECOND);
        moment.wall += match second {
            ..10 => 0,
            10..20 => 2 * 3_600 * SECOND,
            _ => 900 * SECOND,
        };
        push(&mut session, moment, &[record(1, 5, 0)], &[]);
    }
    assert!(session.finish("test"));
    let spans: Vec<_> = memory
        .groups(true)
        .iter()
        .map(|group| ((group.0 - START) / SECOND, (group.1 - START) / SECOND))
        .collect();
    assert_eq!(spans, [(0, 900), (7_210, 7_220)]);
}

#[test]
fn exits_of_one_user_take_no_more_than_a_share_and_are_counted_beyond_it() {
    let memory = Memory::default();
    let mut session = session(memory.clone());
    let ended = |pid: u32, uid| {
        let mut exit = Exit::default();
        (exit.pid, exit.uid) = (pid, uid);
        exit
    };
    push(&mut session, at(START), &[], &[]);
    let flood: Vec<_> = (0..150).map(|pid| ended(pid, 1000)).collect();
    push(&mut session, at(START + SECOND), &[], &flood);
    let few = [ended(2_000, 1001), ended(2_001, 0), ended(2_002, 1000)];
    push(&mut session, at(START + 2 * SECOND), &[], &few);
    push(&mut session, at(START + 900 * SECOND), &[], &few[2..]);
    assert!(session.finish("test"));
    let uids = memory.column(&EXITS, "uid");
    let of = |uid: i64| {
        uids.iter()
            .filter(move |found| **found == Cell::Number(uid))
    };
    assert_eq!([1000, 1001, 0].map(|uid| of(uid).count()), [101, 1, 1]);
    let numbers = |name| memory.column(&MACHINE, name);
    assert_eq!(numbers("lost_exits"), [0, 50, 1, 0].map(Cell::Number));
    let details = memory.column(&EVENTS, "detail");
    let told = "51 exits of user 1000, who had more than 100 in a quarter of an hour";
    assert!(details.contains(&told.into()), "{details:?}");
}

#[test]
fn a_clock_that_is_set_forward_ends_the_row_group() {
    let memory = Memory::default();
    let mut session = session(memory.clone());
    push(&mut session, at(START), &[], &[]);
    let mut moment = at(START + SECOND);
    moment.wall += 60 * SECOND;
    push(&mut session, moment, &[], &[]);
    assert!(session.finish("test"));
    let groups = memory.groups(true);
    assert_eq!(groups[0].1, START + SECOND);
    assert_eq!(groups[1].0, START + 61 * SECOND);
    assert!(memory.has_event("clock"));
}

#[test]
fn sleep_and_late_walks_are_told() {
    let memory = Memory::default();
    let mut session = session(memory.clone());
    push(&mut session, at(START), &[], &[]);
    let mut slept = at(START + 60 * SECOND);
    slept.awake -= 59 * SECOND;
    push(&mut session, slept, &[], &[]);
    let mut late = at(START + 70 * SECOND);
    late.awake -= 59 * SECOND;
    push(&mut session, late, &[], &[]);
    assert!(session.finish("test"));
    let events = memory.events();
    let order = ["started", "slept", "blind", "stopped"];
    assert_eq!(
        events,
        order.map(|event| format!("{:?}", Cell::Text(event.into())))
    );
}

#[test]
fn times_of_an_earlier_run_are_not_recorded_again() {
    let memory = Memory::default();
    let mut taken = Taken::default();
    taken.add(START - 60 * SECOND, START + 3 * SECOND);
    let second = Duration::from_secs(1);
    let session = Session::new(memory.clone(), "boot", second, taken, Vec::new());
    let mut session = session.expect("a thread");
    for second in 0..6 {
        push(&mut session, at(START + second * SECOND), &[], &[]);
    }
    assert!(session.finish("test"));
    assert_eq!(memory.groups(true)[0].0, START + 3 * SECOND);
}
