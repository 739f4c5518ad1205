//! From a walk to a snapshot: what is torn or missed is read from `/proc`, threads are folded, times are shown.

use std::time::{Duration, Instant};

use crate::{
    Calibration, Error, Fields, Snapshot,
    calibrate::name_workers_by_comm,
    cputime::{self, CpuClock, CpuTime},
    order::Order,
    record::{Record, ThreadRecord},
    snapshot::{Slot, SnapshotStats},
    source::{
        SourceKind, Table,
        bpf::{Bpf, IndexEntry, TableMut},
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
        // Offset 0 stands for "nothing in the pool".
        self.pool.push(0);
    }

    /// Reads a process from `/proc`. `None`: it is no more.
    fn read(&mut self, procfs: &mut Procfs, pid: u32) -> Result<Option<Slot>, Error> {
        let mut record = Record::default();
        if !procfs.read_one(pid, &mut record, &mut self.threads, &mut self.pool)? {
            return Ok(None);
        }
        self.records.push(record);
        Ok(Some(Slot::patched(pid, self.records.len() as u32 - 1)))
    }

    fn table(&self) -> Table<'_> {
        Table {
            records: &self.records,
            threads: &self.threads,
            pool: &self.pool,
        }
    }
}

/// Everything that outlives a snapshot, apart from the source.
#[derive(Debug)]
pub(crate) struct Assembler {
    pub(crate) procfs: Procfs,
    pub(crate) fields: Fields,
    pub(crate) kind: SourceKind,
    pub(crate) calibration: Calibration,
    reconcile_every: Duration,
    boot_offset_ns: i64,
    reconciled: Option<Instant>,
    /// Pids of the last listing of `/proc`.
    listed: Vec<u32>,
    /// Pids that `/proc` lists and the walk does not meet.
    missed: Vec<u32>,
    order: Order,
    patch: Patch,
    clock: CpuClock,
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
            listed: Vec::new(),
            missed: Vec::new(),
            order: Order::default(),
            patch: Patch::default(),
            clock: CpuClock::default(),
        }
    }

    /// A snapshot by a walk of the kernel's tasks.
    pub(crate) fn walk<'a>(&'a mut self, bpf: &'a mut Bpf) -> Result<Snapshot<'a>, Error> {
        let mut stats = self.stats();
        let started = Instant::now();
        // The listing comes before the walk: what it has and the walk has not was either missed, or is gone by then.
        let reconcile = self
            .reconciled
            .is_none_or(|at| at.elapsed() >= self.reconcile_every);
        if reconcile {
            self.procfs.pids(&mut self.listed)?;
        }
        let known = self.order.begin() && !reconcile;
        let TableMut {
            records,
            index,
            threads,
            pool,
            walk: walk_stats,
        } = bpf.collect()?;
        stats.torn = walk_stats.torn;
        stats.grown = walk_stats.grown;
        stats.reused_actions = walk_stats.reused_actions;

        let stood = known && self.order.stands(index) && self.serve_missed_again()?;
        if !stood {
            self.put_in_order(index, reconcile, stats.boottime_ns)?;
        }
        stats.missed = self.missed.len() as u32;
        if self.kind == SourceKind::BpfIter {
            fold_threads(records, threads, &self.order.slots);
        }
        if self.fields.contains(Fields::CPU) {
            self.show_cpu_times(records, index, stood);
        }
        if self.fields.contains(Fields::THREADS) {
            for thread in threads.iter_mut() {
                let time = cputime::of_thread(thread);
                (thread.utime_ns, thread.stime_ns) = (time.utime_ns, time.stime_ns);
            }
        }
        if self.calibration.workers_by_comm {
            name_workers_by_comm(records);
        }
        let threads: &[ThreadRecord] = if self.fields.contains(Fields::THREADS) {
            threads
        } else {
            &[]
        };
        self.order.complete();
        stats.took = started.elapsed();
        Ok(Snapshot {
            walked: Table {
                records,
                threads,
                pool,
            },
            patched: self.patch.table(),
            order: &self.order.slots,
            stats,
        })
    }

    /// A snapshot by reading `/proc`.
    pub(crate) fn read(&mut self) -> Result<Snapshot<'_>, Error> {
        let mut stats = self.stats();
        let started = Instant::now();
        self.patch.clear();
        self.order.clear();
        let table = self.procfs.collect()?;
        let slots = table.records.iter().enumerate();
        self.order
            .slots
            .extend(slots.map(|(at, record)| Slot::walked(record.identity.tgid, at as u32)));
        self.order.slots.sort_unstable();
        stats.took = started.elapsed();
        Ok(Snapshot {
            walked: table,
            patched: self.patch.table(),
            order: &self.order.slots,
            stats,
        })
    }

    /// Sorts by pid what the walk met, and reads what it tore or missed.
    fn put_in_order(
        &mut self,
        index: &[u64],
        reconcile: bool,
        walk_started_ns: u64,
    ) -> Result<(), Error> {
        self.patch.clear();
        self.order.clear();
        for (at, entry) in index.iter().enumerate() {
            let entry = IndexEntry(*entry);
            if !entry.is_torn() {
                self.order.slots.push(Slot::walked(entry.pid(), at as u32));
            } else if let Some(slot) = self.patch.read(&mut self.procfs, entry.pid())? {
                self.order.slots.push(slot);
            }
        }
        self.order.settle(index);
        if reconcile {
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

    /// Reads what the walk misses once more into the same places. Whether all of it is still there.
    fn serve_missed_again(&mut self) -> Result<bool, Error> {
        self.patch.clear();
        for &pid in &self.missed {
            if self.patch.read(&mut self.procfs, pid)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fills in the times; only those of processes that have run, where all stand as in the last snapshot.
    fn show_cpu_times(&mut self, records: &mut [Record], index: &[u64], stood: bool) {
        let mut fill = |at: usize, show: &mut dyn FnMut(&Record) -> CpuTime| {
            let record = &mut records[at];
            let time = show(record);
            (record.cpu.utime_ns, record.cpu.stime_ns) = (time.utime_ns, time.stime_ns);
        };
        let clock = &mut self.clock;
        if stood {
            let changed = index
                .iter()
                .enumerate()
                .filter(|(_, entry)| IndexEntry(**entry).is_changed());
            for (at, &entry) in changed {
                let position = self.order.position(at);
                fill(at, &mut |record| {
                    clock.show_again(
                        position,
                        IndexEntry(entry).pid(),
                        record.identity.start_ns,
                        &record.cpu,
                    )
                });
            }
        } else {
            clock.start();
            for slot in &self.order.slots {
                let Some(at) = slot.in_walk() else { continue };
                fill(at, &mut |record| {
                    clock.show(slot.pid, record.identity.start_ns, &record.cpu)
                });
            }
        }
    }

    fn stats(&self) -> SnapshotStats {
        SnapshotStats {
            source: self.kind,
            boottime_ns: boottime_ns(),
            boot_offset_ns: self.boot_offset_ns,
            took: Duration::ZERO,
            torn: 0,
            missed: 0,
            grown: 0,
            reused_actions: 0,
        }
    }
}

/// Pids that are listed and were not met. Both in any order of their own; `order` is sorted by pid.
fn find_missed(listed: &[u32], order: &[Slot], missed: &mut Vec<u32>) {
    let met = |pid: u32| order.binary_search_by_key(&pid, |slot| slot.pid).is_ok();
    missed.extend(listed.iter().copied().filter(|&pid| !met(pid)));
}

/// Reads what the walk misses from `/proc`, and forgets what is gone, or was only born while the walk went on.
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

/// Adds the threads that an iterator met on their own to their processes, as the kernel does.
fn fold_threads(records: &mut [Record], threads: &[ThreadRecord], order: &[Slot]) {
    let mut last: Option<(u32, usize)> = None;
    for thread in threads.iter().filter(|thread| thread.tid != thread.tgid) {
        let at = match last {
            Some((tgid, at)) if tgid == thread.tgid => at,
            _ => {
                let Ok(slot) = order.binary_search_by_key(&thread.tgid, |slot| slot.pid) else {
                    continue;
                };
                // A process that was read from /proc has its threads folded in.
                let Some(at) = order[slot].in_walk() else {
                    continue;
                };
                last = Some((thread.tgid, at));
                at
            }
        };
        let record = &mut records[at];
        record.identity.seen_threads += 1;
        let cpu = &mut record.cpu;
        cpu.sampled_utime_ns += thread.sampled_utime_ns;
        cpu.sampled_stime_ns += thread.sampled_stime_ns;
        cpu.sum_exec_ns += thread.sum_exec_ns;
        cpu.gtime_ns += thread.gtime_ns;
        cpu.minflt += thread.minflt;
        cpu.majflt += thread.majflt;
        let (io, more) = (&mut record.io, &thread.io);
        io.rchar += more.rchar;
        io.wchar += more.wchar;
        io.syscr += more.syscr;
        io.syscw += more.syscw;
        io.read_bytes += more.read_bytes;
        io.write_bytes += more.write_bytes;
        io.cancelled_write_bytes += more.cancelled_write_bytes;
    }
}

fn boottime_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
