//! Interrupt counts that may be a little old: never older than allowed, by several concurrent readers, while the
//! allowance changes. Needs root, and reports that.

use std::{
    fs::File,
    io::Write,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use fastproc::counters::{MachineFile, Options, Want};
use fastproc_testbed::{Folder, wait_until};

use crate::counters_live::{exact, open};

fn jiffy() -> Duration {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Duration::new(resolution.tv_sec as u64, resolution.tv_nsec as u32)
}

#[test]
fn the_allowance_is_rounded_up_to_a_jiffy() {
    let counters = Options::new().bpf(false).open().expect("it opens");
    let jiffy = jiffy();
    assert_eq!(counters.stat_irqs_latency(), Duration::ZERO);
    counters.set_stat_irqs_latency(Duration::from_nanos(1));
    assert_eq!(counters.stat_irqs_latency(), jiffy);
    counters.set_stat_irqs_latency(jiffy);
    assert_eq!(counters.stat_irqs_latency(), jiffy);
    counters.set_stat_irqs_latency(jiffy * 3 + Duration::from_nanos(1));
    assert_eq!(counters.stat_irqs_latency(), jiffy * 4);
    counters.set_stat_irqs_latency(Duration::ZERO);
    assert_eq!(counters.stat_irqs_latency(), Duration::ZERO);
    counters.set_stat_irqs_latency(Duration::MAX);
    assert!(counters.stat_irqs_latency() > Duration::from_secs(1 << 30));
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn counts_are_never_older_than_allowed_and_never_go_back() {
    let Some(counters) = open(exact()) else {
        return;
    };
    // One more than there are CPUs; with many more, the readers would only wait for each other.
    let readers = thread::available_parallelism()
        .map_or(2, usize::from)
        .min(8)
        + 1;
    let stop = AtomicBool::new(false);
    let [reused, fresh] = [const { AtomicU64::new(0) }; 2];
    // Readings that took no longer than the counts may be old, so their age could be checked.
    let judged = AtomicU64::new(0);
    thread::scope(|scope| {
        // Whatever fails, stop the readers.
        let _stop = SetWhenDropped(&stop);
        for _ in 0..readers {
            scope.spawn(|| {
                let mut reader = counters.reader();
                let mut last: Vec<u32> = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    // The allowance may change during the collection.
                    let before = counters.stat_irqs_latency();
                    let began = Instant::now();
                    let sample = reader.collect(Want::STAT).expect("it collects");
                    // A reader that is preempted after reading the clock cannot check.
                    let took = began.elapsed();
                    let allowed = before.max(counters.stat_irqs_latency());
                    let age = sample.taken.saturating_sub(sample.irqs_taken);
                    assert!(
                        age <= allowed + took,
                        "{age:?} old, {allowed:?} allowed, in a look of {took:?}"
                    );
                    judged.fetch_add(u64::from(took <= allowed.max(jiffy())), Ordering::Relaxed);
                    let count = if age > Duration::ZERO {
                        &reused
                    } else {
                        &fresh
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                    for (irq, (&now, &then)) in sample.stat.irqs.iter().zip(&last).enumerate() {
                        assert!(
                            now.wrapping_sub(then) < 1 << 31,
                            "interrupt {irq} went back: {then}, {now}"
                        );
                    }
                    last.clone_from(&sample.stat.irqs);
                }
            });
        }
        for latency in [0, 1, 10, 100, 0, 1, 0, 50] {
            counters.set_stat_irqs_latency(Duration::from_millis(latency));
            // If counts may be old, some are; if not, all are fresh.
            let awaited = [(&fresh, 0), (&reused, 50)].map(|(count, at_least)| {
                let before = count.load(Ordering::Relaxed);
                (count, before, latency >= at_least)
            });
            wait_until("looks with this allowance", || {
                awaited.iter().all(|(count, before, wanted)| {
                    !wanted || count.load(Ordering::Relaxed) > before + 20
                })
            });
        }
        wait_until("looks that are short enough to be judged", || {
            judged.load(Ordering::Relaxed) > 100
        });
    });
}

#[test]
fn exact_counts_are_the_kernels_through_the_short_cut() {
    let Some(counters) = open(exact()) else {
        return;
    };
    let mut reader = counters.reader();
    let (mut judged, mut rounds) = (0, 0);
    let folder = Folder::new("interrupts");
    let mut file = File::create(folder.join("file")).expect("a file can be made");
    let mut look = || {
        rounds += 1;
        let before = reader.stat().expect("it reads").to_vec();
        // Where temporary files are on a disk, it interrupts now.
        file.write_all(&[1; 4096]).expect("it can be written");
        file.sync_data().expect("it can be written");
        let kernel = std::fs::read(MachineFile::Stat.path()).expect("it reads");
        let after = reader.stat().expect("it reads").to_vec();
        let row = |text: &[u8]| -> Vec<u64> {
            let text = String::from_utf8_lossy(text).into_owned();
            let line = text
                .lines()
                .find(|line| line.starts_with("intr "))
                .expect("it has the line");
            line.split(' ')
                .skip(2)
                .map(|count| count.parse().expect("a count"))
                .collect()
        };
        let [before, kernel, after] = [row(&before), row(&kernel), row(&after)];
        assert_eq!(before.len(), kernel.len());
        for ((before, kernel), after) in before.iter().zip(&kernel).zip(&after) {
            assert!(
                before <= kernel && kernel <= after,
                "{before} <= {kernel} <= {after}"
            );
        }
        // A count that did not move must be equal; on a busy machine some always move.
        let mut pairs = before.iter().zip(&after);
        judged += usize::from(pairs.any(|(before, after)| before == after && *before > 0));
        judged > 0
    };
    for _ in 0..200 {
        look();
    }
    wait_until("an interrupt that stands still for two looks", look);
    let (hits, walks) = reader.shortcuts();
    println!("{judged} of {rounds} rows judged; {hits} by the short cut, {walks} by a walk");
    assert!(hits > 0, "the short cut was never taken");
}

#[test]
fn readers_beyond_the_slots_share_one() {
    let counters = Options::new().readers(1).open().expect("it opens");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut reader = counters.reader();
                for _ in 0..200 {
                    let (stat, vmstat) = reader.stat_and_vmstat().expect("both");
                    assert!(stat.starts_with(b"cpu  ") && vmstat.starts_with(b"nr_free_pages "));
                }
            });
        }
    });
}
