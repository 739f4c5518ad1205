//! The processes of a walk in the order of their pids, kept from one snapshot to the next.

use crate::{snapshot::Slot, source::bpf::IndexEntry};

/// Where each process stands.
///
/// From one second to the next hardly any process comes or goes. While the walk meets the same pids in the same places
/// the order stands, and a snapshot costs the library a look at one word a process.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// By pid.
    pub(crate) slots: Vec<Slot>,
    /// Pids in the order of the walk; empty if that cannot be compared with.
    walked: Vec<u32>,
    /// For each place of the walk, which process of those that were walked it is by pid.
    positions: Vec<u32>,
    /// Whether the last snapshot came to its end: only then is what changed since known.
    complete: bool,
}

impl Order {
    /// Starts a new order.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.walked.clear();
    }

    /// A snapshot begins, and may fail. Returns whether the last one did not.
    pub(crate) fn begin(&mut self) -> bool {
        std::mem::replace(&mut self.complete, false)
    }

    /// The snapshot has come to its end.
    pub(crate) fn complete(&mut self) {
        self.complete = true;
    }

    /// Whether this walk met the same processes in the same places, all of them whole.
    pub(crate) fn stands(&self, index: &[u64]) -> bool {
        let entries = index.iter().map(|&entry| IndexEntry(entry));
        self.walked.len() == index.len()
            && entries
                .zip(&self.walked)
                .all(|(entry, &pid)| entry.pid() == pid && !entry.is_torn())
    }

    /// Sorts the slots, and remembers the walk if all of it was whole.
    pub(crate) fn settle(&mut self, index: &[u64]) {
        self.slots.sort_unstable();
        self.slots.dedup_by_key(|slot| slot.pid);
        if index.iter().all(|&entry| !IndexEntry(entry).is_torn()) {
            self.walked
                .extend(index.iter().map(|&entry| IndexEntry(entry).pid()));
        }
    }

    /// Finds out the positions, once all slots are there.
    pub(crate) fn number(&mut self, walked: usize) {
        self.positions.clear();
        self.positions.resize(walked, 0);
        let walked = self.slots.iter().filter_map(|slot| slot.in_walk());
        for (position, at) in walked.enumerate() {
            self.positions[at] = position as u32;
        }
    }

    /// Which process of those that were walked, by pid, stands at this place of the walk.
    pub(crate) fn position(&self, at: usize) -> usize {
        self.positions[at] as usize
    }
}
