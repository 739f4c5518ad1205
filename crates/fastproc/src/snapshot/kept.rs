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

/// The records of a walk that were kept from the last snapshot, not read again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    /// The index of the walk. Empty: none.
    pub(crate) index: &'a [u64],
    /// The bit in it.
    pub(crate) bit: u64,
    /// The last snapshot.
    pub(crate) of: Number,
}

impl Kept<'_> {
    pub(crate) const NONE: Self = Self {
        index: &[],
        bit: 0,
        of: Number::NONE,
    };

    pub(super) fn contains(self, at: usize) -> bool {
        let entry = self.index.get(at);
        entry.is_some_and(|entry| entry & self.bit != 0)
    }
}
