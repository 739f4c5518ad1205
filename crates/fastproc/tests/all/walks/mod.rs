//! Walks of the kernel's tasks during storms, and while the table outgrows its array. Needs root.

mod actions;
mod delays;
mod each;
// Other architectures keep no records.
#[cfg(target_arch = "x86_64")]
mod kept;
#[cfg(target_arch = "x86_64")]
mod readers;
mod released;
mod script;
mod sums;
mod threads;
pub mod waits;

use std::{
    collections::{HashMap, HashSet},
    thread::sleep,
    time::{Duration, Instant},
};

use fastproc::{Collector, Fields, Process, SourceKind};
use fastproc_testbed::{
    Brackets, Change, Changing, GROUPS, GUARD, Options, Sleepers, Storm, Testbed, alone, gate,
    needs, wait_for, wait_until,
};

/// A tick of the kernel's texts: `USER_HZ` is 100 everywhere.
const TICK_NS: u64 = 10_000_000;
const WALKS: [SourceKind; 2] = [SourceKind::Bpf, SourceKind::BpfIter];
/// The walks, and one that pauses after every task.
const SECTIONS: [(SourceKind, Option<Duration>); 3] = [
    (SourceKind::Bpf, None),
    (SourceKind::Bpf, Some(Duration::ZERO)),
    (SourceKind::BpfIter, None),
];

fn open(source: SourceKind, fields: Fields) -> Collector {
    let collector = Collector::builder()
        .source(Some(source))
        .fields(fields)
        .open();
    collector.unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn open_in_sections(
    (source, section): (SourceKind, Option<Duration>),
    fields: Fields,
) -> Collector {
    let mut collector = Collector::builder().source(Some(source)).fields(fields);
    if let Some(section) = section {
        collector = collector.longest_section(section);
    }
    collector
        .open()
        .unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// Values that no process can have.
fn implausible(process: Process<'_>) -> Option<String> {
    let identity = process.identity();
    let memory = process.memory()?;
    let cpu = process.cpu()?;
    let year = 365 * 24 * 3600 * 1_000_000_000_u64;
    let what = if identity.tgid == 0 || identity.num_threads == 0 {
        "no pid or no threads"
    } else if memory.vsize > 1 << 50 || memory.rss() > 1 << 44 || memory.rss_approx > 1 << 44 {
        "more memory than there is"
    } else if identity.has_mm == 0 && memory.vsize != 0 {
        "memory without memory"
    } else if cpu.utime_ns > 100 * year
        || cpu.stime_ns > 100 * year
        || identity.start_ns > 10 * year
    {
        "older than the machine"
    } else if !identity.comm.contains(&0) {
        "a name without an end"
    } else {
        return None;
    };
    Some(format!("{what}: {:?}", process.record()))
}

/// The object with code for few groups of fields differs from the one with code for all.
#[test]
fn the_smaller_object_reads_the_same() {
    needs!(gate::bpf());
    let sleepers = Sleepers::start(20);
    sleepers.wait_until_asleep();
    let read = |source, fields| {
        let mut collector = open(source, fields);
        let snapshot = collector.snapshot().expect("it walks");
        let text = |pid| {
            let process = snapshot.get(pid).expect("it sleeps");
            let identity = process.identity();
            // Not the times that the kernel last showed: another process may have read them in between.
            let mut cpu = *process.cpu()?;
            (cpu.prev_utime_ns, cpu.prev_stime_ns) = (0, 0);
            Some(format!(
                "{:?} {:?} {:?} {:?} {:?} {:?}",
                (
                    identity.ppid,
                    identity.session,
                    identity.comm,
                    identity.start_ns,
                    identity.tty_nr
                ),
                (
                    identity.state_bits,
                    identity.flags,
                    identity.num_threads,
                    identity.exit_signal
                ),
                process.memory()?,
                cpu,
                process.users()?,
                process.scheduling()?,
            ))
        };
        let mut pids: Vec<u32> = sleepers.pids().into_iter().collect();
        pids.sort_unstable();
        pids.into_iter()
            .map(text)
            .collect::<Option<Vec<_>>>()
            .expect("its fields were read")
    };
    let fields = Fields::TOP | Fields::USERS | Fields::SCHEDULING;
    for source in WALKS {
        // The kernel may reclaim a page of a sleeping process.
        let mut brackets = Brackets::new();
        let (with_all, with_few) = wait_for("looks between which none of them moves", || {
            let all = || read(source, fields | Fields::IO);
            brackets.read(all, || read(source, fields))
        });
        assert_eq!(with_few, with_all, "{source}");
    }
}

#[test]
fn a_storm_brings_no_duplicate_no_nonsense_and_no_gap() {
    needs!(gate::bpf());
    let _alone = alone();
    let sleepers = Sleepers::start(50);
    let stable = sleepers.pids();
    for sections in SECTIONS {
        let source = sections.0;
        let storm = Storm::start().expect("a storm can be started");
        let fields = Fields::THREE_FILES | Fields::IO | Fields::CGROUP;
        let mut collector = open_in_sections(sections, fields);
        let (mut met, mut torn) = (0, 0);
        for _ in 0..300 {
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            torn += snapshot.stats().torn;
            let mut seen = HashSet::new();
            for process in snapshot.iter() {
                assert!(
                    seen.insert(process.pid()),
                    "{source}: {} twice",
                    process.pid()
                );
                assert_eq!(implausible(process), None, "{source}");
                met += 1;
            }
            let missed: Vec<_> = stable.difference(&seen).collect();
            assert!(missed.is_empty(), "{source} missed {missed:?}");
            assert!(snapshot.iter().map(Process::pid).is_sorted());
        }
        let tally = storm.stop().expect("the storm ends");
        assert!(
            tally.forks > 0 && tally.execs > 0 && tally.threads > 0,
            "it was calm: {tally:?}"
        );
        eprintln!("{source}: {met} records during {tally:?}, {torn} torn");
    }
}

/// After a burst the arrays shrink to their old sizes, and all values are right before, during and after that.
#[test]
fn the_arrays_go_back_after_a_burst() {
    needs!(gate::bpf());
    let _alone = alone();
    let steady = Sleepers::start(20);
    steady.wait_until_asleep();
    let fields = Fields::THREE_FILES | Fields::CPU | Fields::THREADS;
    let mut collectors = WALKS.map(|source| open(source, fields));
    let bytes = |collector: &Collector| collector.arrays().expect("a BPF source has them").bytes;
    let before = collectors.each_ref().map(bytes);
    let mut seen = WALKS.map(|_| HashMap::new());
    let mut check = |at: usize, collector: &mut Collector| {
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        let mut last = 0;
        for process in snapshot.iter() {
            assert!(process.pid() > last, "they are in order");
            last = process.pid();
            assert_eq!(implausible(process), None);
        }
        for pid in steady.pids() {
            let process = snapshot.get(pid).expect("it sleeps");
            let (memory, cpu) = (process.memory(), process.cpu());
            let signals = process.signals().expect("they were asked for");
            let values = (
                process.identity().start_ns,
                memory.expect("it was asked for").vsize,
                signals.caught,
                signals.ignored,
            );
            // It sleeps: its times stay as they were first shown.
            let times = cpu.map(|cpu| (cpu.utime_ns, cpu.stime_ns));
            let first = *seen[at].entry(pid).or_insert((values, times));
            assert_eq!((values, times), first, "{}: {pid}", WALKS[at]);
            assert!(times.is_some_and(|(user, system)| user + system > 0));
            let threads = snapshot.threads();
            assert_eq!(threads.filter(|thread| thread.tgid == pid).count(), 1);
        }
        snapshot.stats().grown
    };
    for (at, collector) in collectors.iter_mut().enumerate() {
        check(at, collector);
    }
    // More processes than there was room for, however many this machine has.
    let room = collectors.each_ref().map(|collector| {
        let arrays = collector.arrays().expect("a BPF source has them");
        arrays.processes as usize
    });
    let burst = Sleepers::start(2000.max(3 * room[0].max(room[1])));
    for (at, collector) in collectors.iter_mut().enumerate() {
        let grown = check(at, collector);
        assert!((1..=2).contains(&grown), "{}: {grown} times", WALKS[at]);
        assert!(bytes(collector) > 2 * before[at], "they have grown");
    }
    let peak = collectors.each_ref().map(bytes);
    drop(burst);
    let mut gone_back = [None; 2];
    let started = Instant::now();
    for round in 0.. {
        for (at, collector) in collectors.iter_mut().enumerate() {
            assert_eq!(check(at, collector), 0, "it keeps room enough");
            // A smaller size is not certain: others may have started some hundred processes meanwhile, which need room
            // too.
            if gone_back[at].is_none() && bytes(collector) < peak[at] * 2 / 3 {
                gone_back[at] = Some(round);
            }
        }
        // Some more rounds with the new arrays.
        if gone_back
            .iter()
            .all(|at| at.is_some_and(|at| round > at + 5))
        {
            break;
        }
        assert!(
            started.elapsed() < GUARD,
            "they never go back: {before:?}, {peak:?}, {:?}",
            collectors.each_ref().map(bytes)
        );
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn supplementary_groups_are_one_list_while_they_change() {
    needs!(gate::bpf());
    let _alone = alone();
    let changing = Changing::start(Change::Groups).expect("groups can be set");
    let lists = GROUPS.map(|(group, count)| vec![group; count]);
    for source in SourceKind::LOCAL {
        let mut collector = open(source, Fields::CREDENTIALS);
        let mut met = [0; 2];
        // Few, because it has a CPU for itself meanwhile.
        let least = if source == SourceKind::Procfs {
            50
        } else {
            1_000
        };
        let mut look = || {
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let process = snapshot.get(changing.pid()).expect("the process is shown");
            let groups: Vec<u32> = process.supplementary_groups().collect();
            let list = lists.iter().position(|list| *list == groups);
            let list = list.unwrap_or_else(|| panic!("{source}: {groups:#x?}"));
            met[list] += 1;
            met
        };
        for _ in 0..least {
            look();
        }
        wait_until("both lists of groups", || look().iter().all(|&met| met > 0));
    }
}

/// The longest possible list is copied like any other, and is right.
#[test]
fn the_longest_list_of_groups_is_not_read_from_proc() {
    needs!(gate::bpf());
    let testbed = Testbed::open(&Options::only(["groups-65536"])).expect("groups can be set");
    let pid = testbed.processes()[0].pid;
    for source in WALKS {
        let mut collector = open(source, Fields::CREDENTIALS);
        for _ in 0..20 {
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let process = snapshot.get(pid).expect("the process is shown");
            let groups = process.supplementary_groups();
            assert!(groups.eq((0..65_536).map(|number| 5_000 + 3 * number)));
            // The text shows the start in ticks, the walk to the nanosecond.
            let start_ns = process.identity().start_ns;
            assert_ne!(start_ns % TICK_NS, 0, "{source}: it is read from /proc");
        }
    }
}

/// A process exists all the time while it changes its leader.
#[test]
fn a_process_that_changes_its_leader_is_met_once() {
    needs!(gate::bpf());
    let _alone = alone();
    let changing = Changing::start(Change::Leader).expect("a process can be started");
    for sections in SECTIONS {
        for fields in [Fields::empty(), Fields::TOP] {
            let mut collector = open_in_sections(sections, fields);
            for round in 0..500 {
                let snapshot = collector.snapshot().expect("a snapshot can be made");
                let met = snapshot.iter().filter(|met| met.pid() == changing.pid());
                assert_eq!(met.count(), 1, "{sections:?}, {fields:?}, round {round}");
            }
        }
    }
}
