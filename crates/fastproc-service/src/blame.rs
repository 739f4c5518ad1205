//! Who was refused and who has held up work: counted for the status, and told to a log.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use serde::Serialize;

/// Lines for one user and reason, and all lines, are so far apart.
const APART: Duration = Duration::from_secs(60);
const ALL_APART: Duration = Duration::from_millis(500);
/// Users that are counted. Who comes later is in the sums alone.
const MOST_USERS: usize = 256;

/// What a user is blamed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// It asked for more work than it may have done.
    OverBudget,
    /// Its readers hold as much memory as they may.
    OverMemory,
    /// Memory of one of its processes could not be read in time.
    Blocked,
    /// Its readers asked for too many connections, or asked without reading answers.
    CutOff,
}

impl Reason {
    const fn text(self) -> &'static str {
        match self {
            Self::OverBudget => {
                "has had its share of work done; its readers are told to read /proc"
            }
            Self::OverMemory => {
                "holds as many snapshots as it may; its readers are told to read /proc"
            }
            Self::Blocked => {
                "has a process whose memory could not be read in time; its command lines are left to readers"
            }
            Self::CutOff => "has too many connections, or does not read answers; they are closed",
        }
    }
}

/// How often.
#[expect(clippy::struct_field_names, reason = "names in the status")]
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    over_budget_total: u64,
    over_memory_total: u64,
    blocked_total: u64,
    cut_off_total: u64,
}

impl Counts {
    fn add(&mut self, why: Reason) {
        *match why {
            Reason::OverBudget => &mut self.over_budget_total,
            Reason::OverMemory => &mut self.over_memory_total,
            Reason::Blocked => &mut self.blocked_total,
            Reason::CutOff => &mut self.cut_off_total,
        } += 1;
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Blame {
    log: Option<fn(&str)>,
    pub(crate) sum: Counts,
    pub(crate) users: BTreeMap<u32, Counts>,
    told: HashMap<(u32, Reason), Instant>,
    last: Option<Instant>,
}

impl Blame {
    pub(crate) fn new(log: Option<fn(&str)>) -> Self {
        Self {
            log,
            ..Self::default()
        }
    }

    /// Counts it for a user. Where nobody knows whose it is, only the sum grows.
    pub(crate) fn add(&mut self, uid: Option<u32>, why: Reason) {
        self.sum.add(why);
        let Some(uid) = uid else { return };
        let known = self.users.len() < MOST_USERS || self.users.contains_key(&uid);
        if known {
            self.users.entry(uid).or_default().add(why);
        }
        let Some(log) = self.log else { return };
        let now = Instant::now();
        let is_due = |at: &Instant, apart| now.saturating_duration_since(*at) >= apart;
        if !self.last.is_none_or(|last| is_due(&last, ALL_APART)) {
            return;
        }
        self.told.retain(|_, at| !is_due(at, APART));
        if let std::collections::hash_map::Entry::Vacant(told) = self.told.entry((uid, why)) {
            told.insert(now);
            self.last = Some(now);
            log(&format!("user {uid} {}", why.text()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static LINES: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn a_flood_is_counted_and_told_once() {
        let mut blame = Blame::new(Some(|line| {
            assert!(line.starts_with("user 7 has had its share"));
            LINES.fetch_add(1, Ordering::Relaxed);
        }));
        for _ in 0..100_000 {
            blame.add(Some(7), Reason::OverBudget);
        }
        assert_eq!(LINES.load(Ordering::Relaxed), 1);
        assert_eq!(blame.users[&7].over_budget_total, 100_000);
        let mut silent = Blame::new(None);
        for uid in 0..10_000 {
            silent.add(Some(uid), Reason::Blocked);
        }
        silent.add(None, Reason::Blocked);
        assert_eq!(silent.users.len(), MOST_USERS);
        assert_eq!(silent.sum.blocked_total, 10_001);
        assert_eq!(
            silent.users[&0].blocked_total, 1,
            "root is not blamed for others"
        );
    }
}
