//! Processes that ended between two snapshots.

use super::{Change, Counter, Entry, Growth, Marks, TaskCounters};
use crate::records::record::is_same_start;
use crate::{
    records::record::Record,
    snapshot::{Snapshot, exit::Exit, process::Process},
};

/// No exit arrives later than this after its process has left the list of tasks.
const LATEST_NS: u64 = 120_000_000_000;

/// A process that ended between two snapshots, and what it did since the earlier one.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ended<'a> {
    /// Its exit, with the final values.
    pub exit: &'a Exit,
    /// Whether the earlier snapshot did not have it: its whole life lies between the two.
    pub born: bool,
    /// What it did.
    pub cost: Cost,
}

/// What an exited process did since the earlier snapshot, for a caller that keeps it with a copy of the exit.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    born: bool,
    growth: Growth,
    elapsed_ns: Option<u64>,
}

impl<'a> Ended<'a> {
    pub(super) fn new(exit: &'a Exit, known: Option<&Marks>, elapsed_ns: u64) -> Self {
        let marks = known.copied();
        let marks = marks.unwrap_or_else(|| Marks::at_start(exit.start_ns));
        Self {
            exit,
            born: known.is_none(),
            cost: Cost {
                born: known.is_none(),
                growth: marks.growth(&TaskCounters::from_exit(exit), u64::MAX),
                elapsed_ns: Some(elapsed_ns.max(1)),
            },
        }
    }

    /// What it did in its whole life. Shares and rates are unknown if its lifetime is unknown.
    pub fn whole(exit: &'a Exit) -> Self {
        let lifetime = exit.lifetime();
        let ended = Self::new(exit, None, 0);
        Self {
            cost: Cost {
                elapsed_ns: lifetime.map(|lifetime| lifetime.as_nanos().max(1) as u64),
                ..ended.cost
            },
            ..ended
        }
    }

    /// How much a counter has grown since the earlier snapshot. `None` for context switches: the exit has the sum of
    /// all threads, and the snapshot only those of the leading thread.
    pub fn growth(&self, counter: Counter) -> Option<u64> {
        self.cost.growth(counter)
    }

    /// The change, in the form of a running process. `record` is the result of [`Exit::to_record`].
    ///
    /// Shares and rates are over the time between the snapshots, not over the part of it in which the process ran. So
    /// the shares of all running and exited processes of a snapshot add up to the CPU time of the machine.
    pub fn change(&self, record: &'a Record) -> Change<'a> {
        self.cost.change(self.exit, record)
    }
}

impl Cost {
    /// See [`Ended::growth`].
    pub fn growth(&self, counter: Counter) -> Option<u64> {
        self.growth.get(counter)
    }

    /// See [`Ended::change`]; `exit` must be of the same process.
    pub fn change<'a>(&self, exit: &'a Exit, record: &'a Record) -> Change<'a> {
        let rate = |counter| {
            let elapsed_ns = self.elapsed_ns?;
            let grown = self.growth(counter);
            grown.map(|grown| grown as f64 * 1e9 / elapsed_ns as f64)
        };
        let share = |counter| rate(counter).map(|ns: f64| ns / 1e9);
        Change {
            process: Process::new(record, &[]),
            thread: None,
            exit: Some(exit),
            born: self.born,
            cpu_ns: self.growth(Counter::Run),
            cpu_share: share(Counter::Run),
            wait_share: share(Counter::RunDelay),
            user_share: share(Counter::User),
            system_share: share(Counter::System),
            minflt_per_second: rate(Counter::MinorFaults),
            majflt_per_second: rate(Counter::MajorFaults),
            read_bytes_per_second: rate(Counter::ReadBytes),
            write_bytes_per_second: rate(Counter::WriteBytes),
        }
    }
}

/// Processes that have left the snapshots, and whose exits have not arrived yet. What they did before is subtracted
/// from their exits.
#[derive(Clone, Debug, Default)]
pub(super) struct AwaitingExit {
    /// In the order of the pids, with the time when they left.
    entries: Vec<(Entry, u64)>,
    exits: Vec<(u32, u64)>,
}

impl AwaitingExit {
    /// Continues with the next snapshot: `before` and `after` are the processes of the two.
    pub(super) fn follow(
        &mut self,
        earlier: &Self,
        before: &[Entry],
        after: &[Entry],
        now: &Snapshot<'_>,
    ) {
        self.entries.clear();
        let Some(exits) = now.exits() else {
            return;
        };
        self.entries.extend_from_slice(&earlier.entries);
        let now_ns = now.stats().kernel_boottime_ns();
        let mut after = after.iter().peekable();
        for &entry in before {
            while after.next_if(|other| other.id < entry.id).is_some() {}
            let is_there = after.peek().is_some_and(|other| {
                other.id == entry.id && is_same_start(other.start_ns, entry.start_ns)
            });
            if !is_there {
                self.entries.push((entry, now_ns));
            }
        }
        self.exits.clear();
        self.exits
            .extend(exits.iter().map(|exit| (exit.pid, exit.start_ns)));
        self.exits.sort_unstable();
        let Self { entries, exits } = self;
        entries.retain(|(entry, since_ns)| {
            let at = exits.partition_point(|&(pid, _)| pid < entry.id);
            let mut of_pid = exits[at..].iter().take_while(|exit| exit.0 == entry.id);
            !of_pid.any(|exit| is_same_start(exit.1, entry.start_ns))
                && now_ns.saturating_sub(*since_ns) < LATEST_NS
        });
        entries.sort_unstable_by_key(|(entry, _)| entry.id);
    }

    pub(super) fn find(&self, exit: &Exit) -> Option<&Entry> {
        let at = self
            .entries
            .partition_point(|(entry, _)| entry.id < exit.pid);
        let entries = self.entries[at..].iter().map(|(entry, _)| entry);
        entries
            .take_while(|entry| entry.id == exit.pid)
            .find(|entry| is_same_start(entry.start_ns, exit.start_ns))
    }
}
