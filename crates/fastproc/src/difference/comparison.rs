//! Changes of single processes, for callers that need those of a few.

use super::{Baseline, Change, Entry, Interval, Subject, TaskCounters};
use crate::snapshot::{ReadTimes, Snapshot, process::Process};

/// A snapshot, compared with the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'b, 'a> {
    before: &'b Baseline,
    now: Snapshot<'a>,
    interval: Interval,
    read_at: ReadTimes,
}

impl<'b, 'a> Comparison<'b, 'a> {
    /// Compares `now` with the snapshot `before`.
    pub fn new(before: &'b Baseline, now: &Snapshot<'a>) -> Self {
        Self {
            before,
            now: *now,
            interval: before.interval(now),
            read_at: now.read_times(),
        }
    }

    /// The process at this place of the later snapshot, if its record is that of the earlier one: then its change is
    /// [`at_rest`](Self::at_rest).
    pub fn resting(&self, place: usize) -> Option<Process<'a>> {
        self.now.kept_since(self.before.number, place)
    }

    /// The change of the process at this place of the later snapshot, as in [`Baseline::changes`].
    pub fn change(&self, place: usize) -> Change<'a> {
        if let Some(process) = self.resting(place) {
            return Self::at_rest(process);
        }
        let subject = Subject::process(self.now.process_at(place), self.read_at.of(place));
        subject.change(self.entry(place, &subject), self.interval)
    }

    /// The change of a process whose record is the same as before. It follows from the record alone.
    pub fn at_rest(process: Process<'a>) -> Change<'a> {
        Change::none(process, TaskCounters::from_process(process).known)
    }

    /// The entry of this process, which mostly has the same place.
    fn entry(&self, place: usize, subject: &Subject<'_>) -> Option<&Entry> {
        let entries = &self.before.processes;
        let here = entries.get(place).filter(|entry| entry.id == subject.id());
        here.filter(|entry| subject.is_of(entry))
            .or_else(|| super::find(entries, subject))
    }
}
