//! Every reader receives each exit once, as far as the kernel would have shown it.
//!
//! One test at a time: a forked child also has the sockets of the other tests, which would stay open.

use std::{collections::HashMap, process::Command, time::Duration};

use crate::common::{Served, become_user, in_child, request, settings, turns};
use fastproc::{
    Baseline, Collector, Fields, SourceKind,
    exits::Exit,
    source::service::wire::{Op, Request},
};
use fastproc_testbed::{GUARD, alone, ended_shell, gate, needs, wait_until};

const NOBODY: u32 = 65534;
/// Exits of a burst, and how many of them the service keeps.
const MANY: u64 = 3000;
const KEPT: u64 = 1000;
/// Another unprivileged user besides nobody.
const OTHER: u32 = 12360;

/// Whether it may be the exit of a child of this process: pids are reused.
fn is_of(exit: &Exit, parent: u32) -> bool {
    exit.ppid.is_none_or(|ppid| ppid == parent)
}

/// Takes snapshots until all of these children have exited. Returns their exits and command lines.
fn told(collector: &mut Collector, pids: &[u32], parent: u32) -> HashMap<u32, (Exit, Vec<u8>)> {
    let mut known = HashMap::new();
    // Of the whole machine: other processes may lose some.
    let mut lost = 0;
    wait_until("every exit", || {
        let snapshot = collector.snapshot().expect("the service answers");
        assert_eq!(snapshot.stats().source, SourceKind::Service);
        lost += snapshot.stats().lost_exits;
        let exits = snapshot.exits().expect("they are recorded").iter();
        for exit in exits.filter(|exit| pids.contains(&exit.pid) && is_of(exit, parent)) {
            assert!(snapshot.get(exit.pid).is_none_or(|process| {
                process.identity().start_ns.abs_diff(exit.start_ns) > 10_000_000
            }));
            let line = snapshot
                .exit_cmdline(exit)
                .map_or(&[][..], |line| line.bytes);
            let before = known.insert(exit.pid, (*exit, line.to_vec()));
            assert!(before.is_none(), "{} is told twice", exit.pid);
        }
        if lost > 0 && known.len() < pids.len() {
            eprintln!(
                "{} of {} are told, {lost} exits are lost",
                known.len(),
                pids.len()
            );
        }
        known.len() == pids.len()
    });
    known
}

/// A program of root that has become nobody when it ends.
fn ended_as_nobody(word: &str) -> u32 {
    let script = format!("import os\nos.setgid({NOBODY}), os.setuid({NOBODY}), exit(7)");
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", &script, word])
        .spawn()
        .expect("python3 runs");
    child.wait().expect("it ends");
    child.id()
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
    needs!(gate::bpf());
    let served = Served::start("exits-shown", None);
    let (mut own, mut its) = turns();
    let nobodys = builder(&served);
    let (mut from, mut to) = turns();
    let parent = std::process::id();
    let child = in_child(|| {
        become_user(NOBODY);
        let mut collector = nobodys.open().expect("the service answers");
        assert!(collector.exits_refused().is_none());
        its.give();
        its.wait();
        let pids = [(); 4].map(|()| from.number());
        let known = told(&mut collector, &pids, parent);
        let [root, other, nobody, turned] = pids.map(|pid| &known[&pid]);
        for (exit, line) in [root, other] {
            assert_eq!((exit.status, exit.io), (None, None));
            assert_eq!((exit.code(), exit.signal()), (None, None));
            assert_eq!(exit.start_ns % 10_000_000, 0);
            assert_eq!(exit.utime_ns % 10_000_000, 0);
            assert!(exit.end_ns.is_some_and(|end_ns| end_ns % 10_000_000 == 0));
            assert!(exit.sum_exec_ns > 0 && exit.minflt > 0);
            // A program may erase its arguments, so only its user sees them.
            assert!(line.is_empty(), "{}", line.escape_ascii());
        }
        assert!(nobody.1.ends_with(b"unmistakable\0"));
        // Root executed it, and may have erased its arguments before it became nobody.
        assert_eq!((turned.0.uid, &*turned.1), (NOBODY, &b""[..]));
        assert_eq!((root.0.uid, other.0.uid), (0, OTHER));
        assert_eq!(nobody.0.code(), Some(7));
        assert_eq!(nobody.0.uid, NOBODY);
    });
    let mut collector = builder(&served).open().expect("the service answers");
    own.wait();
    assert_eq!(served.status("/exits/readers"), 2);
    let [root, other, nobody] = [0, OTHER, NOBODY].map(|uid| ended_shell(uid, "unmistakable"));
    let pids = [root, other, nobody, ended_as_nobody("unmistakable")];
    own.give();
    for pid in pids {
        to.tell(pid);
    }
    let known = told(&mut collector, &pids, parent);
    for (exit, line) in known.values() {
        assert_eq!(exit.code(), Some(7));
        assert!(exit.io.is_some_and(|io| io.rchar > 0), "{exit:?}");
        assert_eq!(exit.ppid, Some(parent));
        assert!(line.ends_with(b"unmistakable\0"));
    }
    child.join();
    // Recording stops when no reader wants exits.
    wait_until("one is gone", || served.status("/exits/readers") == 1);
    assert_eq!(served.status("/exits/recording"), 1);
    drop(collector);
    wait_until("both are gone", || served.status("/exits/recording") == 0);
    assert_eq!(served.status("/exits/kept"), 0);
}

#[test]
fn readers_that_want_none_have_none_recorded() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("exits-unwanted", None);
    let mut collector = served.builder().open().expect("the service answers");
    let snapshot = collector.snapshot().expect("the service answers");
    assert!(snapshot.exits().is_none());
    assert_eq!(served.status("/exits/recording"), 0);
}

/// Each reader has its own place in the sequence of exits. A snapshot that is young enough has the exits before it, not
/// later ones.
#[test]
fn readers_at_different_speeds_are_told_everything_once() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("exits-speeds", None);
    let mut slow = builder(&served).open().expect("the service answers");
    let mut quick = builder(&served).open().expect("the service answers");
    let mut lazy = builder(&served)
        .max_age(Duration::from_millis(300))
        .open()
        .expect("the service answers");
    for collector in [&mut slow, &mut quick, &mut lazy] {
        assert!(
            collector
                .snapshot()
                .expect("the service answers")
                .exits()
                .is_some()
        );
    }
    let parent = std::process::id();
    let mut pids = Vec::new();
    for _ in 0..3 {
        let more: Vec<u32> = (0..20).map(|_| ended_shell(0, "x")).collect();
        told(&mut quick, &more, parent);
        pids.extend(more);
    }
    assert!(
        served.status("/exits/kept") >= pids.len() as u64,
        "one has had none of them"
    );
    told(&mut lazy, &pids, parent);
    told(&mut slow, &pids, parent);
    wait_until("what all have had is forgotten", || {
        for collector in [&mut slow, &mut quick, &mut lazy] {
            collector.snapshot().expect("the service answers");
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

/// A reader that never asks again delays no other, and costs a bounded amount of memory. It learns how many exits it
/// missed.
#[test]
fn exits_that_a_slow_reader_misses_are_counted() {
    let _alone = alone();
    needs!(gate::bpf());
    let mut settings = settings(None);
    settings.exits_kept = KEPT as usize;
    let served = Served::start_with("exits-slow", &settings);
    let raw = served.connect();
    let (first, _) = raw.ask(exits_request(0)).expect("an answer");
    assert_ne!(first.exits_last, 0);
    let mut collector = builder(&served).open().expect("the service answers");
    collector.snapshot().expect("the service answers");
    let (mut quick, mut lost) = (0, 0);
    // Children of a few processes, which exit at once.
    let script = "import os\nfor _ in range(750):\n p = os.fork()\n if p == 0: os._exit(0)\n os.waitpid(p, 0)";
    let mut forkers: Vec<_> = (0..4)
        .map(|_| {
            let python = Command::new("/usr/bin/python3")
                .args(["-c", script])
                .spawn();
            python.expect("python3 runs")
        })
        .collect();
    let parents: Vec<u32> = forkers.iter().map(std::process::Child::id).collect();
    wait_until("all are told, or counted as lost", || {
        let snapshot = collector.snapshot().expect("the service answers");
        let exits = snapshot.exits().expect("they are recorded");
        let of_parents = exits
            .iter()
            .filter(|exit| exit.ppid.is_some_and(|ppid| parents.contains(&ppid)));
        quick += of_parents.count() as u64;
        lost += snapshot.stats().lost_exits;
        quick + lost >= MANY
    });
    for child in &mut forkers {
        child.wait().expect("it ends");
    }
    assert!(served.status("/exits/kept") <= KEPT);
    let (reply, descriptor) = raw.ask(exits_request(first.exits_last)).expect("an answer");
    assert!(descriptor.is_some());
    assert_eq!(reply.exits_after, first.exits_last);
    let all = reply.exits_last - reply.exits_after;
    let here = reply.parts[6].count;
    assert!(all >= MANY, "{all} of {MANY} are counted");
    assert!(
        (1..=KEPT).contains(&here) && all - here >= MANY - KEPT,
        "{here} of {all} are here"
    );
}

/// The service restarts between two snapshots: exits in between are unknown, and nothing is made up.
#[test]
fn a_service_that_was_started_again_makes_no_false_difference() {
    let _alone = alone();
    needs!(gate::bpf());
    let mut served = Served::start("exits-restart", None);
    let mut collector = builder(&served).open().expect("the service answers");
    let mut before = Baseline::default();
    before.set(&collector.snapshot().expect("the service answers"));
    // A process that has used much before, and exits while exits are not recorded.
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
        let snapshot = collector.snapshot().expect("the service answers");
        let state = snapshot.get(pid).map(fastproc::Process::state);
        let ran = snapshot
            .get(pid)
            .and_then(|process| process.cpu()?.sum_exec_ns());
        before.set(&snapshot);
        state == Some(fastproc::record::State::Sleeping) && ran > Some(20_000_000)
    });
    served.restart(None);
    drop(burner.stdin.take());
    burner.wait().expect("it ends");
    let snapshot = collector.snapshot().expect("the service answers");
    assert!(snapshot.exits().is_none(), "nobody knows what ended since");
    assert_eq!(before.ended(&snapshot).count(), 0);
    before.set(&snapshot);
    // From here on everything is known again, except what the first process did.
    for _ in 0..5 {
        let next = ended_shell(0, "x");
        wait_until("the next one is told", || {
            let snapshot = collector.snapshot().expect("the service answers");
            let exits = snapshot.exits().expect("they are recorded again");
            let found = exits.iter().any(|exit| exit.pid == next);
            for gone in before.ended(&snapshot) {
                assert!(
                    gone.exit.pid != pid || !is_of(gone.exit, std::process::id()),
                    "what it did before is not counted again"
                );
            }
            before.set(&snapshot);
            found
        });
    }
}

/// A reader that can record exits without a service continues like that.
#[test]
fn without_the_service_root_records_by_itself() {
    let _alone = alone();
    needs!(gate::bpf());
    let mut served = Served::start("exits-alone", None);
    let builder = Collector::builder()
        .service_socket(Some(served.path()))
        .service_timeout(GUARD)
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
