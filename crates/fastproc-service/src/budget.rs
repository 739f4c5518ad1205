//! How much walking the readers of a user may cause: walks that they cause are not on their own account.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

const WINDOW: Duration = Duration::from_secs(1);

/// CPU time that this thread has used.
pub(crate) fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// What was walked for whom.
#[derive(Debug)]
pub(crate) struct Budget {
    /// CPU time that walks for one user may take of each [`WINDOW`], however busy the machine is. Root has no limit.
    limit: Duration,
    users: HashMap<u32, (Instant, Duration)>,
}

impl Budget {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            users: HashMap::new(),
        }
    }

    /// Whether this user's readers may cause another walk.
    pub(crate) fn allows(&self, uid: u32, now: Instant) -> bool {
        let spent = self.users.get(&uid);
        uid == 0
            || spent.is_none_or(|&(since, spent)| {
                now.saturating_duration_since(since) >= WINDOW || spent < self.limit
            })
    }

    /// A walk took so long, and was for these users.
    pub(crate) fn spend(&mut self, uids: &[u32], took: Duration, now: Instant) {
        self.users
            .retain(|_, (since, _)| now.saturating_duration_since(*since) < WINDOW);
        for &uid in uids {
            let (_, spent) = self.users.entry(uid).or_insert((now, Duration::ZERO));
            *spent += took / uids.len() as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(500);

    #[test]
    fn a_user_is_walked_for_so_long_and_others_are_too() {
        let mut budget = Budget::new(LIMIT);
        let now = Instant::now();
        let walk = LIMIT / 10;
        let walks = (0..100).take_while(|_| {
            let allowed = budget.allows(7, now);
            budget.spend(&[7], walk, now);
            allowed
        });
        assert_eq!(walks.count(), 10);
        assert!(budget.allows(8, now));
        budget.spend(&[0], 100 * LIMIT, now);
        assert!(budget.allows(0, now));
        assert!(budget.allows(7, now + WINDOW));
    }

    #[test]
    fn those_who_wait_together_share_what_it_takes() {
        let mut budget = Budget::new(LIMIT);
        let now = Instant::now();
        budget.spend(&[7, 8], LIMIT, now);
        assert!(budget.allows(7, now) && budget.allows(8, now));
        budget.spend(&[7, 8], LIMIT, now);
        assert!(!budget.allows(7, now) && !budget.allows(8, now));
    }
}
