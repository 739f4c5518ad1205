//! Arrays whose memory was given back.

use std::collections::HashMap;

use fastproc::{Collector, Fields};
use fastproc_testbed::{alone, gate, needs};

use super::{Sleepers, WALKS, open};

fn bytes(collector: &Collector) -> u64 {
    collector.arrays().expect("a BPF source has them").bytes
}

/// The next snapshot has every process, and the same values of those that slept.
#[test]
fn released_arrays_come_back() {
    needs!(gate::bpf());
    let _alone = alone();
    let sleepers = Sleepers::start(600);
    sleepers.wait_until_asleep();
    for source in WALKS {
        let mut collector = open(source, Fields::THREE_FILES | Fields::CPU);
        let mut first = HashMap::new();
        let mut look = |collector: &mut Collector| {
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            for pid in sleepers.pids() {
                let process = snapshot
                    .get(pid)
                    .unwrap_or_else(|| panic!("{source} lost {pid}"));
                let memory = process.memory().expect("it was asked for").vsize;
                let cpu = process.cpu().expect("it was asked for");
                let values = (process.identity().start_ns, memory, cpu.utime_ns);
                assert_eq!(values, *first.entry(pid).or_insert(values), "{pid}");
            }
            (snapshot.stats().grown, snapshot.stats().kept)
        };
        look(&mut collector);
        let full = bytes(&collector);
        for reserves in [true, false] {
            collector.release_arrays().expect("small ones fit");
            assert!(bytes(&collector) < full, "{source}: {full}");
            assert!(collector.latest().is_none());
            if reserves {
                collector.reserve_arrays().expect("there is memory");
            }
            let (grown, kept) = look(&mut collector);
            assert_eq!(grown > 0, !reserves, "{source}: {grown} times");
            assert_eq!(kept, 0, "{source}: nothing was there to be kept");
            for _ in 0..3 {
                assert_eq!(look(&mut collector).0, 0);
            }
        }
    }
}
