//! CPU time and page faults by user, summed up over a few snapshots, like a metrics agent.
//!
//! `cargo run --example groups`

use std::{
    collections::{BTreeMap, HashMap},
    thread::sleep,
    time::Duration,
};

use fastproc::{
    Collector, Fields,
    difference::{Counter, Marks, TaskCounters},
};

#[derive(Default)]
struct Sums {
    cpu_ns: u64,
    faults: u64,
}

fn main() -> Result<(), fastproc::Error> {
    let fields = Fields::TOP | Fields::USERS;
    let mut collector = Collector::builder().fields(fields).open()?;
    let mut by_user: BTreeMap<u32, Sums> = BTreeMap::new();
    // By pid and start time, because pids are reused. Start times as text are up to a tick less precise: if the source may
    // change, compare them by `difference::is_same_start`.
    let mut marks: HashMap<(u32, u64), Marks> = HashMap::new();
    let mut first_ns = None;
    for _ in 0..5 {
        let snapshot = collector.snapshot()?;
        let now_ns = snapshot.stats().kernel_boottime_ns();
        let first_ns = *first_ns.get_or_insert(now_ns);
        let mut still = HashMap::with_capacity(snapshot.len());
        for process in snapshot.iter() {
            let start_ns = process.identity().start_ns;
            let key = (process.pid(), start_ns);
            let counters = TaskCounters::from_process(process);
            let mut mark = marks.remove(&key).unwrap_or_else(|| {
                if start_ns > first_ns {
                    Marks::at_start(start_ns)
                } else {
                    // What it did before this program began does not count.
                    Marks::at(&counters, now_ns)
                }
            });
            let growth = mark.advance(&counters, now_ns);
            still.insert(key, mark);
            if let Some(users) = process.users() {
                let sums = by_user.entry(users.uid).or_default();
                sums.cpu_ns += growth.get(Counter::Run).unwrap_or(0);
                sums.faults += growth.get(Counter::MinorFaults).unwrap_or(0);
            }
        }
        marks = still;
        sleep(Duration::from_millis(100));
    }
    for (uid, sums) in by_user {
        let cpu_ms = sums.cpu_ns / 1_000_000;
        println!(
            "uid {uid:>6}: {cpu_ms:>6} ms of CPU time, {} page faults",
            sums.faults
        );
    }
    Ok(())
}
