//! Processes that exited in the current interval, with what they did in it.

use fastproc::{
    Baseline, Snapshot,
    difference::{Change, Cost, Counter},
    exits::Exit,
    record::Record,
};

/// The most processes to show; beyond it, those with the least CPU time are only counted.
const MOST: usize = 1024;

/// An exited process.
#[derive(Clone, Debug)]
pub struct ExitedProcess {
    exit: Exit,
    record: Record,
    cost: Cost,
}

impl ExitedProcess {
    /// What it did in the interval.
    pub fn change(&self) -> Change<'_> {
        self.cost.change(&self.exit, &self.record)
    }
}

/// The processes that exited between the last two snapshots.
#[derive(Clone, Debug, Default)]
pub struct Exited {
    processes: Vec<ExitedProcess>,
    /// The number of exits; `None` if exits are not recorded.
    pub count: Option<u64>,
    /// The number of exits whose records were lost.
    pub lost: u64,
}

impl Exited {
    /// Stores the exits of a snapshot.
    pub fn look(&mut self, before: Option<&Baseline>, now: &Snapshot<'_>) {
        self.processes.clear();
        self.count = now.exits().map(|exits| exits.len() as u64);
        self.lost = now.stats().lost_exits;
        let used = |cost: &Cost| cost.growth(Counter::Run).unwrap_or(0);
        let before = before.into_iter();
        let mut ended: Vec<_> = before.flat_map(|before| before.ended(now)).collect();
        if ended.len() > MOST {
            ended.select_nth_unstable_by_key(MOST, |ended| std::cmp::Reverse(used(&ended.cost)));
            ended.truncate(MOST);
        }
        self.processes
            .extend(ended.iter().map(|ended| ExitedProcess {
                exit: *ended.exit,
                record: ended.exit.to_record(),
                cost: ended.cost,
            }));
    }

    /// The processes to show.
    pub fn iter(&self) -> impl Iterator<Item = &ExitedProcess> {
        self.processes.iter()
    }
}
