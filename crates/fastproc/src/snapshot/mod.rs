//! A snapshot: all processes at about one time.

pub mod calibration;
pub mod cmdline;
pub mod exit;
pub(crate) mod kept;
pub mod process;
pub mod table;
pub mod texts;

use std::time::Duration;

use crate::{
    base::source_kind::SourceKind,
    records::record::ThreadRecord,
    snapshot::{
        cmdline::Cmdline,
        exit::Exit,
        kept::{Kept, Number},
        process::Process,
        table::Table,
        texts::TextTable,
    },
};

/// A process by its pid, and its place in one of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) pid: u32,
    at: u32,
}

/// This bit marks a place in the table that was read from `/proc`.
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

    pub(crate) const fn in_patch(self) -> usize {
        (self.at & !PATCHED) as usize
    }
}

/// The places of the processes, in the order of their pids.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Places<'a> {
    /// In the order of these slots.
    Slots(&'a [Slot]),
    /// The walk's own table is in the order of pids, and nothing was read from `/proc`.
    AsTheyLie,
}

/// How a snapshot was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotStats {
    /// The source that read it.
    pub source: SourceKind,
    /// Time since boot when the first record was about to be read, in nanoseconds (`CLOCK_BOOTTIME`).
    pub boottime_ns: u64,
    /// How long it took to read the records. Each record is from a time in this interval.
    pub read_for: Duration,
    /// How far that clock is ahead of the clock of start times, in nanoseconds: the offset of this process's
    /// time namespace, [`Host::boot_offset_ns`](crate::Host::boot_offset_ns).
    pub boot_offset_ns: i64,
    /// How long the whole snapshot took, with listings and sorting.
    pub took: Duration,
    /// Records that changed while they were read, and were read again from `/proc`.
    pub torn: u32,
    /// Processes that `/proc` lists and the walk does not meet. They were read from `/proc`.
    pub missed: u32,
    /// Processes that were left out because a file of theirs in `/proc` holds what this library does not understand.
    pub left_out: u32,
    /// How many times the walk was repeated because an array was too small.
    pub grown: u32,
    /// Signal action tables that were not read again, because the process has not run since the last
    /// snapshot.
    pub reused_actions: u32,
    /// Records that were not read again, because a few words of the kernel prove that nothing in them has changed
    /// since the last snapshot. See [`Builder::keep_records`](crate::Builder::keep_records).
    pub kept: u32,
    /// Records that were read although they could have been kept, and that differed from the kept ones. Each is a
    /// defect of fastproc: please report it.
    pub disproven: u32,
    /// Exits since the last snapshot that were lost because there was no room for them. See
    /// [`Snapshot::exits`].
    pub lost_exits: u64,
}

impl SnapshotStats {
    pub(crate) const fn new(source: SourceKind, boottime_ns: u64, boot_offset_ns: i64) -> Self {
        Self {
            source,
            boottime_ns,
            read_for: Duration::ZERO,
            boot_offset_ns,
            took: Duration::ZERO,
            torn: 0,
            missed: 0,
            left_out: 0,
            grown: 0,
            reused_actions: 0,
            kept: 0,
            disproven: 0,
            lost_exits: 0,
        }
    }

    /// Statistics of a recorded snapshot: its source, when reading began, on the clock of start times, and how long it
    /// took.
    #[doc(hidden)]
    pub const fn recorded(source: SourceKind, began_ns: u64, read_for: Duration) -> Self {
        let mut stats = Self::new(source, began_ns, 0);
        stats.read_for = read_for;
        stats.took = read_for;
        stats
    }

    /// When the first record was about to be read, on the clock of start times, which time namespaces do not
    /// change.
    pub const fn kernel_boottime_ns(&self) -> u64 {
        self.boottime_ns.saturating_add_signed(-self.boot_offset_ns)
    }

    /// When the last record had been read, on the same clock. No process of the snapshot started later.
    pub const fn kernel_end_ns(&self) -> u64 {
        let read_for_ns = self.read_for.as_nanos() as u64;
        self.kernel_boottime_ns().saturating_add(read_for_ns)
    }
}

/// The words that records point into: lists that are too long for a record.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Pools<'a> {
    /// Words that the source itself read.
    pub own: &'a [u64],
    /// Words that were read from `/proc` to complete the snapshot.
    pub from_text: &'a [u64],
}

/// Every process, as borrowed views in the order of their pids.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    pub(crate) walked: Table<'a>,
    pub(crate) patched: Table<'a>,
    /// The texts of the processes in `walked`.
    pub(crate) texts: TextTable<'a>,
    pub(crate) places: Places<'a>,
    pub(crate) stats: SnapshotStats,
    pub(crate) exits: Option<EndedExits<'a>>,
    /// The number of this snapshot.
    pub(crate) number: Number,
    /// Which records of `walked` are those of the last snapshot.
    pub(crate) kept: Kept<'a>,
}

/// When the processes of a snapshot were read, by their places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadTimes {
    began_ns: u64,
    /// How long each took, in nanoseconds with 32 binary digits after the point.
    each: u128,
}

impl ReadTimes {
    pub(crate) fn of(self, place: usize) -> u64 {
        let after_ns = (self.each * place as u128) >> 32;
        self.began_ns.saturating_add(after_ns as u64)
    }
}

/// The processes that ended before a snapshot, and their command lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedExits<'a> {
    pub(crate) exits: &'a [Exit],
    pub(crate) lines: &'a [u8],
}

impl<'a> Snapshot<'a> {
    /// Number of processes.
    pub fn len(&self) -> usize {
        match self.places {
            Places::Slots(slots) => slots.len(),
            Places::AsTheyLie => self.walked.records.len(),
        }
    }

    /// Whether the snapshot has no process at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the snapshot was made.
    pub fn stats(&self) -> SnapshotStats {
        self.stats
    }

    /// The processes, in the order of their pids.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = Process<'a>> + DoubleEndedIterator + Clone + use<'a> {
        let snapshot = *self;
        (0..self.len()).map(move |at| snapshot.process(snapshot.slot(at)))
    }

    /// The processes whose records may differ from those of the last snapshot of this collector, in the order
    /// of their pids. A record is left out if the walk kept it, or if the service says that it is the same. Without BPF all
    /// are returned.
    pub fn changed(&self) -> impl Iterator<Item = Process<'a>> + Clone + use<'a> {
        let all = self.iter_with_changed();
        all.filter_map(|(process, changed)| changed.then_some(process))
    }

    /// All processes, each with whether its record may differ from that of the last snapshot.
    pub fn iter_with_changed(
        &self,
    ) -> impl ExactSizeIterator<Item = (Process<'a>, bool)> + Clone + use<'a> {
        let snapshot = *self;
        (0..self.len()).map(move |place| {
            let slot = snapshot.slot(place);
            let kept = slot.in_walk().is_some_and(|at| snapshot.kept.contains(at));
            (snapshot.process(slot), !kept)
        })
    }

    /// The process at this place, if its record is that of snapshot `number`.
    #[inline]
    pub(crate) fn kept_since(&self, number: Number, place: usize) -> Option<Process<'a>> {
        if number == Number::NONE || number != self.kept.of {
            return None;
        }
        let slot = self.slot(place);
        let at = slot.in_walk()?;
        self.kept.contains(at).then(|| self.process(slot))
    }

    pub(crate) fn set_exits(&mut self, (ends, lost): (EndedExits<'a>, u64)) {
        self.stats.lost_exits = lost;
        self.exits = Some(ends);
    }

    /// The processes that ended since the last snapshot, with their final values, however short they lived.
    /// `None` if exits are not recorded, or were not recorded for the whole time since then; see
    /// [`Builder::exits`](crate::Builder::exits).
    ///
    /// A process is in every snapshot until the walk no longer meets it, at the end as a zombie. It is then
    /// once among the exits of a later snapshot, mostly of the next one. The kernel releases a process some
    /// milliseconds after it has left the list of tasks, so a process that ended right before a snapshot may
    /// be among the exits of the one after it.
    pub fn exits(&self) -> Option<&'a [Exit]> {
        self.exits.map(|ends| ends.exits)
    }

    /// The arguments with which this exited process had executed its program, each followed by a NUL. A process that
    /// executed nothing has those of the process that forked it. They are cut after 4 KiB, after 1 KiB while the lines
    /// that are kept exceed 4 MiB, and after 512 bytes while a quarter of the ring buffer is unread. `None` if the exec or
    /// the fork was not recorded, if they belong to another user, of whom this reader may see no arguments, or if
    /// [`Builder::exit_cmdlines`](crate::Builder::exit_cmdlines) did not request them.
    pub fn exit_cmdline(&self, exit: &Exit) -> Option<Cmdline<'a>> {
        exit.line(self.exits?.lines)
    }

    /// The process at this place in [`iter`](Self::iter).
    pub fn at(&self, place: usize) -> Option<Process<'a>> {
        (place < self.len()).then(|| self.process(self.slot(place)))
    }

    /// The same, for a place that exists.
    pub(crate) fn process_at(&self, place: usize) -> Process<'a> {
        self.process(self.slot(place))
    }

    /// The process with this pid.
    pub fn get(&self, pid: u32) -> Option<Process<'a>> {
        self.find(pid).map(|(_, process)| process)
    }

    /// The process with this pid, and its place in the order of the pids.
    pub(crate) fn find(&self, pid: u32) -> Option<(usize, Process<'a>)> {
        let at = self.position(pid)?;
        Some((at, self.process(self.slot(at))))
    }

    /// When the process at this place in [`iter`](Self::iter) was read, on the clock of start times. This is
    /// an estimate from the place: a source reads the processes in about the order of their pids.
    pub fn read_ns(&self, place: usize) -> u64 {
        self.read_times().of(place)
    }

    /// The same for many places.
    pub(crate) fn read_times(&self) -> ReadTimes {
        ReadTimes {
            began_ns: self.stats.kernel_boottime_ns(),
            each: (self.stats.read_for.as_nanos() << 32) / self.len().max(1) as u128,
        }
    }

    /// The place in [`iter`](Self::iter) of the process with this pid.
    pub fn position(&self, pid: u32) -> Option<usize> {
        let found = match self.places {
            Places::Slots(slots) => slots.binary_search_by_key(&pid, |slot| slot.pid),
            Places::AsTheyLie => self
                .walked
                .records
                .binary_search_by_key(&pid, |record| record.identity.tgid),
        };
        found.ok()
    }

    fn slot(&self, at: usize) -> Slot {
        match self.places {
            Places::Slots(slots) => slots[at],
            Places::AsTheyLie => Slot::walked(0, at as u32),
        }
    }

    /// The threads, if they were requested, in the order in which the source met them.
    pub fn threads(&self) -> impl Iterator<Item = &'a ThreadRecord> + Clone + use<'a> {
        let snapshot = *self;
        // If the walk tore a process, the process was read again from /proc with its threads. Leave out those of the
        // walk.
        let walked = self.walked.threads.iter();
        let walked = walked
            .filter(move |thread| snapshot.stats.torn == 0 || snapshot.is_walked(thread.tgid));
        walked.chain(self.patched.threads)
    }

    /// The same threads, each with its process.
    pub fn threads_with_processes(
        &self,
    ) -> impl Iterator<Item = (Process<'a>, &'a ThreadRecord)> + use<'a> {
        self.threads_with_places()
            .map(|(_, process, thread)| (process, thread))
    }

    /// The same threads, each with its process and the place of that process in the order of the pids.
    pub(crate) fn threads_with_places(
        &self,
    ) -> impl Iterator<Item = (usize, Process<'a>, &'a ThreadRecord)> + use<'a> {
        let snapshot = *self;
        let mut last: Option<(usize, Process<'a>)> = None;
        self.threads().filter_map(move |thread| {
            // Threads of one process mostly follow each other.
            if last.is_none_or(|(_, process)| process.pid() != thread.tgid) {
                last = snapshot.find(thread.tgid);
            }
            let (place, process) = last?;
            Some((place, process, thread))
        })
    }

    fn is_walked(&self, pid: u32) -> bool {
        self.position(pid)
            .is_some_and(|at| self.slot(at).in_walk().is_some())
    }

    /// The source that read this process: `procfs` if the walk tore or missed it.
    pub fn source_of(&self, process: Process<'_>) -> SourceKind {
        if self.is_walked(process.pid()) {
            self.stats.source
        } else {
            SourceKind::Procfs
        }
    }

    #[inline]
    fn process(&self, slot: Slot) -> Process<'a> {
        let (table, at) = match slot.in_walk() {
            Some(at) => (&self.walked, at),
            None => (&self.patched, slot.in_patch()),
        };
        let (record, pool) = (&table.records[at], table.pool);
        // The record of an unchanged process is not in a CPU cache, so a caller that needs only the pid must not read
        // it.
        let process = match self.places {
            Places::Slots(_) => Process::with_pid(slot.pid, record, pool),
            Places::AsTheyLie => Process::new(record, pool),
        };
        match slot.in_walk() {
            Some(at) => process.with_texts(self.texts.get(at)),
            None => process,
        }
    }
}

#[doc(hidden)]
impl<'a> Snapshot<'a> {
    /// Makes a snapshot of recorded records. They must be in the order of their pids, with no pid twice.
    pub const fn recorded(table: Table<'a>, stats: SnapshotStats) -> Self {
        const NOTHING: Table<'static> = Table {
            records: &[],
            threads: &[],
            pool: &[],
        };
        Self {
            walked: table,
            patched: NOTHING,
            texts: TextTable {
                entries: &[],
                bytes: &[],
            },
            places: Places::AsTheyLie,
            stats,
            exits: None,
            number: Number::NONE,
            kept: Kept::NONE,
        }
    }

    /// Adds recorded exits, and the number of exits that were lost: see [`exits`](Self::exits).
    #[must_use]
    pub const fn with_exits(mut self, exits: &'a [Exit], lost: u64) -> Self {
        self.exits = Some(EndedExits { exits, lines: &[] });
        self.stats.lost_exits = lost;
        self
    }

    /// The pools that the records' offsets point into.
    pub fn pools(&self) -> Pools<'a> {
        Pools {
            own: self.walked.pool,
            from_text: self.patched.pool,
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
            texts: TextTable::default(),
            places: Places::Slots(&[Slot::walked(1, 0), Slot::patched(2, 0)]),
            stats: SnapshotStats {
                torn: 1,
                ..SnapshotStats::new(SourceKind::Bpf, 0, 0)
            },
            exits: None,
            number: Number::NONE,
            kept: Kept::NONE,
        };
        let met: Vec<_> = snapshot
            .threads()
            .map(|thread| (thread.tid, thread.minflt))
            .collect();
        assert_eq!(met, [(1, 0), (2, 7), (3, 7)]);
    }
}
