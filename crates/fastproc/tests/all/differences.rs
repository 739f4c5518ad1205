//! Differences between snapshots of short-lived processes. Needs root.

use std::{
    collections::HashMap,
    process::{Child, Command},
    time::Duration,
};

use fastproc::{
    Baseline, Collector, Fields, Process, SourceKind,
    difference::{Change, Counter, SHORTEST_NS, TaskCounters, is_same_start},
    record::TICK_NS,
};
use fastproc_testbed::gate;

/// A child that is killed with the test.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let child = Command::new(program).args(arguments).spawn();
        Self(child.expect("it can be run"))
    }

    /// Whether `process` is this process, or a child of it.
    fn has(&self, process: Process<'_>) -> bool {
        [process.pid(), process.identity().ppid].contains(&self.0.id())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The time that a process of one thread may seem to have used beyond its lifetime: the kernel counts up to its own
/// last tick, and `/proc` shows two times, each in whole ticks.
const TICKS_NS: u64 = 2 * SHORTEST_NS;

/// The run time from which the change is computed. It is in whole ticks if the source had to read `/proc`, for example
/// because the process changed while it was read.
fn run_ns(change: &Change<'_>) -> u64 {
    let counters = match change.thread {
        Some(thread) => TaskCounters::from_thread(thread),
        None => TaskCounters::from_process(change.process),
    };
    counters.get(Counter::Run).expect("it was asked for")
}

/// What the test has seen of a process or thread, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Seen {
    start: u64,
    /// The largest total.
    all: u64,
    /// The largest run time.
    run: u64,
    /// When the snapshot of that run time began and ended. A later, smaller one does not count: see
    /// [`Marks`](fastproc::difference::Marks).
    between: (u64, u64),
}

impl Seen {
    fn first(change: &Change<'_>, between: (u64, u64)) -> Self {
        Self {
            start: change.process.identity().start_ns,
            all: used_in_all(change),
            run: run_ns(change),
            between,
        }
    }
}

/// The process, and the thread if it is one's.
fn id(change: &Change<'_>) -> (u32, Option<u32>) {
    (change.process.pid(), change.thread.map(|thread| thread.tid))
}

/// The total time that a process or thread has used, according to the snapshot.
fn used_in_all(change: &Change<'_>) -> u64 {
    let cpu = change.process.cpu();
    let of_process = || cpu.map(|cpu| cpu.utime_ns + cpu.stime_ns);
    let of_thread = change
        .thread
        .map(|thread| thread.utime_ns + thread.stime_ns);
    of_thread.or_else(of_process).expect("it was asked for")
}

/// Two collectors and `/proc` alternately read a process that works in user mode and in the kernel. Each part is never
/// less than the kernel showed before, and the sum never less than the other collector showed.
#[test]
fn cpu_time_does_not_go_back_between_independent_readers() {
    if !gate::bpf() {
        return;
    }
    let busy = Running::start("sh", &["-c", "while :; do echo busy > /dev/null; done"]);
    let pid = busy.0.id();
    let open = || {
        Collector::builder()
            .source(Some(SourceKind::Bpf))
            .fields(Fields::CPU)
            .open()
            .expect("BPF can be used")
    };
    let mut readers = [open(), open()];
    let ticks = || -> [u64; 2] {
        let stat =
            std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("/proc shows the process");
        let (_, rest) = stat.rsplit_once(") ").expect("a name");
        let mut fields = rest.split(' ').skip(11);
        [(); 2].map(|()| {
            fields
                .next()
                .and_then(|ticks| ticks.parse().ok())
                .expect("ticks")
        })
    };
    let mut last_sum = 0;
    for round in 0..400 {
        let least = if round % 3 == 0 { ticks() } else { [0; 2] };
        let snapshot = readers[round % 2].snapshot().expect("a snapshot");
        let process = snapshot.get(pid).expect("the process is shown");
        let cpu = process.cpu().expect("it was asked for");
        let parts = [cpu.utime_ns, cpu.stime_ns];
        let sum = parts[0] + parts[1];
        assert!(sum >= last_sum, "round {round}: {sum} after {last_sum}");
        last_sum = sum;
        for (part, least) in parts.into_iter().zip(least) {
            let shown = part / TICK_NS;
            assert!(shown >= least, "round {round}: {shown} ticks after {least}");
        }
    }
}

#[test]
fn short_lived_processes_have_no_spikes() {
    if !gate::bpf() {
        return;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    // Its children start and exit within any interval.
    let shell = Running::start("sh", &["-c", "while :; do /bin/true; done"]);
    for source in SourceKind::LOCAL {
        let mut collector = Collector::builder()
            .source(Some(source))
            .fields(Fields::TOP | Fields::IO | Fields::THREADS)
            .open()
            .unwrap_or_else(|error| panic!("{source}: {error}"));
        let mut before = Baseline::default();
        let first = collector.snapshot().expect("a snapshot");
        before.set(&first);
        let mut looked_ns = (
            first.stats().kernel_boottime_ns(),
            first.stats().kernel_end_ns(),
        );
        let (mut born, mut known) = (0, 0);
        // By process and thread.
        let mut seen_before = HashMap::new();
        let nothing = Baseline::default();
        for change in nothing
            .changes(&first)
            .chain(nothing.thread_changes(&first))
        {
            seen_before.insert(id(&change), Seen::first(&change, looked_ns));
        }
        // Every snapshot has a process that started since the one before, and a known one.
        let mut sleeper = Running::start("sleep", &["600"]);
        for round in 0..40 {
            std::thread::sleep(Duration::from_nanos(SHORTEST_NS + 1_000_000));
            let next = Running::start("sleep", &["600"]);
            let now = collector
                .snapshot()
                .unwrap_or_else(|error| panic!("{source}: {error}"));
            let now_looked_ns = (
                now.stats().kernel_boottime_ns(),
                now.stats().kernel_end_ns(),
            );
            for change in before.changes(&now).chain(before.thread_changes(&now)) {
                let process = change.process;
                if ![&shell, &sleeper, &next]
                    .iter()
                    .any(|ours| ours.has(process))
                {
                    continue;
                }
                let who = format!("{source}, {}, {:?}", process.pid(), change);
                let start_ns = process.identity().start_ns;
                let age_ns = now.stats().kernel_end_ns() - start_ns;
                let used_ns = change.cpu_ns.expect("it was asked for");
                let share = change.cpu_share.expect("it was asked for");
                let all_ns = used_in_all(&change);
                // A hundredth more: the kernel measures run times by another clock.
                let most_ns = age_ns + age_ns / 100 + TICKS_NS;
                assert!(all_ns <= most_ns, "{all_ns} ns in {age_ns} ns: {who}");
                // No change exceeds the growth of this total. Time of a virtual CPU that was stopped is added when it
                // continues, so it may exceed the time since the last snapshot.
                let unseen = Seen {
                    all: 0,
                    run: 0,
                    ..Seen::first(&change, looked_ns)
                };
                let seen = seen_before.entry(id(&change)).or_insert(unseen);
                // The id may be in use again.
                if !is_same_start(seen.start, start_ns) {
                    *seen = unseen;
                }
                let last = *seen;
                let added_ns = all_ns.saturating_sub(last.all);
                assert!(used_ns <= added_ns + TICKS_NS, "{added_ns} ns added: {who}");
                seen.all = all_ns.max(last.all);
                if run_ns(&change) >= last.run {
                    seen.run = run_ns(&change);
                    seen.between = now_looked_ns;
                }
                if change.thread.is_none() {
                    *(if change.born { &mut born } else { &mut known }) += 1;
                }
                // It was read at some time of either snapshot; a new process has the time between the starts of both.
                let longest_ns = now_looked_ns.1 - last.between.0;
                let shortest_ns = now_looked_ns.0
                    - if change.born {
                        last.between.0
                    } else {
                        last.between.1
                    };
                let most = if change.thread.is_some() {
                    1.0
                } else {
                    cpus as f64
                };
                let of = |elapsed_ns: u64| (used_ns as f64 / elapsed_ns as f64).min(most);
                assert!(
                    (of(longest_ns) * 0.999..=of(shortest_ns) * 1.001).contains(&share),
                    "{shortest_ns} to {longest_ns} ns since {last:?}: {who}"
                );
                let (faults, rate) = match (change.thread, process.cpu()) {
                    (Some(thread), _) => (thread.minflt, change.minflt_per_second),
                    (None, cpu) => (cpu.map_or(0, |cpu| cpu.minflt), change.minflt_per_second),
                };
                let most = faults as f64 * 1e9 / SHORTEST_NS as f64;
                assert!(
                    rate.is_some_and(|rate| (0.0..=most.max(1.0)).contains(&rate)),
                    "{rate:?} faults a second, and it has had {faults}: {who}"
                );
            }
            before.set(&now);
            looked_ns = now_looked_ns;
            sleeper = next;
            assert!(born > round, "{source}: {born} born in round {round}");
        }
        assert!(known > 40, "{source}: {known} were known");
    }
}
