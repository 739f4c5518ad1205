//! Makes a snapshot from a walk: reads torn and missed processes from `/proc`, adds threads to their processes,
//! and splits CPU times as the kernel does.

use std::time::{Duration, Instant};

use super::met_all::{list_those_missed, missing_threads};
use crate::{
    base::{
        error::Error,
        host::{TaskCount, boottime_ns},
        source_kind::SourceKind,
    },
    records::{
        fields::Fields,
        record::{Delays, Record, ThreadRecord},
    },
    rules::cputime::{CpuClock, ThreadClock},
    snapshot::{
        Places, Slot, Snapshot, SnapshotStats,
        calibration::Calibration,
        kept::{Kept, Number},
        table::Table,
        texts::TextTable,
    },
    source::{
        bpf::{Bpf, ByPid, IndexEntry, TableMut, kept},
        calibrate::name_workers_by_comm,
        order::Order,
        procfs::Procfs,
    },
};

/// Records that were read from `/proc` to complete a walk.
#[derive(Debug, Default)]
struct Patch {
    records: Vec<Record>,
    threads: Vec<ThreadRecord>,
    pool: Vec<u64>,
}

impl Patch {
    fn clear(&mut self) {
        self.records.clear();
        self.threads.clear();
        self.pool.clear();
        // Offset 0 means "nothing in the pool".
        self.pool.push(0);
    }

    /// Reads a process from `/proc`. `None`: it has exited.
    fn read(&mut self, procfs: &mut Procfs, pid: u32) -> Result<Option<Slot>, Error> {
        let mut record = Record::default();
        let there = procfs.read_one(pid, &mut record, &mut self.threads, &mut self.pool)?;
        Ok(there.then(|| self.push(pid, &record)))
    }

    /// The same for a process that every snapshot reads, in the order of the ids: its files stay open.
    fn read_next(&mut self, procfs: &mut Procfs, pid: u32) -> Result<Option<Slot>, Error> {
        let mut record = Record::default();
        let there = procfs.read_next(pid, &mut record, &mut self.threads, &mut self.pool)?;
        Ok(there.then(|| self.push(pid, &record)))
    }

    fn push(&mut self, pid: u32, record: &Record) -> Slot {
        let at = self.records.len() as u32;
        self.records.push(*record);
        Slot::patched(pid, at)
    }

    fn table(&self) -> Table<'_> {
        Table {
            records: &self.records,
            threads: &self.threads,
            pool: &self.pool,
        }
    }
}

/// The processes that a walk did not meet, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missed {
    /// Those that were found before: it was not time to look for others, or there are none.
    AsBefore,
    /// Those of the list of `/proc`, which was just read, that the walk did not meet.
    Listed,
}

/// The state that is kept between snapshots, except for the source.
#[derive(Debug)]
pub(crate) struct Assembler {
    pub(crate) procfs: Procfs,
    pub(crate) fields: Fields,
    pub(crate) kind: SourceKind,
    pub(crate) calibration: Calibration,
    reconcile_every: Duration,
    boot_offset_ns: i64,
    reconciled: Option<Instant>,
    /// The tasks before the first walk, if the first snapshot may use that one.
    opened: Option<TaskCount>,
    /// Pids of the last listing of `/proc`.
    listed: Vec<u32>,
    /// Pids that `/proc` lists and that the walk does not meet.
    missed: Vec<u32>,
    /// Processes of which the walk met a thread but not the leader: the two had just exchanged their pids.
    orphans: Vec<u32>,
    order: Order,
    patch: Patch,
    clock: CpuClock,
    thread_clock: ThreadClock,
    /// The last snapshot, and the one whose records its walk keeps.
    number: Number,
    follows: Number,
    /// Statistics of the last snapshot. `None` if it failed.
    latest: Option<SnapshotStats>,
}

impl Assembler {
    pub(crate) fn new(
        procfs: Procfs,
        fields: Fields,
        kind: SourceKind,
        reconcile_every: Duration,
        boot_offset_ns: i64,
    ) -> Self {
        Self {
            procfs,
            fields,
            kind,
            calibration: Calibration::default(),
            reconcile_every,
            boot_offset_ns,
            reconciled: None,
            opened: None,
            listed: Vec::new(),
            missed: Vec::new(),
            orphans: Vec::new(),
            order: Order::default(),
            patch: Patch::default(),
            clock: CpuClock::default(),
            thread_clock: ThreadClock::default(),
            number: Number::NONE,
            follows: Number::NONE,
            latest: None,
        }
    }

    /// Lets the first snapshot use the walk that opening made, if it is taken at once. `before`: the tasks before that walk.
    pub(crate) fn may_use_last_walk(&mut self, before: Option<TaskCount>) {
        self.opened = before;
    }

    /// Another source made the last snapshot: no record can be kept from before it, and the walk of opening is older.
    pub(crate) fn forget(&mut self) {
        self.order.begin();
        self.opened = None;
    }

    /// Forgets the last snapshot, whose arrays are gone, and gives back its memory.
    pub(crate) fn release(&mut self) {
        self.forget();
        self.latest = None;
        self.order = Order::default();
        self.listed = Vec::new();
    }

    /// Makes a snapshot by a walk of the kernel's tasks.
    pub(crate) fn walk<'a>(&'a mut self, bpf: &'a mut Bpf) -> Result<Snapshot<'a>, Error> {
        self.latest = None;
        // First, so that the duration reaches to the end of the snapshot.
        let started = Instant::now();
        let mut stats = self.stats();
        let is_due = self
            .reconciled
            .is_none_or(|at| at.elapsed() >= self.reconcile_every);
        let of_opening = self.opened.take();
        let is_young = |ended_ns| since(ended_ns) < YOUNG;
        let of_opening = of_opening.filter(|_| bpf.last_ended_ns().is_some_and(is_young));
        let tasks_before = match of_opening {
            Some(tasks) => Some(tasks),
            None => is_due.then(TaskCount::now).flatten(),
        };
        let last = std::mem::take(&mut self.number);
        let last_is_complete = self.order.begin();
        let TableMut {
            records,
            index,
            threads,
            pool,
            order: by_pid,
            walk: walk_stats,
        } = match of_opening {
            Some(_) => bpf.last_or_collect()?,
            None => bpf.collect()?,
        };
        let missed = if is_due {
            self.reconcile(records, index, tasks_before)?
        } else {
            Missed::AsBefore
        };
        // If the walk was repeated, no reader saw the one before it.
        let follows_last = last_is_complete && !walk_stats.repeated;
        self.follows = if follows_last { last } else { Number::NONE };
        stats.grown = walk_stats.grown;
        stats.reused_actions = walk_stats.reused_actions;
        stats.kept = walk_stats.kept;
        stats.disproven = walk_stats.disproven;
        stats.boottime_ns = walk_stats.began_ns;

        self.orphans.clear();
        if self.kind == SourceKind::BpfIter {
            let sums = self
                .fields
                .intersects(Fields::CPU | Fields::IO | Fields::DELAYS | Fields::THREADS);
            fold_threads(records, index, by_pid, threads, sums, &mut self.orphans);
        }
        let torn = index.iter().filter(|&&entry| IndexEntry(entry).is_torn());
        stats.torn = torn.count() as u32;
        let has_same_order = follows_last
            && missed == Missed::AsBefore
            && self.orphans.is_empty()
            && self.order.is_same_walk(index)
            && self.serve_missed_again()?;
        if !has_same_order {
            self.put_in_order(index, missed, stats.kernel_boottime_ns())?;
        }
        // Rates are over the time between two readings. What happened after the walk of opening belongs to the next snapshot. The few
        // processes that are read from `/proc` now are younger.
        stats.read_for = match of_opening {
            Some(_) => Duration::from_nanos(walk_stats.ended_ns.saturating_sub(stats.boottime_ns)),
            None => since(stats.boottime_ns),
        };
        stats.missed = self.missed.len() as u32;
        stats.left_out = self.procfs.left_out();
        if self.fields.contains(Fields::CPU) {
            if has_same_order {
                self.show_cpu_times_again(records, index);
            } else {
                self.show_cpu_times(records);
            }
        }
        if self.fields.contains(Fields::THREADS) {
            self.thread_clock.show(threads);
        }
        if self.calibration.workers_by_comm {
            name_workers_by_comm(records);
        }
        let threads: &[ThreadRecord] = if self.fields.contains(Fields::THREADS) {
            threads
        } else {
            &[]
        };
        self.number = self.order.complete();
        stats.took = started.elapsed();
        self.latest = Some(stats);
        Ok(Snapshot {
            walked: Table {
                records,
                threads,
                pool,
            },
            patched: self.patch.table(),
            texts: TextTable::default(),
            places: Places::Slots(&self.order.slots),
            stats,
            exits: None,
            number: self.number,
            kept: kept(index, self.follows),
        })
    }

    /// Makes a snapshot by reading `/proc`.
    pub(crate) fn read(&mut self) -> Result<Snapshot<'_>, Error> {
        self.latest = None;
        // First, so that the duration reaches to the end of the snapshot.
        let started = Instant::now();
        let mut stats = self.stats();
        self.patch.clear();
        self.order.clear();
        self.procfs.forget_left_out();
        self.procfs.collect()?;
        let table = self.procfs.table();
        stats.left_out = self.procfs.left_out();
        stats.read_for = since(stats.boottime_ns);
        let slots = table.records.iter().enumerate();
        self.order
            .slots
            .extend(slots.map(|(at, record)| Slot::walked(record.identity.tgid, at as u32)));
        self.order.slots.sort_unstable();
        stats.took = started.elapsed();
        self.latest = Some(stats);
        Ok(Snapshot {
            walked: table,
            patched: self.patch.table(),
            texts: TextTable::default(),
            places: Places::Slots(&self.order.slots),
            stats,
            exits: None,
            number: Number::NONE,
            kept: Kept::NONE,
        })
    }

    /// Returns the last snapshot again. `bpf` is the source that walked, if a walk made it.
    pub(crate) fn latest<'a>(&'a self, bpf: Option<&'a Bpf>) -> Option<Snapshot<'a>> {
        let walked = bpf.map_or_else(|| self.procfs.table(), Bpf::table);
        let threads = if self.fields.contains(Fields::THREADS) {
            walked.threads
        } else {
            &[]
        };
        Some(Snapshot {
            walked: Table { threads, ..walked },
            patched: self.patch.table(),
            texts: TextTable::default(),
            places: Places::Slots(&self.order.slots),
            stats: self.latest?,
            exits: None,
            number: bpf.map_or(Number::NONE, |_| self.number),
            kept: bpf.map_or(Kept::NONE, |bpf| kept(bpf.index(), self.follows)),
        })
    }

    /// Lists `/proc`, unless the counts of tasks before and after a walk prove that it met every process.
    fn reconcile(
        &mut self,
        records: &[Record],
        index: &[u64],
        tasks_before: Option<TaskCount>,
    ) -> Result<Missed, Error> {
        let missing = missing_threads(records, tasks_before, TaskCount::now);
        if missing == Some(0) {
            self.reconciled = Some(Instant::now());
            return Ok(Missed::AsBefore);
        }
        list_those_missed(&mut self.procfs, index, missing, &mut self.listed)?;
        Ok(Missed::Listed)
    }

    /// Sorts by pid the processes that the walk met, and reads those that it tore or missed.
    fn put_in_order(
        &mut self,
        index: &[u64],
        missed: Missed,
        walk_started_ns: u64,
    ) -> Result<(), Error> {
        self.patch.clear();
        self.order.clear();
        self.procfs.forget_left_out();
        for (at, entry) in index.iter().enumerate() {
            let entry = IndexEntry(*entry);
            if entry.is_free() {
                continue;
            }
            if !entry.is_torn() {
                self.order.slots.push(Slot::walked(entry.pid(), at as u32));
            } else if let Some(slot) = self.patch.read(&mut self.procfs, entry.pid())? {
                self.order.slots.push(slot);
            }
        }
        for &pid in &self.orphans {
            if let Some(slot) = self.patch.read(&mut self.procfs, pid)? {
                self.order.slots.push(slot);
            }
        }
        self.order.settle(index);
        if missed == Missed::Listed {
            self.missed.clear();
            find_missed(&self.listed, &self.order.slots, &mut self.missed);
            self.reconciled = Some(Instant::now());
        }
        serve_missed(
            &mut self.missed,
            &mut self.patch,
            &mut self.procfs,
            &mut self.order.slots,
            walk_started_ns,
        )?;
        self.order.number(index.len());
        Ok(())
    }

    /// Reads the processes that the walk misses again, into the same places. Returns whether all of them still exist.
    fn serve_missed_again(&mut self) -> Result<bool, Error> {
        self.patch.clear();
        self.procfs.forget_left_out();
        self.procfs.begin();
        for &pid in &self.missed {
            if self.patch.read_next(&mut self.procfs, pid)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fills in the CPU times.
    fn show_cpu_times(&mut self, records: &mut [Record]) {
        self.clock.start();
        for slot in &self.order.slots {
            let Record { identity, cpu, .. } = match slot.in_walk() {
                Some(at) => &mut records[at],
                None => &mut self.patch.records[slot.in_patch()],
            };
            let time = self.clock.show(slot.pid, identity.start_ns, cpu);
            (cpu.utime_ns, cpu.stime_ns) = (time.utime_ns, time.stime_ns);
        }
    }

    /// The same after a walk that met the same processes as before: only for those that have run.
    fn show_cpu_times_again(&mut self, records: &mut [Record], index: &[u64]) {
        let clock = &mut self.clock;
        let again = |clock: &mut CpuClock, position, record: &mut Record| {
            let Record { identity, cpu, .. } = record;
            let time = clock.show_again(position, identity.tgid, identity.start_ns, cpu);
            (cpu.utime_ns, cpu.stime_ns) = (time.utime_ns, time.stime_ns);
        };
        let changed = index
            .iter()
            .enumerate()
            .filter(|(_, entry)| IndexEntry(**entry).is_changed());
        for (at, _) in changed {
            again(clock, self.order.position(at), &mut records[at]);
        }
        for record in &mut self.patch.records {
            let pid = record.identity.tgid;
            let slots = &self.order.slots;
            if let Ok(position) = slots.binary_search_by_key(&pid, |slot| slot.pid) {
                again(clock, position, record);
            }
        }
    }

    fn stats(&self) -> SnapshotStats {
        SnapshotStats::new(self.kind, boottime_ns(), self.boot_offset_ns)
    }
}

/// How long ago the walk of opening may have ended in the first snapshot. With a hundred thousand processes it takes longer
/// itself.
const YOUNG: Duration = Duration::from_millis(100);

/// Finds the pids that are listed and that the walk did not meet. `order` is sorted by pid.
fn find_missed(listed: &[u32], order: &[Slot], missed: &mut Vec<u32>) {
    let met = |pid: u32| order.binary_search_by_key(&pid, |slot| slot.pid).is_ok();
    missed.extend(listed.iter().copied().filter(|&pid| !met(pid)));
}

/// Reads the processes that the walk misses from `/proc`. Forgets those that have exited, or that started during the
/// walk.
fn serve_missed(
    missed: &mut Vec<u32>,
    patch: &mut Patch,
    procfs: &mut Procfs,
    order: &mut Vec<Slot>,
    walk_started_ns: u64,
) -> Result<(), Error> {
    let mut result = Ok(());
    missed.retain(|&pid| {
        if result.is_err() || order.binary_search_by_key(&pid, |slot| slot.pid).is_ok() {
            return false;
        }
        match patch.read(procfs, pid) {
            Ok(Some(slot)) => {
                if patch
                    .records
                    .last()
                    .is_some_and(|record| record.identity.start_ns >= walk_started_ns)
                {
                    patch.records.pop();
                    return false;
                }
                let at = order.partition_point(|other| other.pid < pid);
                order.insert(at, slot);
                true
            }
            Ok(None) => false,
            Err(error) => {
                result = Err(error);
                false
            }
        }
    });
    result
}

/// What counts of a thread in the sums of its process: what an exiting one waited is among what exited ones have left,
/// or soon will be (`bpf/tasks/waits.h`).
fn counted(thread: &ThreadRecord) -> ThreadRecord {
    const PF_EXITING: u32 = 0x4;
    let mut thread = *thread;
    if thread.flags & PF_EXITING != 0 {
        (thread.run_delay_ns, thread.timeslices) = (0, 0);
        thread.delays = Delays::ZERO;
    }
    thread
}

/// Adds the threads that an iterator met one by one to their processes, as the kernel does. Marks a process as torn if
/// its sums may be wrong: a thread that started or ended meanwhile may be missing or counted twice.
fn fold_threads(
    records: &mut [Record],
    index: &mut [u64],
    by_pid: ByPid<'_>,
    threads: &[ThreadRecord],
    sums: bool,
    orphans: &mut Vec<u32>,
) {
    let mut last = None;
    for thread in threads.iter().filter(|thread| thread.tid != thread.tgid) {
        let found = match last {
            Some((tgid, found)) if tgid == thread.tgid => found,
            _ => by_pid.find(index, thread.tgid),
        };
        last = Some((thread.tgid, found));
        let Some(at) = found else {
            if !orphans.contains(&thread.tgid) {
                orphans.push(thread.tgid);
            }
            continue;
        };
        let record = &mut records[at];
        if record.identity.threads_state != thread.threads_state {
            IndexEntry::tear(&mut index[at]);
            continue;
        }
        record.identity.seen_threads += 1;
        let counted = counted(thread);
        record.cpu.add_thread(&counted);
        record.io.add_thread(&counted);
        record.delays.add_thread(&counted);
    }
    if sums {
        for (record, entry) in records.iter().zip(index.iter_mut()) {
            if record.identity.seen_threads != record.identity.num_threads {
                IndexEntry::tear(entry);
            }
        }
    }
}

fn since(began_ns: u64) -> Duration {
    Duration::from_nanos(boottime_ns().saturating_sub(began_ns))
}
