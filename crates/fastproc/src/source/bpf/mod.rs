//! The BPF sources: the same records by two kinds of walk.

mod allowance;
mod capacity;
mod object;

/// What the programs and the library hand each other besides records.
pub(crate) mod run {
    #![allow(
        dead_code,
        reason = "some members and constants are for the programs alone"
    )]
    include!(concat!(env!("OUT_DIR"), "/run.rs"));
}

use std::{path::Path, time::Duration};

use capacity::{Capacity, Shrink};
use object::Tasks;
use run::{Run, Settings};

use crate::{
    base::{
        error::Error,
        host::{Host, OnlineCpus, boottime_ns, running_processes, running_tasks},
    },
    kernel::{KernelTypes, support, walk::Walk},
    records::fields::Fields,
    snapshot::table::Table,
};

/// How long one run of the walk may keep its CPU from everything else: a section of at most 200 us, less what the last
/// look at the clock may be late by.
pub(crate) const SECTION: Duration = Duration::from_micros(150);
/// A walk is repeated this often when the table outgrows its array.
const MAX_GROWTHS: u32 = 8;
/// What it takes to load the programs, apart from the maps: the verifier, libbpf and the kernel's types.
const LOADING_BYTES: u64 = 4 << 20;

/// What one walk met, apart from the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkStats {
    /// Time since boot when the walk that counts began.
    pub(crate) began_ns: u64,
    /// Signal action tables that had not to be read again, because the process has not run since.
    pub(crate) reused_actions: u32,
    /// Times that the walk was repeated because an array was too small.
    pub(crate) grown: u32,
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
    /// Whether the per-CPU parts of the resident set can be found.
    percpu: bool,
    /// Whether this kernel shows the exact resident set, per-CPU parts included, in statm and status.
    exact_rss: bool,
    /// Whether this kernel has the features of a thread.
    thread_features: bool,
    threads: Listed,
    shrink: Shrink,
    /// What the arrays go back to before the next walk: what the last one read may still be looked at.
    shrink_to: Option<Capacity>,
    section: Duration,
    online_list: OnlineCpus,
    online: Vec<u32>,
    possible_offsets: Vec<u64>,
    load_time: Duration,
}

impl Bpf {
    /// Checks, loads and prepares. `expected`: how many processes and threads there are about now. `lone_threads`: those
    /// are listed that are the only ones of their processes.
    pub(crate) fn open(
        walk: Walk,
        fields: Fields,
        host: &Host,
        expected: (u32, u32),
        lone_threads: bool,
    ) -> Result<Self, Error> {
        let started = std::time::Instant::now();
        let (processes, threads) = expected;
        let folds_late = walk == Walk::Iterator && fields.intersects(Fields::CPU | Fields::IO);
        let listed = if !folds_late && !fields.contains(Fields::THREADS) {
            Listed::None
        } else if lone_threads || walk == Walk::Iterator {
            Listed::All
        } else {
            Listed::OfMany
        };
        let capacity = Capacity::needed_by(processes, listed.of(processes, threads)).with_room();
        let support = support::check(walk, fields, || allow(walk, capacity))?;
        let settings = Settings {
            groups: fields.bits(),
            page_shift: host.page_size.trailing_zeros(),
            lone_threads: u32::from(listed != Listed::OfMany),
            reserved: 0,
            cpu_words: host.possible_cpus.div_ceil(64),
            mem_words: host.possible_nodes.div_ceil(64),
            max_pool: capacity.pool,
            max_cpus: host.possible_cpus,
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
            shrink_to: None,
            section: SECTION,
            online_list: OnlineCpus::open(),
            online: Vec::new(),
            possible_offsets: Vec::new(),
            load_time: Duration::ZERO,
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

    /// Processes that there is room for before the array has to grow.
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
    }

    /// How long one run of the walk may take, at least one task long. Sections of no length have a seam at every task.
    pub(crate) fn set_section(&mut self, section: Duration) {
        self.section = section;
    }

    /// Walks all tasks and returns the records where they lie. `Table::records` may hold torn ones.
    pub(crate) fn collect(&mut self) -> Result<TableMut<'_>, Error> {
        if let Some(capacity) = self.shrink_to.take() {
            // What cannot be had stays as it is: there is room enough.
            let _ = self.reload(capacity);
        }
        let mut grown = 0;
        loop {
            self.prepare()?;
            let began_ns = boottime_ns();
            self.tasks.walk()?;
            let run = self.tasks.run.as_slice()[0];
            if run.lost_records == 0 && run.lost_threads == 0 && run.lost_pool == 0 {
                let capacity = self.tasks.capacity;
                self.shrink_to = self.shrink.after(&run, capacity, began_ns);
                let walk = WalkStats {
                    began_ns,
                    reused_actions: run.reused_actions,
                    grown,
                };
                return Ok(TableMut {
                    records: &mut self.tasks.records.as_mut_slice()[..run.records as usize],
                    index: &mut self.tasks.index.as_mut_slice()[..run.records as usize],
                    threads: &mut self.tasks.threads.as_mut_slice()[..run.threads as usize],
                    pool: &self.tasks.pool.as_slice()[..run.pool as usize],
                    walk,
                });
            }
            grown += 1;
            self.grow(&run, grown)?;
        }
    }

    /// What the last walk has met, as the library has left it.
    pub(crate) fn table(&self) -> Table<'_> {
        let run = &self.tasks.run.as_slice()[0];
        Table {
            records: &self.tasks.records.as_slice()[..run.records as usize],
            threads: &self.tasks.threads.as_slice()[..run.threads as usize],
            pool: &self.tasks.pool.as_slice()[..run.pool as usize],
        }
    }

    fn prepare(&mut self) -> Result<(), Error> {
        // A CPU that comes or goes changes whose parts of rss count; to read the file costs a microsecond.
        if self.exact_rss
            && let Some(online) = self.online_list.changed()?
            && online != self.online
        {
            self.online = online;
            self.set_cpu_offsets();
        }
        let run = &mut self.tasks.run.as_mut_slice()[0];
        let cpus = if self.exact_rss {
            self.online.len() as u32
        } else {
            0
        };
        *run = Run {
            previous: run.records,
            cpus,
            section_ns: self.section.as_nanos() as u64,
            ..Run::default()
        };
        Ok(())
    }

    /// Makes more room and loads the programs again: a map cannot grow.
    fn grow(&mut self, run: &Run, times: u32) -> Result<(), Error> {
        let capacity = self.tasks.capacity;
        if times > MAX_GROWTHS {
            let (what, capacity) = match run {
                Run {
                    lost_records: 1.., ..
                } => ("processes", capacity.records),
                Run {
                    lost_threads: 1.., ..
                } => ("threads", capacity.threads),
                _ => ("words of group lists and nested ids", capacity.pool),
            };
            return Err(Error::Overflow { capacity, what });
        }
        let proc = Path::new("/proc");
        let processes = running_processes(proc).unwrap_or(0);
        let threads = running_tasks(proc).unwrap_or(processes);
        let now = Capacity::needed_by(processes, self.threads.of(processes, threads));
        self.reload(capacity.grown(run, now, times))
    }

    /// Loads the programs again with maps of these sizes. Where that fails those that are loaded stay.
    fn reload(&mut self, capacity: Capacity) -> Result<(), Error> {
        allow(self.walk, capacity)?;
        let settings = Settings {
            max_pool: capacity.pool,
            ..self.settings
        };
        let tasks = Tasks::load(self.walk, &settings, capacity, self.percpu, &self.types)?;
        let before = std::mem::replace(&mut self.tasks, tasks);
        if let Err(error) = self.find_cpu_offsets() {
            self.tasks = before;
            return Err(error);
        }
        self.settings = settings;
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
    /// Those of processes with several.
    OfMany,
}

impl Listed {
    /// How many of these they are, or a few more.
    fn of(self, processes: u32, threads: u32) -> u32 {
        match self {
            Self::None => 0,
            Self::All => threads,
            // Each that is not the leading one may have one of those beside it.
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

    /// The process.
    pub(crate) const fn pid(self) -> u32 {
        self.0 as u32
    }

    /// Whether its record is torn.
    pub(crate) const fn is_torn(self) -> bool {
        self.0 & run::INDEX_TORN != 0
    }

    /// Whether it is another process than at this place of the walk before, or has run since, or may have.
    pub(crate) const fn is_changed(self) -> bool {
        self.0 & run::INDEX_CHANGED != 0
    }
}

/// The records of a walk while the library still works on them.
#[derive(Debug)]
pub(crate) struct TableMut<'a> {
    pub(crate) records: &'a mut [crate::records::record::Record],
    /// For each record its pid, and what of it changed: see [`IndexEntry`].
    pub(crate) index: &'a mut [u64],
    pub(crate) threads: &'a mut [crate::records::record::ThreadRecord],
    pub(crate) pool: &'a [u64],
    pub(crate) walk: WalkStats,
}

/// Refuses maps that this process may not take.
fn allow(walk: Walk, capacity: Capacity) -> Result<(), Error> {
    allowance::check(capacity.bytes(walk == Walk::OpenCoded) + LOADING_BYTES)
}
