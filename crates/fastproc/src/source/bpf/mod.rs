//! The BPF sources: two kinds of walk that write the same records.

mod allowance;
mod capacity;
mod object;
mod order;
mod room;
#[cfg(test)]
mod tests;

/// Data that the programs and the library exchange besides records.
pub(crate) mod run {
    #![allow(
        dead_code,
        reason = "some members and constants are for the programs alone"
    )]
    include!(concat!(env!("OUT_DIR"), "/run.rs"));
}

use std::time::Duration;

use capacity::{Beside, Capacity, Shrink};
use object::Tasks;
pub(crate) use order::ByPid;
use room::allow;
use run::{Run, Settings};

use crate::{
    base::{
        error::Error,
        host::{Host, OnlineCpus, boottime_ns},
    },
    kernel::{KernelTypes, support, walk::Walk},
    records::fields::Fields,
    snapshot::{
        kept::{Kept, Mark, Number},
        table::Table,
    },
};

/// How long one run of the walk may keep its CPU busy, and a little longer: until the program reads the clock again.
pub(crate) const SECTION: Duration = Duration::from_micros(150);
/// Words that may be added to the pool for changed records before all of it is written again. The pool may also grow to
/// twice the words in use.
const POOL_SPARE: u32 = 1024;

/// Environment variable by which a user disables keeping records.
const KEEP_VARIABLE: &str = "FASTPROC_KEEP_RECORDS";

/// Whether records of unchanged processes are kept, if the caller does not say.
pub(crate) fn keeps_records() -> bool {
    std::env::var_os(KEEP_VARIABLE).is_none_or(|value| value != "0")
}

/// Statistics of one walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkStats {
    /// Time since boot when the walk of the snapshot began.
    pub(crate) began_ns: u64,
    /// And when it ended.
    pub(crate) ended_ns: u64,
    /// Signal action tables that were not read again, because the process has not run since.
    pub(crate) reused_actions: u32,
    /// How many times the walk was repeated because an array was too small.
    pub(crate) grown: u32,
    /// Records that were proven unchanged, and not read again.
    pub(crate) kept: u32,
    /// Records that were read although they could have been kept, and that differed.
    pub(crate) disproven: u32,
    /// Whether the walk before it was not returned, so that records unchanged since then may be new to the caller.
    pub(crate) repeated: bool,
}

/// Choices of the caller, besides the fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Whether to list also the only thread of a process.
    pub(crate) lone_threads: bool,
    /// Whether to keep records of unchanged processes.
    pub(crate) keeps_records: bool,
    /// Whether the caller walks only once.
    pub(crate) walks_once: bool,
}

/// A loaded BPF source.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about this kernel or this caller"
)]
pub(crate) struct Bpf {
    walk: Walk,
    tasks: Tasks,
    types: KernelTypes,
    settings: Settings,
    /// Whether the per-CPU parts of the resident set can be read.
    percpu: bool,
    /// Whether statm and status of this kernel show the exact resident set, with its per-CPU parts.
    exact_rss: bool,
    /// Whether this kernel has the features of a thread.
    thread_features: bool,
    threads: Listed,
    shrink: Shrink,
    /// The sizes that the arrays get before the next walk. Until then the caller may still read the last one.
    resize_to: Option<Capacity>,
    section: Duration,
    /// Counts walks.
    round: u32,
    /// The number of words up to which the pool may be extended. Kept records point into it.
    pool_limit: u32,
    online_list: OnlineCpus,
    online: Vec<u32>,
    possible_offsets: Vec<u64>,
    load_time: Duration,
    /// The last walk, if it was complete.
    last: Option<WalkStats>,
}

impl Bpf {
    /// Checks this host, loads the programs and prepares them. `expected` is the approximate number of processes and
    /// threads now.
    pub(crate) fn open(
        walk: Walk,
        fields: Fields,
        host: &Host,
        expected: (u32, u32),
        options: Options,
    ) -> Result<Self, Error> {
        let started = std::time::Instant::now();
        let (processes, threads) = expected;
        let folds_late = walk == Walk::Iterator && fields.intersects(Fields::CPU | Fields::IO);
        let listed = if !folds_late && !fields.contains(Fields::THREADS) {
            Listed::None
        } else if options.lone_threads {
            Listed::All
        } else {
            Listed::OfMany
        };
        let needed = Capacity::needed_by(processes, listed.count(processes, threads));
        let capacity = if options.walks_once {
            needed.with_little_room()
        } else {
            needed.with_room()
        };
        let beside = Beside::of(walk, options.keeps_records);
        let support = support::check(walk, fields, || allow(capacity, beside))?;
        let settings = Settings {
            groups: fields.bits(),
            page_shift: host.page_size.trailing_zeros(),
            lone_threads: u32::from(listed != Listed::OfMany),
            keeps: u32::from(options.keeps_records),
            cpu_words: host.possible_cpus.div_ceil(64),
            mem_words: host.possible_nodes.div_ceil(64),
            max_pool: capacity.pool,
            max_cpus: host.possible_cpus,
            nested: u32::from(support.nested),
            reserved: 0,
            sched_start: support.scheduler.sched.start,
            sched_end: support.scheduler.sched.end,
            lock_start: support.scheduler.locks.start,
            lock_end: support.scheduler.locks.end,
        };
        let percpu = support.percpu_lookup && fields.contains(Fields::MEMORY);
        let tasks = Tasks::load(walk, &settings, capacity, percpu, &support.types)?;
        let mut source = Self {
            walk,
            tasks,
            types: support.types,
            settings,
            percpu,
            exact_rss: percpu,
            thread_features: support.thread_features,
            threads: listed,
            shrink: Shrink::default(),
            resize_to: None,
            section: SECTION,
            round: 0,
            pool_limit: 0,
            online_list: OnlineCpus::open(),
            online: Vec::new(),
            possible_offsets: Vec::new(),
            load_time: Duration::ZERO,
            last: None,
        };
        source.find_cpu_offsets()?;
        source.load_time = started.elapsed();
        Ok(source)
    }

    /// Time that checking, loading and verifying the programs took.
    pub(crate) fn load_time(&self) -> Duration {
        self.load_time
    }

    /// Bytes of the arrays that the kernel and this process share.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.tasks.memory_bytes()
    }

    /// Whether the last walk kept records, and whether the type information lacks members that prove a record
    /// unchanged.
    pub(crate) fn keeps_records(&self) -> (bool, bool) {
        let run = &self.tasks.run.as_slice()[0];
        (run.keeps != 0, run.lacks_words != 0)
    }

    /// Number of processes that fit before the array must grow.
    pub(crate) fn capacity(&self) -> u32 {
        self.tasks.capacity.records
    }

    /// Whether records hold the features of a thread that status shows on x86.
    pub(crate) fn has_thread_features(&self) -> bool {
        self.thread_features
    }

    /// See [`Calibration`](crate::Calibration): whether statm counts the per-CPU parts of the resident set.
    pub(crate) fn set_exact_rss(&mut self, exact: bool) {
        self.exact_rss = exact && self.percpu;
        // The last walk has counted otherwise.
        self.last = None;
    }

    /// How long one run of the walk may take; it takes at least one task. With zero, the walk pauses after
    /// every task.
    pub(crate) fn set_section(&mut self, section: Duration) {
        self.section = section;
    }

    /// How long the last walk kept its CPU at most without a pause. `None`: it paused after every task.
    pub(crate) fn longest_section(&self) -> Option<Duration> {
        let run = &self.tasks.run.as_slice()[0];
        (self.walk == Walk::OpenCoded).then(|| Duration::from_nanos(run.longest_ns))
    }

    /// Walks all tasks and returns the records where the programs wrote them. Some of `Table::records` may be
    /// torn.
    pub(crate) fn collect(&mut self) -> Result<TableMut<'_>, Error> {
        self.last = None;
        if let Some(capacity) = self.resize_to.take() {
            // If that fails, the arrays stay: they are large enough.
            let _ = self.reload(capacity);
        }
        let (mut grown, mut repeated) = (0, false);
        loop {
            self.prepare()?;
            let began_ns = boottime_ns();
            self.tasks.walk()?;
            let run = self.tasks.run.as_slice()[0];
            self.free_places();
            if run.lost_pool > 0 && run.fresh_pool == 0 {
                self.pool_limit = 0;
                repeated = true;
                continue;
            }
            if run.lost_records == 0 && run.lost_threads == 0 && run.lost_pool == 0 {
                let capacity = self.tasks.capacity;
                self.resize_to = self.shrink.after(&run, capacity, began_ns);
                if run.fresh_pool != 0 {
                    self.pool_limit = run.pool.saturating_mul(2).saturating_add(POOL_SPARE);
                    self.resize_to = capacity.with_pool(&run, self.pool_limit).or(self.resize_to);
                }
                let walk = WalkStats {
                    began_ns,
                    ended_ns: boottime_ns(),
                    reused_actions: run.reused_actions,
                    grown,
                    kept: run.kept,
                    disproven: run.disproven,
                    repeated,
                };
                self.last = Some(walk);
                return Ok(self.walked(walk));
            }
            grown += 1;
            self.grow(&run, grown)?;
        }
    }

    /// When the last walk ended, as boot time, if nobody has used it and no record must be read again.
    pub(crate) fn last_ended_ns(&self) -> Option<u64> {
        let walk = self.last.as_ref()?;
        let is_whole = !self
            .index()
            .iter()
            .any(|&entry| IndexEntry(entry).is_torn());
        is_whole.then_some(walk.ended_ns)
    }

    /// The last walk, whose table nobody else may have changed; or a new one, if that would be another.
    pub(crate) fn last_or_collect(&mut self) -> Result<TableMut<'_>, Error> {
        match self.last.take() {
            Some(walk) => Ok(self.walked(walk)),
            None => self.collect(),
        }
    }

    fn walked(&mut self, walk: WalkStats) -> TableMut<'_> {
        let run = self.tasks.run.as_slice()[0];
        TableMut {
            records: &mut self.tasks.records.as_mut_slice()[..run.records as usize],
            index: &mut self.tasks.index.as_mut_slice()[..run.records as usize],
            threads: &mut self.tasks.threads.as_mut_slice()[..run.threads as usize],
            pool: &self.tasks.pool.as_slice()[..run.pool as usize],
            order: ByPid::of(self.tasks.order.as_ref(), &run),
            walk,
        }
    }

    /// The records of the last walk, as completed by the library.
    pub(crate) fn table(&self) -> Table<'_> {
        let run = &self.tasks.run.as_slice()[0];
        Table {
            records: &self.tasks.records.as_slice()[..run.records as usize],
            threads: &self.tasks.threads.as_slice()[..run.threads as usize],
            pool: &self.tasks.pool.as_slice()[..run.pool as usize],
        }
    }

    /// The index of the last walk: see [`IndexEntry`].
    pub(crate) fn index(&self) -> &[u64] {
        let run = &self.tasks.run.as_slice()[0];
        &self.tasks.index.as_slice()[..run.records as usize]
    }

    fn prepare(&mut self) -> Result<(), Error> {
        // When a CPU goes online or offline, other per-CPU parts of rss count. Reading the file takes a microsecond.
        if self.exact_rss
            && let Some(online) = self.online_list.changed()?
            && online != self.online
        {
            self.online = online;
            self.set_cpu_offsets();
        }
        self.round = self.round.wrapping_add(1);
        let most = self.tasks.capacity.words();
        let run = &mut self.tasks.run.as_mut_slice()[0];
        let cpus = if self.exact_rss {
            self.online.len() as u32
        } else {
            0
        };
        let pool = if run.keeps != 0 && run.pool <= self.pool_limit.min(most) {
            run.pool
        } else {
            0
        };
        let before = order::Before::of(self.walk, run);
        *run = Run {
            records: before.records,
            free: before.free,
            previous: before.met,
            pool,
            fresh_pool: u32::from(pool == 0),
            cpus,
            section_ns: self.section.as_nanos() as u64,
            round: self.round,
            ..Run::default()
        };
        Ok(())
    }

    fn find_cpu_offsets(&mut self) -> Result<(), Error> {
        self.online_list.forget();
        self.online.clear();
        if !self.percpu {
            return Ok(());
        }
        self.tasks.find_cpu_offsets()?;
        self.possible_offsets = self.tasks.cpu_offsets.as_slice().to_vec();
        Ok(())
    }

    /// Puts the online CPUs' offsets first in the map, where the programs look for them.
    fn set_cpu_offsets(&mut self) {
        let offsets = self.tasks.cpu_offsets.as_mut_slice();
        for (slot, &cpu) in offsets.iter_mut().zip(&self.online) {
            *slot = self
                .possible_offsets
                .get(cpu as usize)
                .copied()
                .unwrap_or(0);
        }
    }
}

/// Which threads a walk lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    None,
    All,
    /// The threads of processes that have several.
    OfMany,
}

impl Listed {
    /// The number of threads to list, or slightly more.
    fn count(self, processes: u32, threads: u32) -> u32 {
        match self {
            Self::None => 0,
            Self::All => threads,
            // Each thread that is not a leader may have its leader listed with it.
            Self::OfMany => (threads.saturating_sub(processes).saturating_mul(2)).min(threads),
        }
    }
}

/// An entry of the index: a pid, and `FP_INDEX_*` of run.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry(pub(crate) u64);

impl IndexEntry {
    /// Marks its record as torn.
    pub(crate) const fn tear(entry: &mut u64) {
        *entry |= run::INDEX_TORN;
    }

    /// The pid.
    pub(crate) const fn pid(self) -> u32 {
        self.0 as u32
    }

    /// Whether its place is that of no process: none has pid 0.
    pub(crate) const fn is_free(self) -> bool {
        self.pid() == 0
    }

    /// Whether its record is torn.
    pub(crate) const fn is_torn(self) -> bool {
        self.0 & run::INDEX_TORN != 0
    }

    /// Whether the record may have changed: the process has run since, or the walk had met another process at this
    /// place.
    pub(crate) const fn is_changed(self) -> bool {
        self.0 & run::INDEX_CHANGED != 0
    }
}

/// The kept records of this walk, if they are those of the snapshot with number `of`.
pub(crate) const fn kept(index: &[u64], of: Number) -> Kept<'_> {
    let bit = run::INDEX_KEPT;
    match of {
        Number::NONE => Kept::NONE,
        of => Kept {
            by: Mark::Bit { index, bit },
            of,
        },
    }
}

/// The records of a walk, while the library completes them.
#[derive(Debug)]
pub(crate) struct TableMut<'a> {
    pub(crate) records: &'a mut [crate::records::record::Record],
    /// For each record, its pid and what changed: see [`IndexEntry`].
    pub(crate) index: &'a mut [u64],
    pub(crate) threads: &'a mut [crate::records::record::ThreadRecord],
    pub(crate) pool: &'a [u64],
    /// The places of the records in the order of their pids, if the iterator walked.
    pub(crate) order: ByPid<'a>,
    pub(crate) walk: WalkStats,
}
