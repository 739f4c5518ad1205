//! Interrupt counts that may be a little old: never older than allowed, while the allowance changes. Needs root, and
//! reports that.

use std::{
    fs::File,
    io::Write,
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
    let mut counters = Options::new().bpf(false).open().expect("it opens");
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

#[test]
fn counts_are_never_older_than_allowed_and_never_go_back() {
    let Some(mut counters) = open(exact()) else {
        return;
    };
    let mut last: Vec<u32> = Vec::new();
    // Readings that took no longer than the counts may be old, so their age could be checked.
    let mut judged = 0;
    for latency in [0, 1, 10, 100, 0, 1, 0, 50] {
        counters.set_stat_irqs_latency(Duration::from_millis(latency));
        let allowed = counters.stat_irqs_latency();
        let [mut reused, mut fresh] = [0; 2];
        let mut look = || {
            let began = Instant::now();
            let sample = counters.collect(Want::STAT).expect("it collects");
            // A reader that is preempted after reading the clock cannot check.
            let took = began.elapsed();
            let age = sample.taken.saturating_sub(sample.irqs_taken);
            assert!(
                age <= allowed + took,
                "{age:?} old, {allowed:?} allowed, in a look of {took:?}"
            );
            judged += u32::from(took <= allowed.max(jiffy()));
            *(if age > Duration::ZERO {
                &mut reused
            } else {
                &mut fresh
            }) += 1;
            for (irq, (&now, &then)) in sample.stat.irqs.iter().zip(&last).enumerate() {
                assert!(
                    now.wrapping_sub(then) < 1 << 31,
                    "interrupt {irq} went back: {then}, {now}"
                );
            }
            last.clone_from(&sample.stat.irqs);
            // If counts may be old, some are; if not, all are fresh.
            fresh > 20 && (latency < 50 || reused > 20)
        };
        wait_until("looks with this allowance", &mut look);
    }
    assert!(
        judged > 100,
        "{judged} looks were short enough to be judged"
    );
}

#[test]
fn exact_counts_are_the_kernels_through_the_short_cut() {
    let Some(mut counters) = open(exact()) else {
        return;
    };
    let (mut judged, mut rounds) = (0, 0);
    let folder = Folder::new("interrupts");
    let mut file = File::create(folder.join("file")).expect("a file can be made");
    let mut look = || {
        rounds += 1;
        let before = counters.stat().expect("it reads").to_vec();
        // Where temporary files are on a disk, it interrupts now.
        file.write_all(&[1; 4096]).expect("it can be written");
        file.sync_data().expect("it can be written");
        let kernel = std::fs::read(MachineFile::Stat.path()).expect("it reads");
        let after = counters.stat().expect("it reads").to_vec();
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
    let (hits, walks) = counters.shortcuts();
    println!("{judged} of {rounds} rows judged; {hits} by the short cut, {walks} by a walk");
    assert!(hits > 0, "the short cut was never taken");
}
