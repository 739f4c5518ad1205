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
    /// For each place of the walk, which process it is by pid.
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

    /// Sorts the slots, and remembers the walk if they are its own: none torn, met twice or come from elsewhere.
    pub(crate) fn settle(&mut self, index: &[u64]) {
        self.slots.sort_unstable();
        let all = self.slots.len();
        self.slots.dedup_by_key(|slot| slot.pid);
        let whole = index.iter().all(|&entry| !IndexEntry(entry).is_torn());
        if whole && all == self.slots.len() && all == index.len() {
            self.walked
                .extend(index.iter().map(|&entry| IndexEntry(entry).pid()));
        }
    }

    /// Finds out the positions, once all slots are there.
    pub(crate) fn number(&mut self, walked: usize) {
        self.positions.clear();
        self.positions.resize(walked, 0);
        for (position, slot) in self.slots.iter().enumerate() {
            if let Some(at) = slot.in_walk() {
                self.positions[at] = position as u32;
            }
        }
    }

    /// Which process, by pid, stands at this place of the walk.
    pub(crate) fn position(&self, at: usize) -> usize {
        self.positions[at] as usize
    }
}
