//! Which process or thread is meant.

use fastproc::{Process, Snapshot};
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
    /// That of its process; of a process the same.
    pub process_start_ns: u64,
}

impl Id {
    /// That of a row.
    pub fn of(row: &Row<'_>) -> Self {
        Self {
            pid: row.process.pid(),
            tid: row.tid(),
            start_ns: row.start_ns(),
            process_start_ns: row.process.identity().start_ns,
        }
    }

    /// Its process in a snapshot, if that has the very one: a pid may have been given away since.
    pub fn find<'a>(&self, snapshot: &Snapshot<'a>) -> Option<Process<'a>> {
        let process = snapshot.get(self.pid)?;
        let start_ns = process.identity().start_ns;
        let is_same = fastproc::difference::is_same_start(self.process_start_ns, start_ns);
        is_same.then_some(process)
    }

    /// That of its process.
    pub const fn process(self) -> Self {
        Self {
            tid: self.pid,
            start_ns: self.process_start_ns,
            ..self
        }
    }

    /// Whether the row is about it; a process before another one counts as the same if `/proc` rounds to it.
    pub fn is_of(&self, row: &Row<'_>) -> bool {
        self.pid == row.process.pid()
            && self.tid == row.tid()
            && fastproc::difference::is_same_start(self.start_ns, row.start_ns())
    }
}
