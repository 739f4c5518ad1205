//! Counters that are summed up, and never run backwards.

/// Which counter.
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
}

/// One value for each [`Count`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub(super) [u64; 8]);

impl Counts {
    /// One of them.
    pub const fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    pub(super) const fn set(&mut self, count: Count, value: u64) {
        self.0[count as usize] = value;
    }

    pub(super) fn add(&mut self, more: &Self) {
        for (sum, more) in self.0.iter_mut().zip(more.0) {
            *sum = sum.wrapping_add(more);
        }
    }

    /// Adds the context switches alone.
    pub(super) fn add_switches(&mut self, more: &Self) {
        for count in [Count::Voluntary, Count::Nonvoluntary] {
            self.set(count, self.get(count).wrapping_add(more.get(count)));
        }
    }

    /// How much these have grown to `now`, which they are from then on. What has gone back, because another source
    /// read it with less precision, has not grown, and is not counted twice when it comes forward again.
    pub(super) fn grow_to(&mut self, now: &Self) -> Self {
        let mut grown = Self::default();
        for ((grown, seen), now) in grown.0.iter_mut().zip(&mut self.0).zip(now.0) {
            *grown = now.saturating_sub(*seen);
            *seen = (*seen).max(now);
        }
        grown
    }

    pub(super) const fn cpu_ns(&self) -> u64 {
        self.get(Count::User) + self.get(Count::System)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_back_is_not_counted_twice() {
        let mut seen = Counts([10; 8]);
        assert_eq!(seen.grow_to(&Counts([13; 8])).get(Count::Read), 3);
        assert_eq!(seen.grow_to(&Counts([11; 8])).get(Count::Read), 0);
        assert_eq!(seen.grow_to(&Counts([14; 8])).get(Count::Read), 1);
    }
}
