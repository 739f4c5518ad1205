//! Processes that have ended: shown for a while, with what they cost.

use fastproc::{
    Baseline, Change, Process, Snapshot,
    difference::{Cost, Counter},
    exits::Exit,
    record::Record,
};

/// How long they are shown.
const SHOWN_NS: u64 = 3_000_000_000;
/// Of more than these, those that used least CPU are not shown; they are counted.
const MOST: usize = 256;

/// One of them.
#[derive(Clone, Debug)]
pub struct Faded {
    exit: Exit,
    record: Record,
    cost: Cost,
    seen_ns: u64,
}

impl Faded {
    /// What it did in the interval in which it ended.
    pub fn change(&self) -> Change<'_> {
        self.cost.change(&self.exit, &self.record)
    }

    /// The process as it was in the end.
    pub fn process(&self) -> Process<'_> {
        Process::new(&self.record, &[])
    }
}

/// Those of the last seconds.
#[derive(Clone, Debug, Default)]
pub struct Fading {
    faded: Vec<Faded>,
    now_ns: u64,
    /// Processes that ended since the last look; `None`: that is not recorded.
    pub ended: Option<u64>,
    /// How many more there were, of which nothing is known.
    pub lost: u64,
}

impl Fading {
    /// Takes a look.
    pub(super) fn look(&mut self, before: Option<&Baseline>, now: &Snapshot<'_>) {
        self.now_ns = now.stats().kernel_end_ns();
        let oldest_ns = self.now_ns.saturating_sub(SHOWN_NS);
        self.faded.retain(|faded| faded.seen_ns >= oldest_ns);
        self.ended = now.exits().map(|exits| exits.len() as u64);
        self.lost = now.stats().lost_exits;
        let used = |cost: &Cost| cost.growth(Counter::Run).unwrap_or(0);
        let mut ended: Vec<_> = before
            .into_iter()
            .flat_map(|before| before.ended(now))
            .collect();
        if ended.len() > MOST {
            ended.select_nth_unstable_by_key(MOST, |ended| std::cmp::Reverse(used(&ended.cost)));
            ended.truncate(MOST);
        }
        let seen_ns = self.now_ns;
        self.faded.extend(ended.iter().map(|ended| Faded {
            exit: *ended.exit,
            record: ended.exit.to_record(),
            cost: ended.cost,
            seen_ns,
        }));
        if self.faded.len() > MOST {
            // The oldest go first.
            self.faded.drain(..self.faded.len() - MOST);
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.faded.clear();
    }

    /// Those that are shown.
    pub fn iter(&self) -> impl Iterator<Item = &Faded> {
        self.faded.iter()
    }

    /// Those that ended since the last look: what others cost was added up before.
    pub fn fresh(&self) -> impl Iterator<Item = &Faded> {
        self.faded
            .iter()
            .filter(|faded| faded.seen_ns == self.now_ns)
    }
}
