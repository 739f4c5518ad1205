//! The line `processes` of `/proc/stat` (`total_forks`, `kernel/fork.c`), if no symbol leads to it: the forks that the
//! tracepoint `task_newtask` has counted since load, plus those that the text had before.
//!
//! `copy_process()` counts a fork first and calls the tracepoint a little later, and may be preempted in between. So
//! the sum is the kernel's number less the forks that are in between at this moment; each is counted before `fork()`
//! returns. If a fork is already in the first text and reaches the tracepoint later, it would be counted twice. So the
//! text's own number is used until the base is proven.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use super::clock;
use crate::kernel::Mapping;

/// How often to wait for the tracepoint of a fork that the text has: much longer than it needs unless it is preempted.
const RETRIES: u32 = 20;
/// The time between two checks.
const RETRY_AFTER: Duration = Duration::from_micros(100);

/// After this time a fork that was in between has reached the tracepoint. On a busy machine, one of low priority may
/// take a second.
const PROVEN_AFTER_NS: u64 = 10_000_000_000;

/// Words from one CPU's count to the next, one cache line apart.
pub(super) const LINE: usize = 8;

/// The counts of all CPUs, and the base to which they are added.
#[derive(Debug)]
pub(super) struct Forks {
    counted: Mapping<u64>,
    cpus: usize,
    /// Forks before the first that was counted.
    base: AtomicU64,
    /// When the first text was read, by the monotonic clock; 0 if not yet.
    first_look_ns: AtomicU64,
    /// Whether the base can no longer contain a fork that was in between.
    proven: AtomicBool,
    /// The largest sum that was returned, because a counter never runs backwards.
    served: AtomicU64,
}

impl Forks {
    pub(super) fn new(counted: Mapping<u64>, cpus: u32) -> Self {
        Self {
            counted,
            cpus: cpus as usize,
            base: AtomicU64::new(u64::MAX),
            first_look_ns: AtomicU64::new(0),
            proven: AtomicBool::new(false),
            served: AtomicU64::new(0),
        }
    }

    /// Forks counted by the tracepoint since load.
    pub(super) fn counted(&self) -> u64 {
        (0..self.cpus)
            .map(|cpu| self.counted.load(cpu * LINE))
            .sum()
    }

    /// Whether [`total`](Self::total) may be returned.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    /// Forks since boot. Valid only after a text was compared.
    pub(super) fn total(&self) -> u64 {
        let total = sum(self.base.load(Ordering::Relaxed), self.counted());
        if !self.is_proven() {
            return total;
        }
        let served = self.served.load(Ordering::Relaxed);
        if total <= served {
            return served;
        }
        total.max(self.served.fetch_max(total, Ordering::Relaxed))
    }

    /// Records a number of the text that was returned instead of the sum. Later sums are at least as large.
    pub(super) fn give_out(&self, processes: u64) {
        self.served.fetch_max(processes, Ordering::Relaxed);
    }

    /// Compares with a text that was read after `before` forks had been counted. Returns whether the base is exact now.
    ///
    /// A fork that the kernel has counted but the tracepoint has not makes the difference too large, never too small.
    /// A task of that kind is running or runnable, so if only the reader ran and nothing was counted meanwhile, there was none.
    pub(super) fn learn(&self, before: u64, processes: u64, procs_running: u64) -> bool {
        let exact = procs_running <= 1 && self.counted() == before;
        let base = processes.saturating_sub(before);
        if exact {
            self.base.store(base, Ordering::Relaxed);
        } else {
            self.base.fetch_min(base, Ordering::Relaxed);
        }
        if !self.is_proven() && (exact || self.is_long_known(clock::monotonic_ns())) {
            self.proven.store(true, Ordering::Relaxed);
        }
        exact
    }

    /// Whether the first text is so old that all forks that were in between then have been counted.
    fn is_long_known(&self, now_ns: u64) -> bool {
        let first = self.first_look_ns.compare_exchange(
            0,
            now_ns.max(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        first.is_err_and(|first_ns| now_ns.saturating_sub(first_ns) >= PROVEN_AFTER_NS)
    }

    /// The sum, waiting a moment until it reaches the number of a text.
    pub(super) fn total_after(&self, processes: u64) -> u64 {
        for _ in 0..RETRIES {
            if self.total() >= processes {
                break;
            }
            thread::sleep(RETRY_AFTER);
        }
        self.total()
    }
}

/// Before a text was compared there is no base, and so no number to return.
fn sum(base: u64, counted: u64) -> u64 {
    if base == u64::MAX {
        0
    } else {
        base.wrapping_add(counted)
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
        Forks::new(Mapping::new(&file, 2 * LINE).expect("it can be mapped"), 2)
    }

    #[test]
    fn a_fork_on_its_way_is_not_taken_for_an_old_one() {
        let forks = forks();
        // 1000 before; one more was counted by the kernel but not by the tracepoint.
        assert!(!forks.learn(0, 1001, 2));
        forks.give_out(1001);
        forks.counted.store(0, 1);
        assert_eq!(forks.total(), 1002, "one too many: it was counted twice");
        assert!(!forks.is_proven(), "and so it is not given out");
        assert!(forks.learn(1, 1001, 1));
        assert!(forks.is_proven());
        assert_eq!(forks.total(), 1001);
        forks.counted.store(0, 5);
        assert_eq!(forks.total(), 1005);
    }

    #[test]
    fn time_proves_it_where_others_always_run() {
        let forks = forks();
        assert!(!forks.learn(0, 1001, 2));
        assert!(!forks.is_long_known(clock::monotonic_ns()));
        assert!(forks.is_long_known(clock::monotonic_ns() + PROVEN_AFTER_NS));
    }

    #[test]
    fn the_number_never_runs_backwards() {
        let forks = forks();
        assert!(forks.learn(0, 1000, 1));
        forks.give_out(1001);
        assert_eq!(forks.total(), 1001);
        forks.counted.store(0, 2);
        assert_eq!(forks.total(), 1002);
    }

    #[test]
    fn the_smallest_difference_counts_while_others_run() {
        let forks = forks();
        for processes in [1003, 1001, 1002] {
            assert!(!forks.learn(0, processes, 3));
        }
        assert_eq!(forks.total(), 1001);
    }

    #[test]
    fn what_the_tracepoint_missed_is_made_good() {
        let forks = forks();
        forks.learn(0, 1000, 1);
        assert_eq!(forks.total(), 1000);
        assert_eq!(forks.total_after(1003), 1000, "it does not wait forever");
        assert!(forks.learn(0, 1003, 1));
        assert_eq!(forks.total(), 1003);
    }

    #[test]
    fn a_fork_during_the_read_proves_nothing() {
        let forks = forks();
        forks.counted.store(0, 1);
        assert!(!forks.learn(0, 1001, 1));
        assert_eq!(forks.base.load(Ordering::Relaxed), 1001);
    }
}
