//! Which records have not changed since a walk, so that a buffer that has them from then need not be written again.

use fastproc::{Snapshot, difference::PerProcess};

/// When each record changed last, by the generations of walks.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    changed: PerProcess<u64>,
    /// Since this generation all records are in the same places.
    placed: u64,
}

impl Changes {
    /// Takes in the snapshot of this generation. Each later one is greater.
    pub(crate) fn update(&mut self, snapshot: &Snapshot<'_>, generation: u64) {
        self.changed.update(snapshot, |_| generation);
        if !self.changed.has_same_pids() {
            self.placed = generation;
        }
    }

    /// For each place, whether its record is the one that it was in that generation.
    pub(crate) fn since(&self, generation: Option<u64>) -> impl Fn(usize) -> bool {
        let changed = match generation {
            Some(generation) if self.placed <= generation => self.changed.values(),
            _ => &[],
        };
        move |place| changed.get(place).copied() <= generation && place < changed.len()
    }
}
