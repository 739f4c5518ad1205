//! Room in the arrays: made when a walk lacks it, and given back. A map cannot change its size, so the programs are loaded
//! again.

use super::{
    Bpf, allowance,
    capacity::{Beside, Capacity, Shrink},
    object::Tasks,
    run::{Run, Settings},
};
use crate::base::{
    error::Error,
    host::{running_processes, running_tasks},
};

/// The most repetitions of a walk whose table outgrows its array.
pub(super) const MAX_GROWTHS: u32 = 8;
/// Memory for loading the programs, apart from the maps: the verifier, libbpf and the kernel's types. 6.18 uses up to
/// 5.3 MiB for all fields: `memory.max_usage_in_bytes` of a control group of version 1.
const LOADING_BYTES: u64 = 8 << 20;

impl Bpf {
    /// Makes room for what a walk lacked.
    pub(super) fn grow(&mut self, run: &Run, times: u32) -> Result<(), Error> {
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
        let now = self.needed_now();
        self.reload(capacity.grown(run, now, times))
    }

    /// Makes room for the processes that there are now, and for some that start meanwhile.
    pub(crate) fn reserve(&mut self) -> Result<(), Error> {
        let (capacity, needed) = (self.tasks.capacity, self.needed_now());
        if capacity.holds(needed.with_little_room()) {
            return Ok(());
        }
        self.last = None;
        self.reload(capacity.max(needed.with_room()))
    }

    /// Gives back the memory of the arrays. The last walk is lost; the next one makes room again.
    pub(crate) fn release(&mut self) -> Result<(), Error> {
        self.last = None;
        self.resize_to = None;
        self.shrink = Shrink::default();
        self.reload(Capacity::default().with_room())
    }

    fn needed_now(&self) -> Capacity {
        let processes = running_processes().unwrap_or(0);
        let threads = running_tasks().unwrap_or(processes);
        Capacity::needed_by(processes, self.threads.count(processes, threads))
    }

    /// Loads the programs again with maps of these sizes. If that fails, the old ones stay.
    pub(super) fn reload(&mut self, capacity: Capacity) -> Result<(), Error> {
        allow(capacity, Beside::of(self.walk, self.settings.keeps != 0))?;
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
}

/// Fails if this process may not allocate maps of this size.
pub(super) fn allow(capacity: Capacity, beside: Beside) -> Result<(), Error> {
    allowance::check(capacity.bytes(beside) + LOADING_BYTES)
}
