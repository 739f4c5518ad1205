//! The records that a source returns.

use crate::records::record::{Record, ThreadRecord};

/// The records that a source has filled, and the pool that their offsets point into.
#[derive(Clone, Copy, Debug, Default)]
pub struct Table<'a> {
    /// Processes, in the order the source met them.
    pub records: &'a [Record],
    /// Threads, if they were requested, in the order the source met them.
    pub threads: &'a [ThreadRecord],
    /// Supplementary groups, nested ids and wide bitmaps.
    pub pool: &'a [u64],
}
