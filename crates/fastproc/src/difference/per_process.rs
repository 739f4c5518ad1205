//! Values that a reader derives from each process, and renews only for changed processes.

use crate::snapshot::{Snapshot, kept::Number, process::Process};

/// A value for each process of a snapshot, in the order of the pids. It depends on the record alone, so it stays valid
/// until the record changes.
#[derive(Clone, Debug)]
pub struct PerProcess<T> {
    number: Number,
    pids: Vec<u32>,
    values: Vec<T>,
    /// Memory to reuse.
    spare: (Vec<u32>, Vec<T>),
}

impl<T> PerProcess<T> {
    /// No values yet.
    pub const fn new() -> Self {
        Self {
            number: Number::NONE,
            pids: Vec::new(),
            values: Vec::new(),
            spare: (Vec::new(), Vec::new()),
        }
    }

    /// The values of the last update.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Whether the last two updates had the same pids.
    pub fn has_same_pids(&self) -> bool {
        self.pids == self.spare.0
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> PerProcess<T> {
    /// The values of this snapshot. Calls `make` for each process that may have changed since the last call.
    pub fn update(
        &mut self,
        snapshot: &Snapshot<'_>,
        mut make: impl FnMut(Process<'_>) -> T,
    ) -> &[T] {
        let number = std::mem::replace(&mut self.number, snapshot.number);
        if number == snapshot.number && number != Number::NONE {
            return &self.values;
        }
        let (mut pids, mut values) = std::mem::take(&mut self.spare);
        pids.clear();
        values.clear();
        let mut before = 0;
        for place in 0..snapshot.len() {
            if let Some(process) = snapshot.kept_since(number, place) {
                let pid = process.pid();
                before += self.pids[before..]
                    .iter()
                    .take_while(|other| **other < pid)
                    .count();
                if self.pids.get(before) == Some(&pid) {
                    pids.push(pid);
                    values.push(self.values[before]);
                    continue;
                }
            }
            let process = snapshot.process_at(place);
            pids.push(process.pid());
            values.push(make(process));
        }
        self.spare = (
            std::mem::replace(&mut self.pids, pids),
            std::mem::replace(&mut self.values, values),
        );
        &self.values
    }
}
