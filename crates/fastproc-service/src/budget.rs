//! How much CPU time the service may use for each user. The kernel charges that time to the service, not to its
//! readers.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Unused time of a user is kept for this long.
const WINDOW: Duration = Duration::from_secs(1);
/// The largest debt, in budgets.
const MOST_DEBT: i64 = 10;

/// CPU time that this thread has used.
pub(crate) fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// What is left for a user, in nanoseconds; negative after work that took longer than expected.
#[derive(Clone, Copy, Debug)]
struct Account {
    left: i64,
    at: Instant,
}

/// The accounts of all users. Root has no limit.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Share of one CPU.
    share: f64,
    users: HashMap<u32, Account>,
}

impl Budget {
    pub(crate) fn new(share: f64) -> Self {
        Self {
            share,
            users: HashMap::new(),
        }
    }

    fn full(&self) -> i64 {
        nanoseconds(WINDOW.mul_f64(self.share))
    }

    fn left(&self, uid: u32, now: Instant) -> i64 {
        let full = self.full();
        self.users.get(&uid).map_or(full, |account| {
            let since = now.saturating_duration_since(account.at);
            let earned = nanoseconds(since.mul_f64(self.share));
            account.left.saturating_add(earned).min(full)
        })
    }

    /// Whether this user may have work done that is expected to take so long. Work that takes more than the whole
    /// budget is done when nearly none of it is used, since identifying the user has been charged by then.
    pub(crate) fn allows(&self, uid: u32, expected: Duration, now: Instant) -> bool {
        let most = self.full() - self.full() / 8;
        uid == 0 || self.left(uid, now) >= nanoseconds(expected).clamp(1, most.max(1))
    }

    /// Charges work to this user.
    pub(crate) fn spend(&mut self, uid: u32, took: Duration, now: Instant) {
        if uid == 0 {
            return;
        }
        // A stalled virtual CPU counts as work, so the debt has a limit.
        let least = self.full().saturating_mul(-MOST_DEBT);
        let left = (self.left(uid, now) - nanoseconds(took)).max(least);
        // A full account need not be stored.
        if self.users.len() > 64 {
            let full = self.users.keys().copied();
            let full: Vec<u32> = full
                .filter(|&uid| self.left(uid, now) == self.full())
                .collect();
            for uid in full {
                self.users.remove(&uid);
            }
        }
        self.users.insert(uid, Account { left, at: now });
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Duration = Duration::from_millis(500);

    #[test]
    fn a_user_is_worked_for_so_long_and_others_are_too() {
        let mut budget = Budget::new(0.5);
        let now = Instant::now();
        let work = HALF / 10;
        let works = (0..100).take_while(|_| {
            let allowed = budget.allows(7, work, now);
            budget.spend(7, work, now);
            allowed
        });
        assert_eq!(works.count(), 10);
        assert!(budget.allows(8, HALF, now));
        budget.spend(0, 100 * HALF, now);
        assert!(budget.allows(0, HALF, now));
        // It has used eleven tenths.
        assert!(!budget.allows(7, work, now + WINDOW / 10));
        assert!(budget.allows(7, work, now + 3 * WINDOW / 10));
        assert!(budget.allows(7, HALF, now + 2 * WINDOW));
    }

    #[test]
    fn work_beyond_the_budget_is_not_begun_until_the_budget_is_full() {
        let mut budget = Budget::new(0.5);
        let now = Instant::now();
        budget.spend(7, HALF / 2, now);
        assert!(budget.allows(7, HALF / 2, now) && !budget.allows(7, HALF * 2 / 3, now));
        assert!(budget.allows(8, 100 * HALF, now));
        // It pays for what it took, up to ten budgets.
        budget.spend(8, 100 * HALF, now);
        assert!(!budget.allows(8, Duration::ZERO, now + 9 * WINDOW));
        assert!(!budget.allows(8, 100 * HALF, now + 10 * WINDOW));
        assert!(budget.allows(8, 100 * HALF, now + 11 * WINDOW));
    }

    #[test]
    fn accounts_that_are_full_are_forgotten() {
        let mut budget = Budget::new(0.5);
        let now = Instant::now();
        for uid in 1..10_000 {
            budget.spend(uid, HALF, now + WINDOW * uid);
        }
        assert!(budget.users.len() < 100);
    }
}
