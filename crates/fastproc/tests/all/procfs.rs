//! Compares the source that reads `/proc` with `/proc`. Needs no privileges.

use std::{path::Path, process::Command};

use fastproc::{
    Collector, Fields, Host, Process, SourceKind, Table, record::Record, source::procfs::Procfs,
};
use fastproc_testbed::{Options, Running, Testbed};

fn host() -> Host {
    Host::read().expect("the host can be asked")
}

fn open(fields: Fields) -> Procfs {
    Procfs::open(Path::new("/proc"), fields, &host()).expect("/proc is mounted")
}

fn find<'a>(table: &Table<'a>, pid: u32) -> Option<Process<'a>> {
    let record = table
        .records
        .iter()
        .find(|record| record.identity.tgid == pid)?;
    Some(Process::new(record, table.pool))
}

#[test]
fn every_process_is_read_in_order() {
    let idle = Running::sleep("1000");
    let testbed = Testbed::open(&Options::only(["threads-8"])).expect("threads can be started");
    let eight = &testbed.processes()[0];
    let mut procfs = open(Fields::all());
    let mut listed = Vec::new();
    procfs.pids(&mut listed).expect("/proc can be listed");
    for _ in 0..3 {
        let table = procfs.collect().expect("/proc can be read");
        assert!(
            table
                .records
                .is_sorted_by(|a, b| a.identity.tgid < b.identity.tgid)
        );
        assert_eq!(table.pool[0], 0);
        for (pid, threads) in [(idle.id(), 1), (eight.pid, 8), (std::process::id(), 0)] {
            let process = find(&table, pid).expect("the process is shown");
            assert!(
                process
                    .fields()
                    .contains(Fields::THREE_FILES | Fields::IO | Fields::THREADS)
            );
            assert_eq!(
                table
                    .threads
                    .iter()
                    .filter(|thread| thread.tid == pid && thread.tgid == pid)
                    .count(),
                1
            );
            let own = table
                .threads
                .iter()
                .filter(|thread| thread.tgid == pid)
                .count();
            assert!(own > 0);
            // Other tests of this process start and end threads.
            if pid != std::process::id() {
                assert_eq!(
                    (own, process.identity().num_threads),
                    (threads, threads as u32)
                );
            }
        }
        assert!(listed.contains(&idle.id()));
    }
}

#[test]
fn one_process_is_read_alone() {
    let mut procfs = open(Fields::THREE_FILES | Fields::THREADS);
    let (mut record, mut threads, mut pool) = (Record::default(), Vec::new(), vec![0]);
    let idle = Running::sleep("1000");
    let pid = idle.id();
    assert!(
        procfs
            .read_one(pid, &mut record, &mut threads, &mut pool)
            .expect("/proc can be read")
    );
    assert_eq!(
        (record.identity.tgid, record.identity.ppid),
        (pid, std::process::id())
    );
    assert_eq!(*Process::new(&record, &pool).name(), *b"sleep");
    assert_eq!(threads.len(), 1);
    assert_eq!(threads[0].start_ns, record.identity.start_ns);
    drop(idle);
    assert!(
        !procfs
            .read_one(pid, &mut record, &mut threads, &mut pool)
            .expect("/proc can be read")
    );
    assert!(find(&procfs.collect().expect("/proc can be read"), pid).is_none());
}

/// The kernel then prints the rest of it: 0 for its ids, and no file of its I/O.
#[test]
fn a_process_that_ends_while_it_is_read_is_not_shown() {
    let mut procfs = open(Fields::THREE_FILES | Fields::IO | Fields::THREADS);
    let (mut record, mut threads, mut pool) = (Record::default(), Vec::new(), Vec::new());
    for _ in 0..500 {
        let mut child = Command::new("true").spawn().expect("true can be started");
        let pid = child.id();
        let waiter = std::thread::spawn(move || child.wait());
        while procfs
            .read_one(pid, &mut record, &mut threads, &mut pool)
            .expect("/proc can be read")
        {
            let process = Process::new(&record, &pool);
            assert_eq!(process.pid(), pid);
            assert!(process.identity().num_threads > 0, "{record:?}");
            assert!(process.fields().contains(Fields::IO), "{record:?}");
            assert!(threads.iter().all(|thread| thread.start_ns > 0));
            threads.clear();
            pool.clear();
        }
        let ended = waiter.join().expect("it waits");
        assert!(ended.expect("it is a child").success());
    }
}

#[test]
fn files_kept_open_follow_births_and_deaths() {
    let mut procfs = open(Fields::TOP);
    let mut idle: Vec<Running> = Vec::new();
    let mut gone: Vec<u32> = Vec::new();
    for round in 0..8 {
        idle.push(Running::sleep("1000"));
        idle.push(Running::sleep("1000"));
        if round >= 3 {
            gone.push(idle.remove(round % 3).id());
        }
        let table = procfs.collect().expect("/proc can be read");
        assert!(
            table
                .records
                .is_sorted_by(|a, b| a.identity.tgid < b.identity.tgid)
        );
        for pid in idle.iter().map(|one| one.id()) {
            let process = find(&table, pid).expect("the process is shown");
            assert_eq!((*process.name()).to_vec(), b"sleep");
        }
        assert!(gone.iter().all(|&pid| find(&table, pid).is_none()));
    }
}

#[test]
fn groups_are_those_that_were_asked_for() {
    for (_, fields) in Fields::NAMES {
        let mut procfs = open(fields);
        let table = procfs.collect().expect("/proc can be read");
        let own = find(&table, std::process::id()).expect("the process is shown");
        // The cgroup is known only if its hierarchy is mounted, and no file has delay accounting.
        let may_lack = fields == Fields::CGROUP || fields == Fields::DELAYS;
        assert!(
            own.fields() == fields || may_lack && own.fields().is_empty(),
            "{fields:?}"
        );
        assert_eq!(table.threads.is_empty(), fields != Fields::THREADS);
    }
}

#[test]
fn a_folder_without_processes_is_refused() {
    assert!(Procfs::open(Path::new("/proc/0"), Fields::TOP, &host()).is_err());
}

#[test]
fn only_the_processes_that_are_asked_for_are_read() {
    let (idle, own) = (Running::sleep("1000"), std::process::id());
    let pids = vec![idle.id(), own, u32::MAX, own];
    let collector = Collector::builder().pids(Some(pids)).open();
    let mut collector = collector.expect("/proc is mounted");
    assert_eq!(collector.source(), SourceKind::Procfs);
    let snapshot = collector.snapshot().expect("/proc can be read");
    let mut expected = [idle.id(), own];
    expected.sort_unstable();
    assert!(snapshot.iter().map(Process::pid).eq(expected));
}
