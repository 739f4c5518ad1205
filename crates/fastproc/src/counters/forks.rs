//! The line `processes` of `/proc/stat` (`total_forks`, `kernel/fork.c`) where no symbol leads to it: what the
//! tracepoint `task_newtask` counted since load, on top of what the text had before.
//!
//! `copy_process()` counts a fork first and announces it a little later, and may be preempted in between. So the sum is
//! the kernel's number less the forks that are on their way out of `copy_process()` at this moment; each is counted
//! before `fork()` returns.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use super::mapping::Mapping;

/// How long a fork that the text has may take to be announced: far longer than it needs unless it is preempted.
const PATIENCE: (u32, Duration) = (20, Duration::from_micros(100));

/// The count, and the base it stands on.
#[derive(Debug)]
pub(super) struct Forks {
    counted: Mapping<u64>,
    /// Forks before the first that was counted.
    base: AtomicU64,
    /// The largest sum that was given out: a counter never runs backwards.
    served: AtomicU64,
}

impl Forks {
    pub(super) fn new(counted: Mapping<u64>) -> Self {
        Self {
            counted,
            base: AtomicU64::new(u64::MAX),
            served: AtomicU64::new(0),
        }
    }

    /// Forks announced since load.
    pub(super) fn counted(&self) -> u64 {
        self.counted.load(0)
    }

    /// Forks since boot. Only once a text was compared.
    pub(super) fn total(&self) -> u64 {
        let total = sum(self.base.load(Ordering::Relaxed), self.counted());
        let served = self.served.load(Ordering::Relaxed);
        if total <= served {
            return served;
        }
        total.max(self.served.fetch_max(total, Ordering::Relaxed))
    }

    /// Takes a text's numbers, read after `before` forks had been counted. Returns whether the base is exact now.
    ///
    /// A fork that is counted but not announced makes the difference too large, never too small. It is running or
    /// runnable, so if the reader ran alone and nothing was announced meanwhile, there was none.
    pub(super) fn learn(&self, before: u64, processes: u64, procs_running: u64) -> bool {
        let exact = procs_running <= 1 && self.counted() == before;
        let base = processes.saturating_sub(before);
        if exact {
            self.base.store(base, Ordering::Relaxed);
        } else {
            self.base.fetch_min(base, Ordering::Relaxed);
        }
        exact
    }

    /// The sum, once it has reached what a text had, if it soon does.
    pub(super) fn total_after(&self, processes: u64) -> u64 {
        for _ in 0..PATIENCE.0 {
            if self.total() >= processes {
                break;
            }
            thread::sleep(PATIENCE.1);
        }
        self.total()
    }
}

/// Before a text was compared there is no base, and nothing to give out.
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

    /// Anonymous memory in the place of the map's.
    fn forks() -> Forks {
        let file = rustix::fs::memfd_create("forks", rustix::fs::MemfdFlags::CLOEXEC)
            .expect("memory can be had");
        rustix::fs::ftruncate(&file, rustix::param::page_size() as u64).expect("it grows");
        Forks::new(Mapping::new(&file, 1).expect("it can be mapped"))
    }

    #[test]
    fn a_fork_on_its_way_is_not_taken_for_an_old_one() {
        let forks = forks();
        // 1000 before; one is counted by the kernel and not announced.
        assert!(!forks.learn(0, 1001, 2));
        assert_eq!(forks.total(), 1001);
        forks.counted.store(0, 1);
        assert_eq!(forks.total(), 1002, "one too many: it was counted twice");
        assert!(forks.learn(1, 1001, 1));
        // What was given out stands, until the kernel's number passes it.
        assert_eq!(forks.total(), 1002);
        forks.counted.store(0, 5);
        assert_eq!(forks.total(), 1005);
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
        assert_eq!(forks.total_after(1003), 1000, "it does not wait for ever");
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
