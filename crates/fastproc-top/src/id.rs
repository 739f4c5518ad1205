//! The identity of a process or thread.

use fastproc::{Process, Snapshot};
use fastproc_columns::Row;

/// Identifies a process or thread permanently: pids are reused, so start times are part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    /// Process id.
    pub pid: u32,
    /// Thread id; for a process the same.
    pub tid: u32,
    /// Start time after boot.
    pub start_ns: u64,
    /// Start time of its process; for a process the same.
    pub process_start_ns: u64,
}

impl Id {
    /// The identity of a row's process or thread.
    pub fn from_row(row: &Row<'_>) -> Self {
        Self {
            pid: row.process.pid(),
            tid: row.tid(),
            start_ns: row.start_ns(),
            process_start_ns: row.process.identity().start_ns,
        }
    }

    /// Its process in a snapshot, if the pid was not reused.
    pub fn find<'a>(&self, snapshot: &Snapshot<'a>) -> Option<Process<'a>> {
        let process = snapshot.get(self.pid)?;
        let start_ns = process.identity().start_ns;
        let is_same = fastproc::difference::is_same_start(self.process_start_ns, start_ns);
        is_same.then_some(process)
    }

    /// The identity of its process.
    pub const fn process(self) -> Self {
        Self {
            tid: self.pid,
            start_ns: self.process_start_ns,
            ..self
        }
    }

    /// Whether the row is that of this process or thread; start times that `/proc` rounds to each other count as equal.
    pub fn is_of(&self, row: &Row<'_>) -> bool {
        self.pid == row.process.pid()
            && self.tid == row.tid()
            && fastproc::difference::is_same_start(self.start_ns, row.start_ns())
    }
}
