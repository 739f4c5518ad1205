//! Counters that are summed up and never decrease.

use fastproc::difference::{Counter, Growth};

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// CPU time in user mode, in nanoseconds.
    User,
    /// CPU time in the kernel, in nanoseconds.
    System,
    /// Bytes fetched from storage.
    Read,
    /// Bytes sent to storage.
    Write,
    /// Page faults that needed I/O.
    MajorFaults,
    /// Page faults that needed none.
    MinorFaults,
    /// Voluntary context switches.
    Voluntary,
    /// Involuntary context switches.
    Nonvoluntary,
    /// Time of waiting for a CPU, in nanoseconds.
    Wait,
}

/// One value for each [`Count`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    values: [u64; 9],
    /// Whether it is known of any process how long it waited.
    knows_wait: bool,
}

/// In the order of [`Count`].
const COUNTERS: [Counter; 9] = [
    Counter::User,
    Counter::System,
    Counter::ReadBytes,
    Counter::WriteBytes,
    Counter::MajorFaults,
    Counter::MinorFaults,
    Counter::VoluntarySwitches,
    Counter::InvoluntarySwitches,
    Counter::RunDelay,
];

impl From<&Growth> for Counts {
    fn from(growth: &Growth) -> Self {
        Self {
            values: COUNTERS.map(|counter| growth.get(counter).unwrap_or(0)),
            knows_wait: growth.get(Counter::RunDelay).is_some(),
        }
    }
}

impl Counts {
    /// One of the values.
    pub const fn get(&self, count: Count) -> u64 {
        self.values[count as usize]
    }

    /// Time of waiting for a CPU, in nanoseconds. `None`: it is known of no process.
    pub fn wait_ns(&self) -> Option<u64> {
        self.knows_wait.then(|| self.get(Count::Wait))
    }

    pub(super) const fn set(&mut self, count: Count, value: u64) {
        self.values[count as usize] = value;
    }

    pub(super) fn add(&mut self, more: &Self) {
        for (sum, more) in self.values.iter_mut().zip(more.values) {
            *sum = sum.wrapping_add(more);
        }
        self.knows_wait |= more.knows_wait;
    }

    pub(super) fn add_one(&mut self, count: Count, more: u64) {
        self.set(count, self.get(count).wrapping_add(more));
    }

    /// Adds only the context switches.
    pub(super) fn add_switches(&mut self, more: &Self) {
        for count in [Count::Voluntary, Count::Nonvoluntary] {
            self.add_one(count, more.get(count));
        }
    }

    pub(super) const fn cpu_ns(&self) -> u64 {
        self.get(Count::User) + self.get(Count::System)
    }
}
