//! Threads: a walk meets each once, and their sums are right, while they start and exit.
//!
//! Tests that count the threads of the test itself run in a separate process, without other tests.

use std::{collections::HashSet, fs};

use fastproc::{Collector, Fields, SourceKind};
use fastproc_testbed::{Change, Changing, Storm, alone, gate, needs, own_process, wait_until};

use super::{SECTIONS, Sleepers, open, open_in_sections};

#[test]
fn threads_are_listed_and_folded() {
    needs!(gate::bpf(), own_process(threads_are_listed_and_folded));
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let spinner = std::thread::spawn(move || {
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {}
    });
    wait_until("a tick of a thread that spins", || {
        let threads = fs::read_dir("/proc/self/task").expect("/proc is mounted");
        let stats = threads.map(|thread| {
            let path = thread.expect("no thread ends").path();
            fs::read_to_string(path.join("stat")).expect("no thread ends")
        });
        stats.into_iter().any(|stat| {
            let (_, values) = stat.rsplit_once(')').expect("a name");
            values.split(' ').skip(12).take(2).any(|ticks| ticks != "0")
        })
    });
    for source in SourceKind::LOCAL {
        let mut collector = open(source, Fields::TOP | Fields::THREADS);
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        let own = snapshot.get(std::process::id()).expect("we are there");
        let threads: Vec<_> = snapshot
            .threads()
            .filter(|thread| thread.tgid == own.pid())
            .collect();
        assert_eq!(
            threads.len(),
            own.identity().num_threads as usize,
            "{source}"
        );
        assert_eq!(
            own.identity().seen_threads as usize,
            threads.len(),
            "{source}"
        );
        let cpu = own.cpu().expect("it was asked for");
        let of_threads: u64 = threads.iter().map(|thread| thread.minflt).sum();
        assert!(
            cpu.minflt >= of_threads && of_threads > 0,
            "{source}: {} and {of_threads}",
            cpu.minflt
        );
        let busiest = threads
            .iter()
            .map(|thread| thread.utime_ns + thread.stime_ns)
            .max();
        assert!(busiest > Some(0), "{source}: a thread spins");
    }
    drop(stop);
    spinner.join().expect("it spins until told to stop");
}

/// With `lone_threads(false)` the thread of a process that has only one is not listed.
#[test]
fn a_thread_without_others_is_not_listed_unless_wanted() {
    needs!(
        gate::bpf(),
        own_process(a_thread_without_others_is_not_listed_unless_wanted)
    );
    let sleepers = Sleepers::start(1);
    // Besides the thread of the test.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || ended.recv());
    for lone in [true, false] {
        let collector = Collector::builder()
            .source(Some(SourceKind::Bpf))
            .fields(Fields::CPU | Fields::THREADS)
            .lone_threads(lone)
            .open();
        let mut collector = collector.expect("the source works here");
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        let listed = |pid| {
            let threads = snapshot.threads();
            threads.filter(|thread| thread.tgid == pid).count()
        };
        for pid in sleepers.pids() {
            assert_eq!(listed(pid), usize::from(lone));
        }
        let own = snapshot.get(std::process::id()).expect("we are there");
        assert!(own.identity().num_threads > 1);
        assert_eq!(listed(own.pid()), own.identity().num_threads as usize);
    }
    drop(end);
    let _ = other.join().expect("it only waits");
}

/// A thread is met once, wherever the walk pauses.
#[test]
fn every_thread_is_met_once_in_a_storm() {
    needs!(
        gate::bpf(),
        own_process(every_thread_is_met_once_in_a_storm)
    );
    let _alone = alone();
    let waiting: Vec<_> = (0..40)
        .map(|_| {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::spawn(move || ended.recv().is_err());
            (end, thread)
        })
        .collect();
    let tasks = || -> HashSet<u32> {
        let listed = fs::read_dir("/proc/self/task").expect("it can be listed");
        listed
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect()
    };
    // The final number: nothing else runs in this process.
    let before = tasks();
    let storm = Storm::start().expect("a storm can be started");
    let changing = Changing::start(Change::Threads).expect("threads can be started");
    let _executing = Changing::start(Change::Leader).expect("a process can be started");
    for sections in SECTIONS {
        let mut collector = open_in_sections(sections, Fields::TOP | Fields::THREADS);
        for _ in 0..100 {
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let mut met = HashSet::new();
            for thread in snapshot.threads() {
                assert!(
                    met.insert((thread.tid, thread.start_ns)),
                    "{sections:?}: {} twice",
                    thread.tid
                );
            }
            let met: HashSet<u32> = met.into_iter().map(|thread| thread.0).collect();
            let missed: Vec<_> = before.difference(&met).collect();
            assert!(missed.is_empty(), "{sections:?}: {missed:?}");
            assert!(snapshot.get(changing.pid()).is_some(), "{sections:?}");
        }
    }
    storm.stop().expect("the storm ends");
    for (end, thread) in waiting {
        drop(end);
        thread.join().expect("it waits");
    }
}

/// The kernel's sums over the threads of a process: faults, bytes read, and reads.
fn sums_in_proc(pid: u32) -> [u64; 3] {
    let read =
        |file| fs::read_to_string(format!("/proc/{pid}/{file}")).expect("/proc shows the process");
    let (stat, io) = (read("stat"), read("io"));
    let minflt = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split(' ').nth(8));
    let line = |name| io.lines().find_map(|line| line.strip_prefix(name));
    [minflt, line("rchar: "), line("syscr: ")].map(|value| {
        value
            .and_then(|value| value.parse().ok())
            .expect("a number")
    })
}

/// The sums of a process never decrease because a thread exits while they are read.
#[test]
fn sums_stay_between_those_of_the_kernel_while_threads_end() {
    needs!(gate::bpf());
    let _alone = alone();
    let changing = Changing::start(Change::Threads).expect("threads can be started");
    for sections in SECTIONS {
        let mut collector = open_in_sections(sections, Fields::CPU | Fields::IO);
        for round in 0..500 {
            let before = sums_in_proc(changing.pid());
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let process = snapshot.get(changing.pid()).expect("the process is shown");
            let (cpu, io) = (process.cpu(), process.io());
            let ours = [
                cpu.map(|cpu| cpu.minflt),
                io.map(|io| io.rchar),
                io.map(|io| io.syscr),
            ]
            .map(|sum| sum.expect("it was asked for"));
            let after = sums_in_proc(changing.pid());
            let between = (0..3).all(|at| (before[at]..=after[at]).contains(&ours[at]));
            assert!(
                between,
                "{sections:?}, round {round}: {before:?} {ours:?} {after:?}"
            );
        }
    }
}
