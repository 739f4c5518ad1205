//! What ended is handed to every reader once, as far as the kernel would have shown it.

mod common;

use std::{
    collections::HashMap,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use common::{Raw, Served, become_user, in_child, request, turns, wait_until};
use fastproc::{
    Baseline, Collector, Fields, SourceKind,
    exits::Exit,
    source::service::wire::{Op, Request},
};
use fastproc_testbed::{ended_shell, gate};

const NOBODY: u32 = 65534;
/// Exits of a storm, more than a service keeps.
const MANY: u64 = 70_000;
/// As nobody's are, but of another.
const OTHER: u32 = 12360;

/// One test at a time: see failures.rs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Snapshots until all of these have ended, with the command line of each, and how often each was told.
fn told(collector: &mut Collector, pids: &[u32]) -> HashMap<u32, (Exit, Vec<u8>)> {
    let mut known = HashMap::new();
    let started = Instant::now();
    while known.len() < pids.len() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{pids:?}: {known:?}"
        );
        let snapshot = collector.snapshot().expect("it is served");
        assert_eq!(snapshot.stats().source, SourceKind::Service);
        assert_eq!(snapshot.stats().lost_exits, 0);
        for exit in snapshot.exits().expect("they are recorded") {
            assert!(snapshot.get(exit.pid).is_none_or(|process| {
                process.identity().start_ns.abs_diff(exit.start_ns) > 10_000_000
            }));
            if pids.contains(&exit.pid) {
                let line = snapshot
                    .exit_cmdline(exit)
                    .map_or(&[][..], |line| line.bytes);
                let before = known.insert(exit.pid, (*exit, line.to_vec()));
                assert!(before.is_none(), "{} is told twice", exit.pid);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    known
}

fn builder(served: &Served) -> fastproc::Builder {
    served
        .builder()
        .fields(Fields::CPU)
        .exits(true)
        .exit_cmdlines(true)
}

#[test]
fn root_is_told_everything_and_nobody_what_it_might_have_seen() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    let served = Served::start("exits-shown", None);
    let (mut own, mut its) = turns();
    let nobodys = builder(&served);
    let (mut from, mut to) = turns();
    let child = in_child(|| {
        become_user(NOBODY);
        let mut collector = nobodys.open().expect("it is served");
        assert!(collector.exits_refused().is_none());
        its.give();
        its.wait();
        let pids = [from.number(), from.number(), from.number()];
        let known = told(&mut collector, &pids);
        let [root, other, nobody] = pids.map(|pid| &known[&pid]);
        for (exit, line) in [root, other] {
            assert_eq!((exit.status, exit.io), (None, None));
            assert_eq!((exit.code(), exit.signal()), (None, None));
            assert_eq!(exit.start_ns % 10_000_000, 0);
            assert_eq!(exit.utime_ns % 10_000_000, 0);
            assert!(exit.end_ns.is_some_and(|end_ns| end_ns % 10_000_000 == 0));
            assert!(exit.sum_exec_ns > 0 && exit.minflt > 0);
            assert!(line.ends_with(b"unmistakable\0"));
        }
        assert_eq!((root.0.uid, other.0.uid), (0, OTHER));
        assert_eq!(nobody.0.code(), Some(7));
        assert_eq!(nobody.0.uid, NOBODY);
    });
    let mut collector = builder(&served).open().expect("it is served");
    own.wait();
    assert_eq!(served.status("/exits/readers"), 2);
    let pids = [0, OTHER, NOBODY].map(|uid| ended_shell(uid, "unmistakable"));
    own.give();
    for pid in pids {
        to.tell(pid);
    }
    let known = told(&mut collector, &pids);
    for (exit, line) in known.values() {
        assert_eq!(exit.code(), Some(7));
        assert!(exit.io.is_some_and(|io| io.rchar > 0), "{exit:?}");
        assert_eq!(exit.ppid, Some(std::process::id()));
        assert!(line.ends_with(b"unmistakable\0"));
    }
    child.join();
    // Nothing is on when nobody wants it.
    wait_until("one is gone", || served.status("/exits/readers") == 1);
    assert_eq!(served.status("/exits/recording"), 1);
    drop(collector);
    wait_until("both are gone", || served.status("/exits/recording") == 0);
    assert_eq!(served.status("/exits/kept"), 0);
}

#[test]
fn readers_that_want_none_have_none_recorded() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    let served = Served::start("exits-unwanted", None);
    let mut collector = served.builder().open().expect("it is served");
    let snapshot = collector.snapshot().expect("it is served");
    assert!(snapshot.exits().is_none());
    assert_eq!(served.status("/exits/recording"), 0);
}

/// Each has its own place in what ended, and a young enough snapshot has the exits before it, not after.
#[test]
fn readers_at_different_speeds_are_told_everything_once() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    let served = Served::start("exits-speeds", None);
    let mut slow = builder(&served).open().expect("it is served");
    let mut quick = builder(&served).open().expect("it is served");
    let mut lazy = builder(&served)
        .max_age(Duration::from_millis(300))
        .open()
        .expect("it is served");
    for collector in [&mut slow, &mut quick, &mut lazy] {
        assert!(
            collector
                .snapshot()
                .expect("it is served")
                .exits()
                .is_some()
        );
    }
    let mut pids = Vec::new();
    for _ in 0..3 {
        let more: Vec<u32> = (0..20).map(|_| ended_shell(0, "x")).collect();
        told(&mut quick, &more);
        pids.extend(more);
    }
    assert!(
        served.status("/exits/kept") >= pids.len() as u64,
        "one has had none of them"
    );
    told(&mut lazy, &pids);
    told(&mut slow, &pids);
    wait_until("what all have had is forgotten", || {
        for collector in [&mut slow, &mut quick, &mut lazy] {
            collector.snapshot().expect("it is served");
        }
        served.status("/exits/kept") < 60
    });
}

fn exits_request(after: u64) -> Request {
    Request {
        exits: true,
        exits_after: after,
        ..request(Op::Exits, Duration::ZERO)
    }
}

/// A reader that never asks again holds up nobody, and costs a bounded amount of memory: what it misses it is told.
#[test]
fn what_a_reader_is_too_slow_for_is_counted() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    let served = Served::start("exits-slow", None);
    let raw = Raw::open(&served.path()).expect("it listens");
    let (first, _) = raw.ask(exits_request(0)).expect("an answer");
    assert_ne!(first.exits_last, 0);
    let mut collector = builder(&served).open().expect("it is served");
    collector.snapshot().expect("it is served");
    let (mut quick, mut lost) = (0, 0);
    // Forks that end at once, from a few processes.
    let script = "import os\nfor _ in range(17500):\n p = os.fork()\n if p == 0: os._exit(0)\n os.waitpid(p, 0)";
    let mut forkers: Vec<_> = (0..4)
        .map(|_| {
            let python = Command::new("/usr/bin/python3")
                .args(["-c", script])
                .spawn();
            python.expect("python3 runs")
        })
        .collect();
    let parents: Vec<u32> = forkers.iter().map(std::process::Child::id).collect();
    let started = Instant::now();
    while quick + lost < MANY {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "{quick} told, {lost} lost"
        );
        let snapshot = collector.snapshot().expect("it is served");
        let exits = snapshot.exits().expect("they are recorded");
        let of_parents = exits
            .iter()
            .filter(|exit| exit.ppid.is_some_and(|ppid| parents.contains(&ppid)));
        quick += of_parents.count() as u64;
        lost += snapshot.stats().lost_exits;
        std::thread::sleep(Duration::from_millis(20));
    }
    for child in &mut forkers {
        child.wait().expect("it ends");
    }
    assert!(served.status("/exits/kept") <= 1 << 16);
    let (reply, descriptor) = raw.ask(exits_request(first.exits_last)).expect("an answer");
    assert!(descriptor.is_some());
    assert_eq!(reply.exits_after, first.exits_last);
    let all = reply.exits_last - reply.exits_after;
    let here = reply.parts[6].count;
    assert!(all >= MANY, "{all} of {MANY} are counted");
    assert!(
        here <= 1 << 16 && all - here >= MANY - (1 << 16),
        "{here} of {all} are here"
    );
}

/// The service is started again between two snapshots: what ended meanwhile is not known, and nothing is made up.
#[test]
fn a_service_that_was_started_again_makes_no_false_difference() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    let mut served = Served::start("exits-restart", None);
    let mut collector = builder(&served).open().expect("it is served");
    let mut before = Baseline::default();
    before.set(&collector.snapshot().expect("it is served"));
    // One that has used much before, and ends while nobody records it.
    let mut burner = Command::new("/bin/sh")
        .args([
            "-c",
            "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; read x; exit 0",
        ])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("sh runs");
    let pid = burner.id();
    wait_until("it has burned", || {
        let snapshot = collector.snapshot().expect("it is served");
        let state = snapshot.get(pid).map(fastproc::Process::state);
        let ran = snapshot
            .get(pid)
            .and_then(|process| process.cpu().map(|cpu| cpu.sum_exec_ns));
        before.set(&snapshot);
        state == Some(fastproc::record::State::Sleeping) && ran > Some(100_000_000)
    });
    served.restart(None);
    drop(burner.stdin.take());
    burner.wait().expect("it ends");
    let snapshot = collector.snapshot().expect("it is served");
    assert!(snapshot.exits().is_none(), "nobody knows what ended since");
    assert_eq!(before.ended(&snapshot).count(), 0);
    before.set(&snapshot);
    // From here on all is known again, and nothing of what the first one did.
    let next = ended_shell(0, "x");
    let started = Instant::now();
    let mut found = false;
    while !found || started.elapsed() < Duration::from_secs(7) {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the next one is told"
        );
        let snapshot = collector.snapshot().expect("it is served");
        let exits = snapshot.exits().expect("they are recorded again");
        found |= exits.iter().any(|exit| exit.pid == next);
        for gone in before.ended(&snapshot) {
            assert_ne!(
                gone.exit.pid, pid,
                "what it did before is not counted again"
            );
        }
        before.set(&snapshot);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A reader that may record by itself goes on with that.
#[test]
fn without_the_service_root_records_by_itself() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    let mut served = Served::start("exits-alone", None);
    let builder = Collector::builder()
        .service_socket(Some(served.path()))
        .exits(true);
    let mut collector = builder.open().expect("there are sources");
    assert_eq!(served.status("/exits/readers"), 1);
    assert!(collector.snapshot().expect("some source").exits().is_some());
    served.stop();
    let snapshot = collector.snapshot().expect("some source");
    assert_ne!(snapshot.stats().source, SourceKind::Service);
    assert!(snapshot.exits().is_none(), "recording has just begun");
    let pid = ended_shell(0, "x");
    wait_until("it is told", || {
        let snapshot = collector.snapshot().expect("some source");
        let exits = snapshot.exits().expect("they are recorded");
        exits.iter().any(|exit| exit.pid == pid)
    });
    served.restart(None);
    wait_until("it goes back", || {
        let snapshot = collector.snapshot().expect("some source");
        assert!(snapshot.exits().is_some(), "and misses nothing");
        snapshot.stats().source == SourceKind::Service
    });
    assert_eq!(served.status("/exits/readers"), 0);
}
