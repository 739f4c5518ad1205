//! Records that a snapshot keeps of the previous one.

use std::sync::atomic::{AtomicU64, Ordering};

/// A snapshot whose records a later one keeps. Numbers are unique in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Number(u64);

impl Number {
    /// The number of snapshots whose records are not kept.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// The records that are the same as in the last snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    /// How to tell them from the others.
    pub(crate) by: Mark<'a>,
    /// The last snapshot.
    pub(crate) of: Number,
}

/// What tells which records are kept, by their places in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark<'a> {
    /// This bit in the index of the walk. With an empty index no record is kept.
    Bit { index: &'a [u64], bit: u64 },
    /// The service's number of the snapshot in which each record changed last is not greater than that of the last one.
    Changed { numbers: &'a [u64], last: u64 },
}

impl Kept<'_> {
    pub(crate) const NONE: Self = Self {
        by: Mark::Bit { index: &[], bit: 0 },
        of: Number::NONE,
    };

    pub(super) fn contains(self, at: usize) -> bool {
        match self.by {
            Mark::Bit { index, bit } => index.get(at).is_some_and(|entry| entry & bit != 0),
            Mark::Changed { numbers, last } => numbers.get(at).is_some_and(|&of| of <= last),
        }
    }
}
