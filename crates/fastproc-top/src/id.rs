//! Which process or thread is meant.

use fastproc_columns::Row;

/// A process or thread, for good: pids are given away again, and start times tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    /// Process id.
    pub pid: u32,
    /// Thread id; of a process the same.
    pub tid: u32,
    /// Start time after boot.
    pub start_ns: u64,
}

impl Id {
    /// That of a row.
    pub fn of(row: &Row<'_>) -> Self {
        Self {
            pid: row.process.pid(),
            tid: row.tid(),
            start_ns: row.start_ns(),
        }
    }

    /// Whether the row is about it; a process before another one counts as the same if `/proc` rounds to it.
    pub fn is_of(&self, row: &Row<'_>) -> bool {
        self.pid == row.process.pid()
            && self.tid == row.tid()
            && fastproc::difference::is_same_start(self.start_ns, row.start_ns())
    }
}
