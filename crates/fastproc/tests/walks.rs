//! Walks of the kernel's tasks while everything moves, and while the table outgrows its array. Needs root.

use std::{
    collections::HashSet,
    process::{Child, Command, Stdio},
    time::Duration,
};

use fastproc::{Baseline, Collector, Fields, Process, SourceKind};
use fastproc_zoo::{Storm, gate};

const TMP: &str = env!("CARGO_TARGET_TMPDIR");
const WALKS: [SourceKind; 2] = [SourceKind::Bpf, SourceKind::BpfIter];

/// Idle processes that end with this value.
struct Sleepers(Vec<Child>);

impl Sleepers {
    fn start(count: usize) -> Self {
        let sleep = || {
            Command::new("sleep")
                .arg("600")
                .stdin(Stdio::null())
                .spawn()
        };
        Self(
            (0..count)
                .map(|_| sleep().expect("sleep(1) can be run"))
                .collect(),
        )
    }

    fn pids(&self) -> HashSet<u32> {
        self.0.iter().map(Child::id).collect()
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

fn open(source: SourceKind, fields: Fields) -> Collector {
    let collector = Collector::builder()
        .source(Some(source))
        .fields(fields)
        .open();
    collector.unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// What no process can be.
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

#[test]
fn a_storm_brings_no_duplicate_no_nonsense_and_no_gap() {
    if !gate::root("a_storm_brings_no_duplicate_no_nonsense_and_no_gap", TMP) {
        return;
    }
    let sleepers = Sleepers::start(50);
    let stable = sleepers.pids();
    for source in WALKS {
        let storm = Storm::start().expect("a storm can be started");
        let mut collector = open(source, Fields::THREE_FILES | Fields::IO | Fields::CGROUP);
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

#[test]
fn times_never_run_backwards_in_a_storm() {
    if !gate::root("times_never_run_backwards_in_a_storm", TMP) {
        return;
    }
    for source in WALKS {
        let storm = Storm::start().expect("a storm can be started");
        let mut collector = open(source, Fields::TOP);
        let mut last = std::collections::HashMap::new();
        let mut compared = 0;
        for _ in 0..300 {
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let mut now = std::collections::HashMap::new();
            for process in snapshot.iter() {
                let key = (process.pid(), process.identity().start_ns);
                let cpu = process.cpu().expect("it was asked for");
                let time = (cpu.utime_ns, cpu.stime_ns);
                if let Some(&(utime, stime)) = last.get(&key) {
                    let name = process.name();
                    assert!(
                        time.0 >= utime && time.1 >= stime,
                        "{source} {name:?}: {time:?} after {utime}, {stime}"
                    );
                    compared += 1;
                }
                now.insert(key, time);
            }
            last = now;
        }
        assert!(compared > 1000, "{source}: hardly anything was compared");
        storm.stop().expect("the storm ends");
    }
}

#[test]
fn the_array_grows_and_nothing_is_lost() {
    if !gate::root("the_array_grows_and_nothing_is_lost", TMP) {
        return;
    }
    for source in WALKS {
        let mut collector = open(source, Fields::THREE_FILES);
        let (room, _) = collector.array().expect("a BPF source has an array");
        let before = collector.snapshot().expect("a snapshot can be made").len();
        assert!(before < room as usize);
        let sleepers = Sleepers::start(room as usize + 10);
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        assert!(snapshot.stats().grown > 0, "{source}: {room} were enough");
        for pid in sleepers.pids() {
            let process = snapshot
                .get(pid)
                .unwrap_or_else(|| panic!("{source} lost {pid}"));
            assert_eq!(
                process.memory().map(|memory| memory.vsize == 0),
                Some(false),
                "{source}: {pid} is empty"
            );
        }
        drop(sleepers);
        let after = collector.snapshot().expect("a snapshot can be made");
        assert_eq!(after.stats().grown, 0, "{source}: it keeps the room it has");
    }
}

/// What is taken over from the last walk is what reading it anew gives.
#[test]
fn reused_signal_actions_are_the_same() {
    if !gate::root("reused_signal_actions_are_the_same", TMP) {
        return;
    }
    let sleepers = Sleepers::start(100);
    let mut reusing = open(SourceKind::Bpf, Fields::SIGNALS);
    let mut fresh = open(SourceKind::Bpf, Fields::SIGNALS);
    fresh.set_reuse_actions(false);
    let mut reused = 0;
    for round in 0..20 {
        let mut short_lived = Command::new("true").spawn().expect("true(1) can be run");
        let snapshot = reusing.snapshot().expect("a snapshot can be made");
        reused += snapshot.stats().reused_actions;
        let other = fresh.snapshot().expect("a snapshot can be made");
        assert_eq!(other.stats().reused_actions, 0);
        for pid in sleepers.pids() {
            let sets = [snapshot, other].map(|snapshot| {
                let signals = *snapshot
                    .get(pid)
                    .and_then(Process::signals)
                    .expect("it sleeps");
                (signals.ignored, signals.caught)
            });
            assert_eq!(sets[0], sets[1], "round {round}, process {pid}");
        }
        short_lived.wait().expect("true(1) ends");
    }
    assert!(reused > 1000, "only {reused} were reused");
}

#[test]
fn a_difference_tells_born_gone_and_busy() {
    if !gate::root("a_difference_tells_born_gone_and_busy", TMP) {
        return;
    }
    for source in SourceKind::ALL {
        let mut collector = open(source, Fields::TOP);
        let mut before = Baseline::default();
        let mut ends = Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("sleep(1) can be run");
        let mut spins = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("sh(1) can be run");
        before.set(&collector.snapshot().expect("a snapshot can be made"));
        ends.kill().expect("it is ours");
        ends.wait().expect("it is ours");
        let mut born = Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("sleep(1) can be run");
        std::thread::sleep(Duration::from_millis(400));
        let now = collector.snapshot().expect("a snapshot can be made");
        let change = |pid| {
            before
                .changes(&now)
                .find(|change| change.process.pid() == pid)
        };
        let busy = change(spins.id())
            .and_then(|change| change.cpu_share)
            .expect("it spins");
        let idle = change(born.id()).expect("it was born");
        assert!(busy > 0.0, "{source}: it used nothing");
        assert!(
            idle.born && !change(spins.id()).expect("it spins").born,
            "{source}"
        );
        assert!(
            before.gone(&now).any(|gone| gone.pid == ends.id()),
            "{source}: it is not missed"
        );
        assert!(change(ends.id()).is_none());
        for child in [&mut spins, &mut born] {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }
}

#[test]
fn threads_are_listed_and_folded() {
    if !gate::root("threads_are_listed_and_folded", TMP) {
        return;
    }
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let spinner = std::thread::spawn(move || {
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {}
    });
    std::thread::sleep(Duration::from_millis(200));
    for source in SourceKind::ALL {
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
