//! Files in memory, written, read, copied.

use std::{io::Write, sync::LazyLock};

use super::*;
use crate::{
    rows::{Cells, Rows},
    table::{EVENTS, Kind, PROCESSES, Table},
};

/// How many cases a test of random ones takes: `FASTPROC_DAMAGE_CASES`, or so many.
pub fn cases(usual: u32) -> u32 {
    let cases = std::env::var("FASTPROC_DAMAGE_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// A file with these bytes.
pub fn file(bytes: &[u8]) -> std::fs::File {
    let file = rustix::fs::memfd_create(c"history", rustix::fs::MemfdFlags::CLOEXEC);
    let mut file = std::fs::File::from(file.expect("memory"));
    file.write_all(bytes).expect("memory");
    file
}

/// Rows of a table whose values differ from row to row and column to column, with nulls.
pub fn rows(table: &'static Table, count: usize, from: i64) -> Rows {
    let mut rows = Rows::new(table);
    rows.count = count;
    for (at, column) in table.columns.iter().enumerate() {
        let number = |row: usize| {
            let value = from + (row * (at + 3)) as i64;
            (column.name == "time" || !(row + at).is_multiple_of(7)).then_some(value)
        };
        rows.columns[at] = match column.kind {
            Kind::Number | Kind::Time => Cells::Numbers((0..count).map(number).collect()),
            Kind::Text => {
                let text = |row| number(row).map(|value| format!("text {}", value % 50).into());
                Cells::Texts((0..count).map(text).collect())
            }
        };
    }
    rows
}

/// The names of all columns.
pub fn all(table: &Table) -> Vec<&'static str> {
    table.columns.iter().map(|column| column.name).collect()
}

/// A file of these row groups.
pub fn written(groups: &[Rows]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), groups[0].table).expect("a file");
    for rows in groups {
        writer.group(rows).expect("a row group");
    }
    writer.finish().expect("a footer")
}

#[test]
fn values_and_nulls_come_back() {
    let groups = [rows(&PROCESSES, 1000, 5), rows(&PROCESSES, 3, -7)];
    let file = File::open(file(&written(&groups)), &PROCESSES).expect("a file");
    assert_eq!(file.groups(), 2);
    for (group, rows) in groups.iter().enumerate() {
        let read = file.read(group, &all(&PROCESSES)).expect("rows");
        assert_eq!(read.columns, rows.columns);
        assert_eq!(file.rows(group), rows.count as u64);
    }
    let (from, to) = (-7, -7 + 2 * 3);
    assert_eq!(file.span(1), Some(Span { from, to }));
    let read = file.read(0, &["pid"]).expect("rows");
    assert_eq!(read.numbers("pid"), groups[0].numbers("pid"));
    assert!(read.numbers("time").is_empty());
}

#[test]
fn rows_that_are_chosen_are_those_of_all_pages() {
    // A page has 20,000.
    let all_rows = rows(&EVENTS, 45_000, 5);
    let file = File::open(file(&written(std::slice::from_ref(&all_rows))), &EVENTS);
    let file = file.expect("a file");
    let chosen: Vec<_> = (0..46_000).filter(|row| row % 9 < 2).collect();
    let read = file.read_rows(0, &all(&EVENTS), &chosen).expect("rows");
    for (some, all) in read.columns.iter().zip(&all_rows.columns) {
        match (some, all) {
            (Cells::Numbers(some), Cells::Numbers(all)) => {
                let expected = chosen.iter().map(|&row| all.get(row).copied().flatten());
                assert!(some.iter().copied().eq(expected));
            }
            (Cells::Texts(some), Cells::Texts(all)) => {
                let expected = chosen.iter().map(|&row| all.get(row).cloned().flatten());
                assert!(some.iter().cloned().eq(expected));
            }
            _ => panic!("a column has the type of its table"),
        }
    }
}

#[test]
fn row_groups_of_several_files_are_copied() {
    let quarters: Vec<_> = (0..4).map(|at| rows(&EVENTS, 100, at * 900)).collect();
    let mut writer = Writer::new(Vec::new(), &EVENTS).expect("a file");
    for rows in &quarters {
        let quarter = written(std::slice::from_ref(rows));
        let quarter = File::open(file(&quarter), &EVENTS).expect("a file");
        writer.copy_group(&quarter, 0).expect("a row group");
    }
    let hour = writer.finish().expect("a footer");
    let hour = File::open(file(&hour), &EVENTS).expect("a file");
    for (group, rows) in quarters.iter().enumerate() {
        let read = hour.read(group, &all(&EVENTS)).expect("rows");
        assert_eq!(read.columns, rows.columns);
    }
}

#[test]
fn a_part_is_smaller_and_can_be_copied() {
    let group = rows(&PROCESSES, 50, 5);
    let mut writer = Writer::part(Vec::new(), &PROCESSES).expect("a file");
    writer.group(&group).expect("a row group");
    let part = writer.finish().expect("a footer");
    let whole = written(std::slice::from_ref(&group));
    assert!(
        part.len() < whole.len() * 2 / 3,
        "{} {}",
        part.len(),
        whole.len()
    );
    let part = File::open(file(&part), &PROCESSES).expect("a file");
    assert_eq!(
        part.span(0),
        Some(Span {
            from: 5,
            to: 5 + 49 * 3
        })
    );
    let mut writer = Writer::new(Vec::new(), &PROCESSES).expect("a file");
    writer.copy_group(&part, 0).expect("a row group");
    let copy = writer.finish().expect("a footer");
    let copy = File::open(file(&copy), &PROCESSES).expect("a file");
    let read = copy.read(0, &all(&PROCESSES)).expect("rows");
    assert_eq!(read.columns, group.columns);
}

#[test]
fn columns_that_a_version_lacks_or_adds_are_null_or_left_out() {
    static OLDER: LazyLock<Table> = LazyLock::new(|| {
        let mut columns = EVENTS.columns.clone();
        columns.retain(|column| column.name != "detail");
        Table {
            name: "events",
            meaning: "",
            columns,
            order: &[],
        }
    });
    let group = rows(&OLDER, 50, 5);
    let older = written(std::slice::from_ref(&group));
    let older = File::open(file(&older), &EVENTS).expect("a file");
    assert_eq!(
        older.read(0, &["detail"]).expect("rows").texts("detail"),
        vec![None; 50]
    );
    let mut writer = Writer::new(Vec::new(), &EVENTS).expect("a file");
    writer.copy_group(&older, 0).expect("a row group");
    let newer = writer.finish().expect("a footer");
    let opened = File::open(file(&newer), &EVENTS).expect("a file");
    let read = opened.read(0, &["detail", "event"]).expect("rows");
    assert_eq!(read.texts("detail"), vec![None; 50]);
    assert_eq!(read.texts("event"), group.texts("event"));
    let opened = File::open(file(&newer), &OLDER).expect("a file");
    assert_eq!(
        opened.read(0, &all(&OLDER)).expect("rows").columns,
        group.columns
    );
}

#[test]
fn a_file_of_another_table_or_of_others_is_refused() {
    let events = written(&[rows(&EVENTS, 2, 5)]);
    let error = File::open(file(&events), &PROCESSES)
        .err()
        .expect("an error");
    assert_eq!(
        error.to_string(),
        "it holds the table \"events\", not processes"
    );
    let error = File::open(
        file(b"PAR1, but no file of ours, and so no block of it: PAR1"),
        &EVENTS,
    );
    assert!(matches!(error.err(), Some(Error::NoHistory)));
}

#[test]
fn more_rows_than_fit_a_row_group_become_several() {
    let many = rows(&EVENTS, MOST_ROWS + 10, 5);
    let bytes = written(std::slice::from_ref(&many));
    let file = File::open(file(&bytes), &EVENTS).expect("a file");
    assert_eq!(
        (file.groups(), file.rows(0), file.rows(1)),
        (2, MOST_ROWS as u64, 10)
    );
    let read = file.read(1, &["time"]).expect("rows");
    assert_eq!(read.numbers("time"), &many.numbers("time")[MOST_ROWS..]);
}
