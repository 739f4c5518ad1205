//! What is read of a folder, also after crashes, and what is not followed.

use std::{fs, io::Write, os::unix::fs::symlink, path::Path};

use fastproc_testbed::Folder as TestFolder;

use super::*;

/// 2026-03-01T10:00:00Z
const TEN: i64 = 1_772_359_200;

fn new(name: &str) -> (TestFolder, Folder) {
    let path = TestFolder::new(name);
    let folder = Folder::create(&path, "one").expect("a folder");
    (path, folder)
}

fn write(own: &TestFolder, name: &str) {
    let path = own.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, "x").expect("a file");
}

fn put(pending: Result<Pending, Error>) {
    let mut pending = pending.expect("a file");
    pending.write_all(b"12345").expect("room");
    pending.finish().expect("a name");
}

/// The spans that are read of a table in the hour, from its begin.
fn read(folder: &Folder) -> Vec<(i64, i64)> {
    let chosen = folder.chosen("exits", TEN, TEN + HOUR);
    let chosen = chosen.expect("names").into_iter();
    chosen
        .map(|entry| (entry.from - TEN, entry.to - TEN))
        .collect()
}

#[test]
fn no_row_is_read_twice_after_a_crash_at_any_step() {
    let (_own, folder) = new("steps");
    let open = |from, to| put(folder.begin_open("exits", TEN + from, TEN + to));
    open(0, 5);
    open(5, 10);
    open(900, 905);
    assert_eq!(read(&folder), [(0, 5), (5, 10), (900, 905)]);
    // The quarter has its name, and its parts are not yet removed.
    open(0, 900);
    assert_eq!(read(&folder), [(0, 900), (900, 905)]);
    // Of another table.
    put(folder.begin_open("processes", TEN + 905, TEN + 910));
    let superseded = folder.superseded().expect("names");
    assert_eq!(superseded.len(), 2);
    for entry in &superseded {
        folder.remove(entry).expect("it can be removed");
    }
    assert!(folder.superseded().expect("names").is_empty());
    // The hour is sealed, and its quarters are not yet removed.
    put(folder.begin_sealed("exits", "one", TEN + 77, 1));
    assert_eq!(read(&folder), [(0, HOUR)]);
    // It is thinned, and the finer file is not yet removed.
    put(folder.begin_sealed("exits", "one", TEN, 10));
    let entries = folder.chosen("exits", TEN, TEN + 1).expect("names");
    assert_eq!(entries[0].place, Place::Sealed { tier: 1 });
    folder.remove(&entries[0]).expect("it can be removed");
    let entries = folder.chosen("exits", TEN, TEN + 1).expect("names");
    assert_eq!(entries[0].place, Place::Sealed { tier: 10 });
    let path = "host=one/date=2026-03-01/hour=10/exits-10s.parquet";
    assert_eq!(
        (entries[0].bytes, entries[0].path.as_path()),
        (5, Path::new(path))
    );
}

#[test]
fn a_sealed_hour_of_another_host_hides_nothing() {
    let (_own, folder) = new("hosts");
    put(folder.begin_open("exits", TEN, TEN + 5));
    put(folder.begin_sealed("exits", "two", TEN, 1));
    assert_eq!(read(&folder), [(0, 5), (0, HOUR)]);
    put(folder.begin_sealed("exits", "one", TEN, 1));
    assert_eq!(read(&folder), [(0, HOUR), (0, HOUR)]);
}

#[test]
fn a_sealed_file_is_not_replaced_and_an_unfinished_one_is_not_read() {
    let (own, folder) = new("once");
    put(folder.begin_sealed("exits", "one", TEN, 1));
    let mut second = folder.begin_sealed("exits", "one", TEN, 1).expect("a file");
    second.write_all(b"other").expect("room");
    second.finish().expect_err("there is one");
    let path = "host=one/date=2026-03-01/hour=10/exits.parquet";
    assert_eq!(fs::read(own.join(path)).expect("the first"), b"12345");
    drop(folder.begin_open("exits", TEN, TEN + 5));
    std::mem::forget(folder.begin_open("exits", TEN, TEN + 10));
    assert_eq!(folder.list().expect("names").len(), 1);
    folder.remove_pending().expect("it can be removed");
    // The host's name.
    assert_eq!(fs::read_dir(own.join("open")).expect("a folder").count(), 1);
}

#[test]
fn an_hour_without_files_is_removed_with_its_day() {
    let (own, folder) = new("empty");
    put(folder.begin_sealed("exits", "one", TEN, 1));
    let entries = folder.list().expect("names");
    folder.remove(&entries[0]).expect("it can be removed");
    folder.remove(&entries[0]).expect("it is gone");
    assert!(!own.join("host=one/date=2026-03-01").exists());
}

#[test]
fn names_that_no_version_writes_are_left_out() {
    let (own, folder) = new("names");
    let hour = "host=one/date=2026-03-01/hour=10";
    for name in [
        "open/exits-1772359200-1772359205.parquet.tmp",
        "open/exits-01772359200-1772359205.parquet",
        "open/exits-+1772359200-1772359205.parquet",
        "open/exits-1772359205-1772359205.parquet",
        // Over the hour.
        "open/exits-1772362795-1772362805.parquet",
        "open/exits-1-99999999999999999999.parquet",
        "open/Exits-1772359200-1772359205.parquet",
        "open/-1772359200-1772359205.parquet",
        &format!("{hour}/exits-1s.parquet"),
        &format!("{hour}/exits-010s.parquet"),
        &format!("{hour}/exits-10s-10s.parquet"),
        &format!("{hour}/../hour=10/sub/exits.parquet"),
        "host=one/date=2026-03-01/hour=24/exits.parquet",
        "host=one/date=2026-03-01/hour=1/exits.parquet",
        "host=one/date=2026-02-30/hour=01/exits.parquet",
        "host=one/date=20260301/hour=01/exits.parquet",
        "host=o ne/date=2026-03-01/hour=10/exits.parquet",
        "host=/date=2026-03-01/hour=10/exits.parquet",
    ] {
        write(&own, name);
    }
    assert_eq!(folder.list().expect("names"), []);
    write(&own, &format!("{hour}/exits.parquet"));
    assert_eq!(folder.list().expect("names").len(), 1);
    folder
        .begin_open("../exits", TEN, TEN + 5)
        .expect_err("a path");
    folder
        .begin_sealed("exits", "../one", TEN, 1)
        .expect_err("a path");
}

#[test]
fn links_are_not_followed_and_pipes_not_opened() {
    let (own, folder) = new("links");
    let (other, _) = new("links-other");
    write(&other, "hour=10/exits.parquet");
    write(&other, "exits-1772359200-1772359205.parquet");
    let day = own.join("host=one/date=2026-03-01");
    fs::create_dir_all(&day).expect("a folder");
    symlink(other.join("hour=10"), day.join("hour=10")).expect("a link");
    let name = "open/exits-1772359200-1772359205.parquet";
    symlink(
        other.join("exits-1772359200-1772359205.parquet"),
        own.join(name),
    )
    .expect("a link");
    assert_eq!(folder.list().expect("names"), []);
    let entry = Entry::open("one", &name[5..]).expect("a name");
    let refused = |error| matches!(error, Error::NotRegular(_));
    assert!(refused(folder.read(&entry).expect_err("a link")));
    fs::remove_file(own.join(name)).expect("the link");
    rustix::fs::mkfifoat(rustix::fs::CWD, own.join(name), Mode::RUSR).expect("a pipe");
    assert_eq!(folder.list().expect("names"), []);
    assert!(refused(folder.read(&entry).expect_err("a pipe")));
    fs::remove_dir_all(own.join("open")).expect("the folder");
    symlink(&*other, own.join("open")).expect("a link");
    folder.list().expect_err("a link");
    folder
        .begin_open("exits", TEN, TEN + 5)
        .expect_err("a link");
}

#[test]
fn an_error_names_the_folder_that_was_asked_for() {
    let (own, _) = new("named");
    fs::remove_dir_all(own.join("open")).expect("the folder");
    write(&own, "open");
    let error = Folder::create(&own, "one").expect_err("open is a file");
    let path = own.join("open").display().to_string();
    assert!(error.to_string().starts_with(&path), "{error}");
}

#[test]
fn the_name_of_a_host_is_a_name_of_a_folder() {
    assert_eq!(host_name(b"web-1.example"), "web-1.example");
    assert_eq!(host_name(b"a/b\xff"), "a%2Fb%FF");
    assert_eq!(host_name(b""), "unknown");
}
