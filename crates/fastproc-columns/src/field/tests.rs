use std::collections::HashSet;

use fastproc::{
    Baseline, Collector, Fields, Process, SourceKind,
    record::{Record, ThreadRecord},
    schema::{self, Shown},
    words_mut,
};

use super::*;
use crate::row::{Lookup, Row};

#[test]
fn values_have_the_kind_of_their_field() {
    let mut collector = Collector::builder()
        .fields(Fields::all())
        .source(Some(SourceKind::Procfs))
        .open()
        .expect("/proc is there");
    let mut lookup = Lookup::new(collector.host(), true).expect("/proc is there");
    let mut before = Baseline::default();
    before.set(&collector.snapshot().expect("a snapshot"));
    let snapshot = collector.snapshot().expect("a snapshot");
    lookup.set_clock(&snapshot);
    let rows = before.changes(&snapshot).map(|change| Row {
        change: Some(change),
        ..Row::new(change.process)
    });
    let threads = before.thread_changes(&snapshot).map(|change| Row {
        change: Some(change),
        thread: change.thread,
        ..Row::new(change.process)
    });
    for row in rows.chain(threads) {
        for field in FIELDS {
            let value = field.value(&row, &mut lookup);
            let kind = value.kind();
            assert!(
                kind.is_none_or(|kind| kind == field.kind()),
                "{} is {value:?}, and should be {:?}",
                field.name,
                field.kind()
            );
        }
    }
}

#[test]
fn fields_with_an_accessor_need_only_their_record() {
    let mut collector = Collector::builder()
        .fields(Fields::all())
        .source(Some(SourceKind::Procfs))
        .open()
        .expect("/proc is there");
    let host = collector.host().clone();
    let mut lookup = Lookup::new(&host, true).expect("/proc is there");
    // It knows neither the time nor users, and reads no file.
    let mut ignorant = Lookup::recorded(host, lookup.total_memory);
    let mut before = Baseline::default();
    before.set(&collector.snapshot().expect("a snapshot"));
    let snapshot = collector.snapshot().expect("a snapshot");
    lookup.set_clock(&snapshot);
    for change in before.changes(&snapshot) {
        let row = Row::new(change.process);
        let changed = Row {
            change: Some(change),
            ..row
        };
        for (row, changes) in [(row, false), (changed, true)] {
            for field in FIELDS.iter().filter(|of| of.follows_record(changes)) {
                let known = format!("{:?}", field.value(&row, &mut lookup));
                let other = format!("{:?}", field.value(&row, &mut ignorant));
                assert_eq!(known, other, "{}, {changes}", field.name);
            }
        }
    }
}

/// Sets the bytes of a field that needs ptrace access to the process.
fn set(words: &mut [u64], field: &schema::Field) {
    for offset in field.offset..field.offset + field.type_of.size() {
        let mut word = words[offset / 8].to_ne_bytes();
        word[offset % 8] = 1;
        words[offset / 8] = u64::from_ne_bytes(word);
    }
}

#[test]
fn values_for_tracers_are_guarded() {
    let host = fastproc::Host::read().expect("/proc is there");
    let mut lookup = Lookup::recorded(host, 1 << 30);
    let mut plain = Record::default();
    plain.identity.groups = Fields::all().bits();
    let plain_thread = ThreadRecord::default();
    let mut seen = HashSet::new();
    let mut compare = |record: &Record, thread: &ThreadRecord, path: &str| {
        for field in FIELDS {
            let mut value = |record, thread, of_thread: bool| {
                let row = Row {
                    thread: of_thread.then_some(thread),
                    ..Row::new(Process::new(record, &[]))
                };
                format!("{:?}", field.value(&row, &mut lookup))
            };
            for of_thread in [false, true] {
                let is_other =
                    value(record, thread, of_thread) != value(&plain, &plain_thread, of_thread);
                if is_other {
                    assert!(field.is_guarded(), "{} shows {path}", field.name);
                    seen.insert(field.name);
                }
            }
        }
    };
    let of_tracers = |field: &schema::Field| field.shown == Shown::Tracers;
    for field in schema::RECORD
        .fields()
        .iter()
        .filter(|field| of_tracers(field))
    {
        let mut record = plain;
        set(words_mut(&mut record), field);
        compare(&record, &plain_thread, &field.path);
    }
    for field in schema::THREAD
        .fields()
        .iter()
        .filter(|field| of_tracers(field))
    {
        let mut thread = plain_thread;
        set(words_mut(&mut thread), field);
        compare(&plain, &thread, &field.path);
    }
    for field in ["exit_code", "startcode", "env_end", "rchar", "write_bytes"] {
        assert!(seen.contains(field), "{field} is taken from such a value");
    }
}

#[test]
fn the_help_of_a_field_says_that_only_root_knows_it() {
    for field in FIELDS {
        let says_so = field.help.ends_with("root only");
        assert_eq!(field.is_root_only(), says_so, "{}", field.name);
    }
}

#[test]
fn no_two_fields_share_a_name() {
    let mut names = HashSet::new();
    for field in FIELDS {
        let own = [field.name, &field.key(), &field.column_heading()].map(str::to_lowercase);
        let own: HashSet<&str> = own
            .iter()
            .map(String::as_str)
            .filter(|own| !field.aliases.contains(own))
            .collect();
        for name in own.into_iter().chain(field.aliases.iter().copied()) {
            assert!(
                names.insert(name.to_lowercase()),
                "{name} stands for two fields"
            );
        }
    }
}

#[test]
fn fields_are_found_by_every_name() {
    for (field, names) in [
        ("rss", "rss RSS VmRSS rss_bytes rssize rsz memory ram"),
        ("vsize", "vsz"),
        ("pgrp", "pgid"),
        ("session", "sid sess"),
        ("tty", "tt tname"),
        ("comm", "ucmd ucomm"),
        ("num_threads", "nlwp thcount THR"),
        ("minflt", "min_flt"),
        ("majflt", "maj_flt pagein"),
        ("time", "times cputimes"),
        ("euid", "uid"),
        ("suid", "svuid"),
        ("fsuid", "fuid"),
        ("egid", "gid"),
        ("sgid", "svgid"),
        ("fsgid", "fgid"),
        ("user", "euser uname"),
        ("group", "egroup"),
        ("nice", "ni"),
        ("rt_priority", "rtprio"),
        ("cls", "class"),
        ("shdpnd", "pending"),
        ("sigblk", "blocked sigmask"),
        ("sigign", "ignored sigignore"),
        ("sigcgt", "caught sigcatch"),
    ] {
        for name in names.split(' ') {
            assert_eq!(find(name).map(|field| field.name), Ok(field), "{name}");
        }
    }
}

#[test]
fn a_misspelt_field_suggests_the_nearest() {
    let message = |name| find(name).expect_err("misspelt").to_string();
    assert_eq!(
        message("rsss"),
        "there is no field 'rsss'; did you mean 'rss'?"
    );
    assert_eq!(
        message("comand"),
        "there is no field 'comand'; did you mean 'command'?"
    );
    assert_eq!(message("\u{1b}[2J"), "there is no field '\\u{1b}[2J'");
}
