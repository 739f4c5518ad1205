//! Users who were refused or who held up work: counted for the status, and logged. Also logs why the service fails.

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde::Serialize;

/// The least time between two log lines for one user and reason, and between any two.
const APART: Duration = Duration::from_secs(60);
const ALL_APART: Duration = Duration::from_millis(500);
/// The most reasons of failures that are logged in the first of these times.
const MOST_FAILURES: usize = 8;
/// Users that are counted separately. Later ones are only in the sums.
const MOST_USERS: usize = 256;
/// Number of [`Reason`]s.
const REASONS: usize = Reason::NAMES.len();

/// What a user is blamed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// It has used up its share of CPU time.
    OverBudget,
    /// Its readers hold as much memory as they may.
    OverMemory,
    /// Memory of one of its processes could not be read in time.
    Blocked,
    /// Its readers opened too many connections, or sent requests without reading the answers.
    CutOff,
}

impl Reason {
    /// In the order of the variants.
    pub(crate) const NAMES: [&str; 4] = ["over_budget", "over_memory", "blocked", "cut_off"];

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

/// Events by reason.
#[expect(clippy::struct_field_names, reason = "names in the status")]
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    over_budget_total: u64,
    over_memory_total: u64,
    blocked_total: u64,
    cut_off_total: u64,
}

impl From<[u64; REASONS]> for Counts {
    fn from(counts: [u64; REASONS]) -> Self {
        let [
            over_budget_total,
            over_memory_total,
            blocked_total,
            cut_off_total,
        ] = counts;
        Self {
            over_budget_total,
            over_memory_total,
            blocked_total,
            cut_off_total,
        }
    }
}

/// By reason. Only the thread of the service adds to them.
#[derive(Debug, Default)]
struct Counters([AtomicU64; REASONS]);

impl Counters {
    fn add(&self, why: Reason) {
        self.0[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> [u64; REASONS] {
        self.0.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

/// Counts that other threads read, without a lock, while they grow.
#[derive(Debug)]
pub(crate) struct Refused {
    /// An entry keeps its user.
    users: [(AtomicU32, Counters); MOST_USERS],
    taken: AtomicUsize,
    /// Events of users without an entry, and events whose user is unknown.
    others: Counters,
}

impl Default for Refused {
    fn default() -> Self {
        Self {
            users: std::array::from_fn(|_| Default::default()),
            taken: AtomicUsize::new(0),
            others: Counters::default(),
        }
    }
}

impl Refused {
    /// The counts of each user; `None` stands for all others.
    pub(crate) fn read(&self) -> impl Iterator<Item = (Option<u32>, [u64; REASONS])> {
        let users = self.users.iter().take(self.taken.load(Ordering::Acquire));
        let users = users.map(|(uid, counts)| (Some(uid.load(Ordering::Relaxed)), counts.read()));
        users.chain(std::iter::once_with(|| (None, self.others.read())))
    }
}

/// Counts, and what was logged when.
#[derive(Debug, Default)]
pub(crate) struct UserEvents {
    log: Option<fn(&str)>,
    refused: Arc<Refused>,
    /// The index of each user's counts.
    places: HashMap<u32, usize>,
    told: HashMap<(u32, Reason), Instant>,
    last: Option<Instant>,
    failures: HashMap<String, Instant>,
}

/// An error with its causes, in one line: the verifier of BPF programs has more to say.
pub(crate) fn chain(error: &dyn Error) -> String {
    let text = fastproc::error_chain(error);
    text.lines().next().unwrap_or_default().to_owned()
}

impl UserEvents {
    pub(crate) fn new(log: Option<fn(&str)>, refused: Arc<Refused>) -> Self {
        Self {
            log,
            refused,
            ..Self::default()
        }
    }

    /// Sums over all users, with the events whose user is unknown.
    pub(crate) fn sum(&self) -> Counts {
        let mut sum = [0; REASONS];
        for (_, counts) in self.refused.read() {
            for (sum, count) in sum.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        sum.into()
    }

    pub(crate) fn users(&self) -> BTreeMap<u32, Counts> {
        let all = self.refused.read();
        all.filter_map(|(uid, counts)| Some((uid?, counts.into())))
            .collect()
    }

    fn counters(&mut self, uid: Option<u32>) -> &Counters {
        let Some(uid) = uid else {
            return &self.refused.others;
        };
        if let Some(&place) = self.places.get(&uid) {
            return &self.refused.users[place].1;
        }
        let place = self.places.len();
        let Some((user, counters)) = self.refused.users.get(place) else {
            return &self.refused.others;
        };
        self.places.insert(uid, place);
        user.store(uid, Ordering::Relaxed);
        self.refused.taken.store(place + 1, Ordering::Release);
        counters
    }

    /// Counts an event of a user. If the user is unknown, only the sum grows.
    pub(crate) fn add(&mut self, uid: Option<u32>, why: Reason) {
        self.counters(uid).add(why);
        let (Some(uid), Some(log)) = (uid, self.log) else {
            return;
        };
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

    /// Logs why the service fails. The same text is not logged again for a while.
    pub(crate) fn failed(&mut self, text: &str) {
        let now = Instant::now();
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < APART;
        self.failures.retain(|_, at| is_recent(at));
        let has_room = self.failures.len() < MOST_FAILURES;
        if let Some(log) = self.log
            && has_room
            && !self.failures.contains_key(text)
        {
            self.failures.insert(text.to_owned(), now);
            log(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LINES: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn a_failure_is_told_once_with_its_causes() {
        static TOLD: AtomicUsize = AtomicUsize::new(0);
        #[derive(Debug, thiserror::Error)]
        #[error("the service failed")]
        struct Failed(#[source] std::io::Error);
        let log = |line: &str| {
            assert_eq!(line, "the service failed: it broke");
            TOLD.fetch_add(1, Ordering::Relaxed);
        };
        let text = chain(&Failed(std::io::Error::other("it broke")));
        let mut blame = UserEvents::new(Some(log), Arc::default());
        for _ in 0..1000 {
            blame.failed(&text);
        }
        assert_eq!(TOLD.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_flood_is_counted_and_told_once() {
        let log = |line: &str| {
            assert!(line.starts_with("user 7 has had its share"));
            LINES.fetch_add(1, Ordering::Relaxed);
        };
        let mut blame = UserEvents::new(Some(log), Arc::default());
        for _ in 0..100_000 {
            blame.add(Some(7), Reason::OverBudget);
        }
        assert_eq!(LINES.load(Ordering::Relaxed), 1);
        assert_eq!(blame.users()[&7].over_budget_total, 100_000);
        let mut silent = UserEvents::new(None, Arc::default());
        for uid in 0..10_000 {
            silent.add(Some(uid), Reason::Blocked);
        }
        silent.add(None, Reason::Blocked);
        assert_eq!(silent.users().len(), MOST_USERS);
        assert_eq!(silent.sum().blocked_total, 10_001);
        assert_eq!(
            silent.users()[&0].blocked_total,
            1,
            "root is not blamed for others"
        );
        assert_eq!(silent.refused.read().count(), MOST_USERS + 1);
    }
}
