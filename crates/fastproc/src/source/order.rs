//! The processes of a walk in the order of their pids, kept from one snapshot to the next.

use crate::{
    snapshot::{Slot, kept::Number},
    source::bpf::IndexEntry,
};

/// The place of each process.
///
/// Few processes start or end within a second. While the walk meets the same pids in the same places, the order stays
/// valid, and a snapshot reads one word for each process.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// By pid.
    pub(crate) slots: Vec<Slot>,
    /// Pids in the order of the walk. Empty if the next walk cannot be compared with this one.
    walked: Vec<u32>,
    /// For each place of the walk, the position of its process in the order of pids.
    positions: Vec<u32>,
    /// Whether the walk met a pid twice. Then one of its records is left out.
    met_twice: bool,
    /// Whether the last snapshot was completed. Only then is it known which records have changed since.
    complete: bool,
}

impl Order {
    /// Starts a new order.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.walked.clear();
    }

    /// Begins a snapshot, which may fail. Returns whether the last one was completed.
    pub(crate) fn begin(&mut self) -> bool {
        std::mem::replace(&mut self.complete, false)
    }

    /// Completes the snapshot. Returns its number; `NONE` if it lacks a record of the walk.
    pub(crate) fn complete(&mut self) -> Number {
        self.complete = true;
        if self.met_twice {
            Number::NONE
        } else {
            Number::next()
        }
    }

    /// Whether this walk met the same processes in the same places, and none was torn.
    pub(crate) fn is_same_walk(&self, index: &[u64]) -> bool {
        let entries = index.iter().map(|&entry| IndexEntry(entry));
        self.walked.len() == index.len()
            && entries
                .zip(&self.walked)
                .all(|(entry, &pid)| entry.pid() == pid && !entry.is_torn())
    }

    /// Sorts the slots. Remembers the walk, unless a process was torn, met twice, or read from `/proc`.
    pub(crate) fn settle(&mut self, index: &[u64]) {
        self.slots.sort_unstable();
        let all = self.slots.len();
        self.slots.dedup_by_key(|slot| slot.pid);
        self.met_twice = all != self.slots.len();
        let entries = index.iter().map(|&entry| IndexEntry(entry));
        let whole = entries.clone().all(|entry| !entry.is_torn());
        let met = entries.clone().filter(|entry| !entry.is_free()).count();
        if whole && all == self.slots.len() && all == met {
            self.walked.extend(entries.map(IndexEntry::pid));
        }
    }

    /// Computes the positions. Call it when all slots are present.
    pub(crate) fn number(&mut self, walked: usize) {
        self.positions.clear();
        self.positions.resize(walked, 0);
        for (position, slot) in self.slots.iter().enumerate() {
            if let Some(at) = slot.in_walk() {
                self.positions[at] = position as u32;
            }
        }
    }

    /// The position in the order of pids of the process at this place of the walk.
    pub(crate) fn position(&self, at: usize) -> usize {
        self.positions[at] as usize
    }
}
