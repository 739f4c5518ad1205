//! The processor's own counters, where the machine has them and lets people read them.

use std::io;

use perf_event::{Builder, Counter, Group, events::Hardware};
use serde::Serialize;

/// Instructions, branches and branches that were mispredicted, of this thread outside of the kernel.
pub struct Counters {
    group: Group,
    instructions: Counter,
    branches: Counter,
    misses: Counter,
}

/// What converting one number took, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(clippy::struct_field_names, reason = "they are the names in the JSON")]
pub struct Counts {
    pub instructions_per_number: f64,
    pub branches_per_number: f64,
    pub branch_misses_per_number: f64,
}

impl Counters {
    /// # Errors
    /// The machine has no such counters (many virtual ones have none), or `kernel.perf_event_paranoid` keeps them from
    /// this user.
    pub fn open() -> io::Result<Self> {
        let mut group = Group::new()?;
        let instructions = group.add(&Builder::new(Hardware::INSTRUCTIONS))?;
        let branches = group.add(&Builder::new(Hardware::BRANCH_INSTRUCTIONS))?;
        let misses = group.add(&Builder::new(Hardware::BRANCH_MISSES))?;
        Ok(Self {
            group,
            instructions,
            branches,
            misses,
        })
    }

    /// Counts what `convert` does for each of its `numbers`.
    pub fn count(&mut self, numbers: usize, convert: impl FnOnce()) -> io::Result<Counts> {
        self.group.reset()?;
        self.group.enable()?;
        convert();
        self.group.disable()?;
        let counted = self.group.read()?;
        let per_number = |counter| counted[counter] as f64 / numbers as f64;
        Ok(Counts {
            instructions_per_number: per_number(&self.instructions),
            branches_per_number: per_number(&self.branches),
            branch_misses_per_number: per_number(&self.misses),
        })
    }
}
