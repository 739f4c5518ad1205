//! The BPF sources: the same records by two kinds of walk.

mod layout;
mod mapping;
mod object;
mod support;

use std::time::Duration;

use object::{Capacity, FIND_CPU_OFFSETS, Run, Settings, Tasks};
pub(crate) use object::{Log, Walk};

use crate::{
    Error, Fields,
    host::{Host, online_cpus},
};

/// Words of the pool that one record may take at once; `POOL_SLACK` of tasks/maps.h.
const POOL_SLACK: u32 = 2048;
/// A walk is repeated this often when the table outgrows its array, each time with twice the room.
const MAX_GROWTHS: u32 = 8;

/// What one walk met, apart from the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkStats {
    /// Records that were replaced while being read, and are read again from `/proc`.
    pub(crate) torn: u32,
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
    settings: Settings,
    /// Whether the per-CPU parts of the resident set can be found.
    percpu: bool,
    /// Whether this kernel shows the exact resident set, per-CPU parts included, in statm and status.
    exact_rss: bool,
    /// Whether this kernel has the features of a thread.
    thread_features: bool,
    reuse_actions: bool,
    online: Vec<u32>,
    possible_offsets: Vec<u64>,
    load_time: Duration,
}

impl Bpf {
    /// Checks, loads and prepares. `expected`: how many processes and threads there are about now.
    pub(crate) fn open(
        walk: Walk,
        fields: Fields,
        host: &Host,
        expected: (u32, u32),
    ) -> Result<Self, Error> {
        let started = std::time::Instant::now();
        let support = support::check(walk)?;
        let (processes, threads) = expected;
        let folds_late = walk == Walk::Iterator && fields.intersects(Fields::CPU | Fields::IO);
        let wants_threads = folds_late || fields.contains(Fields::THREADS);
        let capacity = Capacity {
            records: with_room(processes),
            threads: if wants_threads { with_room(threads) } else { 1 },
            pool: 2 * POOL_SLACK + with_room(processes),
        };
        let settings = Settings {
            groups: fields.bits(),
            page_shift: host.page_size.trailing_zeros(),
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
        let tasks = Tasks::load(walk, &settings, capacity, percpu)?;
        let mut source = Self {
            walk,
            tasks,
            settings,
            percpu,
            exact_rss: percpu,
            thread_features: support.thread_features,
            reuse_actions: true,
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

    /// Whether signal actions of processes that have not run since the last walk may be taken from it.
    pub(crate) fn set_reuse_actions(&mut self, reuse: bool) {
        self.reuse_actions = reuse;
    }

    /// Walks all tasks and returns the records where they lie. `Table::records` may hold torn ones.
    pub(crate) fn collect(&mut self) -> Result<TableMut<'_>, Error> {
        let mut grown = 0;
        loop {
            self.prepare()?;
            match self.walk {
                Walk::OpenCoded => self.tasks.call("walk")?,
                Walk::Iterator => self.tasks.iterate()?,
            }
            let run = self.tasks.run.as_slice()[0];
            if run.lost_records == 0 && run.lost_threads == 0 && run.lost_pool == 0 {
                let walk = WalkStats {
                    torn: run.torn,
                    reused_actions: run.reused_actions,
                    grown,
                };
                return Ok(TableMut {
                    records: &mut self.tasks.records.as_mut_slice()[..run.records as usize],
                    index: &self.tasks.index.as_slice()[..run.records as usize],
                    threads: &mut self.tasks.threads.as_mut_slice()[..run.threads as usize],
                    pool: &self.tasks.pool.as_slice()[..run.pool as usize],
                    walk,
                });
            }
            grown += 1;
            self.grow(&run, grown)?;
        }
    }

    fn prepare(&mut self) -> Result<(), Error> {
        // A CPU that comes or goes changes whose parts of rss count; the file costs a microsecond.
        if self.exact_rss {
            let online = online_cpus()?;
            if online != self.online {
                self.online = online;
                self.set_cpu_offsets();
            }
        }
        let run = &mut self.tasks.run.as_mut_slice()[0];
        let previous = if self.reuse_actions { run.records } else { 0 };
        let cpus = if self.exact_rss {
            self.online.len() as u32
        } else {
            0
        };
        *run = Run {
            previous,
            cpus,
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
        let larger = |size: u32, lost: u32| {
            if lost == 0 {
                size
            } else {
                with_room(size.saturating_add(lost))
            }
        };
        let capacity = Capacity {
            records: larger(capacity.records, run.lost_records),
            threads: larger(capacity.threads, run.lost_threads),
            pool: larger(capacity.pool, run.lost_pool),
        };
        self.settings.max_pool = capacity.pool;
        self.tasks = Tasks::load(self.walk, &self.settings, capacity, self.percpu)?;
        self.find_cpu_offsets()
    }

    fn find_cpu_offsets(&mut self) -> Result<(), Error> {
        self.online.clear();
        if !self.percpu {
            return Ok(());
        }
        self.tasks.call(FIND_CPU_OFFSETS)?;
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

/// An entry of the index, `FP_INDEX_*` of record.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry(pub(crate) u64);

impl IndexEntry {
    /// The process.
    pub(crate) const fn pid(self) -> u32 {
        self.0 as u32
    }

    /// Whether its record is torn.
    pub(crate) const fn is_torn(self) -> bool {
        self.0 & (1 << 32) != 0
    }

    /// Whether it is another process than at this place of the walk before, or has run since, or may have.
    pub(crate) const fn is_changed(self) -> bool {
        self.0 & (1 << 33) != 0
    }
}

/// The records of a walk while the library still works on them.
#[derive(Debug)]
pub(crate) struct TableMut<'a> {
    pub(crate) records: &'a mut [crate::record::Record],
    /// For each record its pid, and what of it changed: see [`IndexEntry`].
    pub(crate) index: &'a [u64],
    pub(crate) threads: &'a mut [crate::record::ThreadRecord],
    pub(crate) pool: &'a [u64],
    pub(crate) walk: WalkStats,
}

/// Half as many again, and some: a table grows in bursts.
fn with_room(count: u32) -> u32 {
    count.saturating_add(count / 2).saturating_add(256)
}
