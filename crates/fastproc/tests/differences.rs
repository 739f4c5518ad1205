//! Differences between snapshots of processes that live for milliseconds. Needs root.

use std::{
    process::{Child, Command},
    time::Duration,
};

use fastproc::{Baseline, Collector, Fields, SourceKind, difference::SHORTEST_NS};
use fastproc_testbed::gate;

/// A shell that runs one program after the other.
struct ShortLived(Child);

impl ShortLived {
    fn start(program: &str) -> Self {
        let shell = Command::new("sh")
            .args(["-c", &format!("while :; do {program}; done")])
            .spawn();
        Self(shell.expect("there is a shell"))
    }
}

impl Drop for ShortLived {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn short_lived_processes_have_no_spikes() {
    if !gate::bpf() {
        return;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    // The first is born and gone within any interval; the second outlives the way from the list of processes to its own
    // files, however slow that is, so that every snapshot has one that was born since the one before.
    let _storm = ["/bin/true", "sleep 0.02"].map(ShortLived::start);
    for source in SourceKind::ALL {
        let mut collector = Collector::builder()
            .source(Some(source))
            .fields(Fields::TOP | Fields::IO | Fields::THREADS)
            .open()
            .unwrap_or_else(|error| panic!("{source}: {error}"));
        let mut before = Baseline::default();
        let (mut born, mut known) = (0, 0);
        // On a busy machine there may be fewer in one snapshot: then there are more of these.
        for round in 0..4000 {
            if round >= 80 && born > 10 && known > 500 {
                break;
            }
            let now = collector
                .snapshot()
                .unwrap_or_else(|error| panic!("{source}: {error}"));
            for change in before.changes(&now).chain(before.thread_changes(&now)) {
                let (process, pid) = (change.process, change.process.pid());
                let share = change.cpu_share.expect("it was asked for");
                assert!(
                    (0.0..=cpus as f64).contains(&share),
                    "{source}, {pid}: {share}"
                );
                // The earlier snapshot may have had more threads of it.
                let threads = f64::from(process.identity().num_threads.max(1));
                let is_alone = change.born || threads > 1.0 || change.thread.is_some();
                assert!(!is_alone || share <= threads, "{source}, {pid}: {share}");
                let (faults, rate) = match (change.thread, process.cpu()) {
                    (Some(thread), _) => (thread.minflt, change.minflt_per_second),
                    (None, cpu) => (cpu.map_or(0, |cpu| cpu.minflt), change.minflt_per_second),
                };
                let most = faults as f64 * 1e9 / SHORTEST_NS as f64;
                assert!(
                    rate.is_some_and(|rate| (0.0..=most.max(1.0)).contains(&rate)),
                    "{source}, {pid}: {rate:?} faults a second, and it has had {faults}"
                );
                if round > 0 && change.thread.is_none() {
                    born += u32::from(change.born);
                    known += u32::from(!change.born);
                }
            }
            before.set(&now);
            std::thread::sleep(Duration::from_nanos(SHORTEST_NS + 1_000_000));
        }
        assert!(born > 10 && known > 500, "{source}: {born} and {known}");
    }
}
