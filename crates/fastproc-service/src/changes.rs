//! Which records have not changed since a walk, so that a buffer of that walk need not be written completely.

use fastproc::{Snapshot, difference::PerProcess};

/// The generation of the walk in which each record changed last.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    changed: PerProcess<u64>,
    /// All records have kept their places since this generation.
    placed: u64,
}

impl Changes {
    /// Adds the snapshot of this generation, which is greater than all before.
    pub(crate) fn update(&mut self, snapshot: &Snapshot<'_>, generation: u64) {
        self.changed.update(snapshot, |_| generation);
        if !self.changed.has_same_pids() {
            self.placed = generation;
        }
    }

    /// The generation in which the record at this place changed last.
    pub(crate) fn generation(&self, place: usize) -> u64 {
        self.changed.values().get(place).map_or(u64::MAX, |of| *of)
    }

    /// Whether all records have kept their places since this generation.
    pub(crate) fn kept_places(&self, since: u64) -> bool {
        self.placed <= since
    }

    /// For each place, whether its record is the same as in that generation.
    pub(crate) fn since(&self, generation: Option<u64>) -> impl Fn(usize) -> bool {
        let generation = generation.filter(|&generation| self.kept_places(generation));
        move |place| generation.is_some_and(|of| self.generation(place) <= of)
    }
}
