//! The line `processes` of `/proc/stat` (`total_forks`, `kernel/fork.c`), if no symbol leads to it: the forks that the
//! tracepoint `task_newtask` has counted since load, plus those before, which the text knows.
//!
//! `copy_process()` notes when the task starts, counts the fork, and calls the tracepoint a little later; it may be
//! preempted in between. So the sum is the kernel's number less the forks that are on their way at this moment; each is
//! counted before `fork()` returns.
//!
//! To learn the number of forks before the first that was counted, a reader counts, reads the text, sets a mark to the
//! time after that, and counts again:
//! - The text has at least the forks of the first count, so the number before is at most the text's less that count.
//! - The text has at most the forks of the second count and those that were on their way while it was read. These began
//!   before the mark, and when they reach the tracepoint, it counts them as late. As long as none was late, there were
//!   none, and the number before is at least the text's less the second count.
//!
//! If both bounds are the same number, it is proven, however many others fork meanwhile. If a fork is late after all, the
//! lower bound is void from this moment on, and the text serves until a reader has proven the number again. Until then
//! the sum was right: the late fork was in the text, or was not yet counted.

use std::{
    sync::atomic::{Ordering, fence},
    thread,
    time::Duration,
};

use super::layout::LATE_FORK;
use crate::kernel::Mapping;

/// How often to wait for the tracepoint of a fork that the text has: much longer than it needs unless it is preempted.
const RETRIES: u32 = 20;
/// The time between two checks.
const RETRY_AFTER: Duration = Duration::from_micros(100);

/// How far the clock of BPF programs may be behind the one by which tasks start: it is not corrected between two ticks.
const CLOCKS_DIFFER_NS: u64 = 20_000;

/// Words of `struct counters_forks`: the count and the mark are the first two.
pub(super) const WORDS: usize = 8;
const MARK: usize = 1;

/// What all CPUs have counted since load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    forks: u64,
    /// Those among them that began before the mark of their time.
    late: u64,
}

/// What is known about the forks before the first that was counted.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: u64,
    most: u64,
    /// `least` holds as long as no more are late.
    late: u64,
    mark: u64,
}

/// The counts of all CPUs, and the number to which they are added.
#[derive(Debug)]
pub(super) struct Forks {
    words: Mapping<u64>,
    cpus: usize,
    bounds: Bounds,
    /// The largest sum that was returned, because a counter never runs backwards.
    served: u64,
}

impl Forks {
    pub(super) fn new(words: Mapping<u64>, cpus: u32) -> Self {
        Self {
            words,
            cpus: cpus as usize,
            bounds: Bounds {
                least: 0,
                most: u64::MAX,
                late: 0,
                mark: 0,
            },
            served: 0,
        }
    }

    pub(super) fn count(&self) -> Count {
        let mut count = Count::default();
        for cpu in 0..self.cpus {
            let word = self.words.load(cpu * WORDS);
            count.forks += word % LATE_FORK;
            count.late += word / LATE_FORK;
        }
        count
    }

    /// Whether the number is certain with this count.
    fn is_certain(&self, count: Count) -> bool {
        self.bounds.least == self.bounds.most && self.bounds.late == count.late
    }

    /// Whether the number is certain now.
    pub(super) fn are_certain(&self) -> bool {
        self.is_certain(self.count())
    }

    /// Forks since boot. `None`: the text has to tell.
    pub(super) fn total(&mut self) -> Option<u64> {
        let count = self.count();
        if !self.is_certain(count) {
            return None;
        }
        let total = self.bounds.least.wrapping_add(count.forks);
        self.served = self.served.max(total);
        Some(self.served)
    }

    /// Takes the number of a text that was read after `before` was counted and before `now_ns`.
    pub(super) fn learn(&mut self, before: Count, processes: u64, now_ns: u64) {
        // The text may be shown to others, and later sums are at least as large.
        self.served = self.served.max(processes);
        let mut bounds = self.bounds;
        bounds.mark = bounds.mark.max(now_ns.saturating_add(CLOCKS_DIFFER_NS));
        for cpu in 0..self.cpus {
            self.words.store(cpu * WORDS + MARK, bounds.mark);
        }
        // A fork that is not in the following count sees the mark.
        fence(Ordering::SeqCst);
        let after = self.count();
        if after.late != bounds.late {
            bounds.least = 0;
            bounds.late = after.late;
        }
        let least = processes.saturating_sub(after.forks);
        let most = processes.saturating_sub(before.forks);
        bounds.least = bounds.least.max(least);
        bounds.most = bounds.most.min(most);
        if bounds.least > bounds.most {
            // The tracepoint has missed forks.
            (bounds.least, bounds.most) = (least, most);
        }
        self.bounds = bounds;
    }

    /// The sum, waiting a moment until it reaches the number of a text.
    pub(super) fn total_after(&mut self, processes: u64) -> Option<u64> {
        for _ in 0..RETRIES {
            if self.total().is_none_or(|total| total >= processes) {
                break;
            }
            thread::sleep(RETRY_AFTER);
        }
        self.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anonymous memory in place of the map's.
    fn forks() -> Forks {
        let file = rustix::fs::memfd_create("forks", rustix::fs::MemfdFlags::CLOEXEC)
            .expect("memory can be had");
        rustix::fs::ftruncate(&file, rustix::param::page_size() as u64).expect("it grows");
        Forks::new(Mapping::new(&file, 2 * WORDS).expect("it can be mapped"), 2)
    }

    /// What the tracepoint does.
    fn fork(forks: &Forks, cpu: usize, start_ns: u64) {
        let at = cpu * WORDS;
        let is_late = start_ns < forks.words.load(at + MARK);
        let add = 1 + if is_late { LATE_FORK } else { 0 };
        forks.words.store(at, forks.words.load(at) + add);
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn one_text_proves_it_between_two_forks_on_a_machine_that_always_forks() {
        let mut forks = forks();
        fork(&forks, 0, SECOND);
        fork(&forks, 1, SECOND);
        forks.learn(forks.count(), 1002, 2 * SECOND);
        assert_eq!(forks.total(), Some(1002));
        fork(&forks, 0, 3 * SECOND);
        assert_eq!(forks.total(), Some(1003));
    }

    #[test]
    fn a_fork_on_its_way_makes_the_text_serve_again_once_it_is_counted() {
        let mut forks = forks();
        // 1000 before, and one that the kernel has counted, and the tracepoint not yet.
        forks.learn(forks.count(), 1001, 2 * SECOND);
        fork(&forks, 1, 3 * SECOND);
        assert_eq!(forks.total(), Some(1002));
        fork(&forks, 0, SECOND);
        assert_eq!(forks.total(), None, "it may be counted twice");
        forks.learn(forks.count(), 1002, 4 * SECOND);
        assert_eq!(forks.total(), Some(1002));
    }

    #[test]
    fn several_texts_prove_it_where_each_has_forks_around_it() {
        let mut forks = forks();
        // 1000 before. The text has one of two forks during the first reading, …
        let before = forks.count();
        fork(&forks, 0, SECOND);
        fork(&forks, 0, SECOND);
        forks.learn(before, 1001, 2 * SECOND);
        assert_eq!(forks.total(), None);
        // … all during the second, …
        let before = forks.count();
        fork(&forks, 0, 3 * SECOND);
        forks.learn(before, 1003, 4 * SECOND);
        assert_eq!(forks.total(), None);
        // … and none during the third.
        let before = forks.count();
        fork(&forks, 1, 5 * SECOND);
        forks.learn(before, 1003, 6 * SECOND);
        assert_eq!(forks.total(), Some(1004));
    }

    #[test]
    fn a_late_fork_voids_only_the_lower_bound() {
        let mut forks = forks();
        // 1000 before, and one on its way.
        forks.learn(forks.count(), 1001, 2 * SECOND);
        fork(&forks, 0, SECOND);
        // The text of the second reading has the fork that is counted during it.
        let before = forks.count();
        fork(&forks, 0, 3 * SECOND);
        forks.learn(before, 1002, 4 * SECOND);
        assert_eq!(forks.total(), None, "between 1000 and 1001");
        let before = forks.count();
        fork(&forks, 0, 5 * SECOND);
        forks.learn(before, 1002, 6 * SECOND);
        assert_eq!(forks.total(), Some(1003));
    }

    #[test]
    fn the_number_never_runs_backwards() {
        let mut forks = forks();
        // 1000 before, and two during each reading.
        let before = forks.count();
        fork(&forks, 0, SECOND);
        forks.learn(before, 1002, 2 * SECOND);
        assert_eq!(forks.total(), None);
        forks.learn(forks.count(), 1001, 3 * SECOND);
        assert_eq!(forks.total(), Some(1002), "as the text before");
        fork(&forks, 0, 4 * SECOND);
        fork(&forks, 0, 4 * SECOND);
        assert_eq!(forks.total(), Some(1003));
    }

    #[test]
    fn forks_that_the_tracepoint_missed_are_added() {
        let mut forks = forks();
        forks.learn(forks.count(), 1000, SECOND);
        assert_eq!(
            forks.total_after(1003),
            Some(1000),
            "it does not wait forever"
        );
        forks.learn(forks.count(), 1003, 2 * SECOND);
        assert_eq!(forks.total(), Some(1003));
    }
}
