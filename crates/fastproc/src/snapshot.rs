//! One snapshot: every process at about one time.

use std::time::Duration;

use crate::{
    Process,
    record::ThreadRecord,
    source::{SourceKind, Table},
};

/// Where a process stands: its pid, and its place in one of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) pid: u32,
    at: u32,
}

/// The bit that says: in the table that was read from `/proc`.
const PATCHED: u32 = 1 << 31;

impl Slot {
    pub(crate) const fn walked(pid: u32, at: u32) -> Self {
        Self { pid, at }
    }

    pub(crate) const fn patched(pid: u32, at: u32) -> Self {
        Self {
            pid,
            at: at | PATCHED,
        }
    }

    /// The place in the walk's own table, unless the process was read from `/proc`.
    pub(crate) const fn in_walk(self) -> Option<usize> {
        if self.at & PATCHED == 0 {
            Some(self.at as usize)
        } else {
            None
        }
    }

    const fn in_patch(self) -> usize {
        (self.at & !PATCHED) as usize
    }
}

/// How a snapshot was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotStats {
    /// The source.
    pub source: SourceKind,
    /// Time since boot when it was made, in nanoseconds (`CLOCK_BOOTTIME`).
    pub boottime_ns: u64,
    /// What that clock is ahead of the one that start times are counted on, in nanoseconds: the offset of this process's
    /// time namespace, [`Host::boot_offset_ns`](crate::Host::boot_offset_ns).
    pub boot_offset_ns: i64,
    /// How long it took.
    pub took: Duration,
    /// Records that were replaced while being read, and were read again from `/proc`.
    pub torn: u32,
    /// Processes that the walk does not meet and `/proc` lists; they are served from there.
    pub missed: u32,
    /// Times that the walk was repeated because an array was too small.
    pub grown: u32,
    /// Signal action tables that had not to be read, because the process has not run since the last snapshot.
    pub reused_actions: u32,
}

impl SnapshotStats {
    /// When it was made, on the clock that start times are counted on: time namespaces do not change that one.
    pub const fn kernel_boottime_ns(&self) -> u64 {
        self.boottime_ns.saturating_add_signed(-self.boot_offset_ns)
    }
}

/// Every process, as borrowed views in the order of their pids.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    pub(crate) walked: Table<'a>,
    pub(crate) patched: Table<'a>,
    pub(crate) order: &'a [Slot],
    pub(crate) stats: SnapshotStats,
}

impl<'a> Snapshot<'a> {
    /// Number of processes.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is none; not even this process.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How it was made.
    pub fn stats(&self) -> SnapshotStats {
        self.stats
    }

    /// The processes, in the order of their pids.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = Process<'a>> + DoubleEndedIterator + Clone + use<'a> {
        let snapshot = *self;
        self.order.iter().map(move |&slot| snapshot.process(slot))
    }

    /// The process with this pid.
    pub fn get(&self, pid: u32) -> Option<Process<'a>> {
        let at = self
            .order
            .binary_search_by_key(&pid, |slot| slot.pid)
            .ok()?;
        Some(self.process(self.order[at]))
    }

    /// The threads, if they were asked for, in the order in which the source met them.
    pub fn threads(&self) -> impl Iterator<Item = &'a ThreadRecord> + Clone + use<'a> {
        let snapshot = *self;
        // The walk has also met the threads of a process that it tore, which was then read from /proc with its threads.
        let walked = self.walked.threads.iter();
        let walked = walked
            .filter(move |thread| snapshot.stats.torn == 0 || snapshot.is_walked(thread.tgid));
        walked.chain(self.patched.threads)
    }

    fn is_walked(&self, pid: u32) -> bool {
        let at = self.order.binary_search_by_key(&pid, |slot| slot.pid);
        at.is_ok_and(|at| self.order[at].in_walk().is_some())
    }

    /// The pools that the records' offsets point into: of the processes that were walked, and of those that were read
    /// from `/proc`.
    pub fn pools(&self) -> [&'a [u64]; 2] {
        [self.walked.pool, self.patched.pool]
    }

    fn process(&self, slot: Slot) -> Process<'a> {
        match slot.in_walk() {
            Some(at) => Process::new(&self.walked.records[at], self.walked.pool),
            None => Process::new(&self.patched.records[slot.in_patch()], self.patched.pool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tgid: u32, tid: u32, minflt: u64) -> ThreadRecord {
        ThreadRecord {
            minflt,
            tid,
            tgid,
            ..ThreadRecord::default()
        }
    }

    #[test]
    fn threads_of_a_torn_process_are_those_from_proc() {
        let walked = [thread(1, 1, 0), thread(2, 2, 0), thread(2, 3, 0)];
        let patched = [thread(2, 2, 7), thread(2, 3, 7)];
        let table = |threads| Table {
            threads,
            ..Table::default()
        };
        let snapshot = Snapshot {
            walked: table(&walked),
            patched: table(&patched),
            order: &[Slot::walked(1, 0), Slot::patched(2, 0)],
            stats: SnapshotStats {
                source: SourceKind::Bpf,
                boottime_ns: 0,
                boot_offset_ns: 0,
                took: Duration::ZERO,
                torn: 1,
                missed: 0,
                grown: 0,
                reused_actions: 0,
            },
        };
        let met: Vec<_> = snapshot
            .threads()
            .map(|thread| (thread.tid, thread.minflt))
            .collect();
        assert_eq!(met, [(1, 0), (2, 7), (3, 7)]);
    }
}
