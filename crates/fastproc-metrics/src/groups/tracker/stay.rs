//! Processes whose records have not changed since the last update.

use fastproc::Process;

use super::{Moment, Tracked, Tracker, is_same};

/// What a process adds to the gauges of its group, derived only from its record.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    threads: u64,
    resident: u64,
    virt: u64,
    swapped: u64,
    /// Whether the counters of I/O are visible.
    has_io: bool,
}

impl Part {
    pub(super) fn of(process: Process<'_>) -> Self {
        let mut part = Self {
            threads: u64::from(process.identity().num_threads),
            has_io: process.io().is_some(),
            ..Self::default()
        };
        if let Some(memory) = process.memory() {
            part.resident = memory.rss();
            part.virt = memory.vsize;
            part.swapped = memory.swap;
        }
        part
    }
}

impl Tracker {
    /// Whether a process with an unchanged record needs no further reading.
    pub(super) fn may_stay(&self, moment: Moment, entry: &Tracked) -> bool {
        !self.is_to_be_named(moment, entry.start_ns, Some(entry), false)
    }

    /// Adds a process whose record has not changed: it did nothing, and its current values are the same.
    pub(super) fn stay(&mut self, moment: Moment, mut tracked: Tracked) -> Tracked {
        tracked.begin(moment);
        tracked.had_many_threads = tracked.many_threads;
        tracked.switches = [0; 2];
        tracked.marks.stay(moment.boottime_ns);
        self.add_part(&tracked);
        tracked
    }

    /// Adds a process's current values to the gauges of its group.
    pub(super) fn add_part(&mut self, tracked: &Tracked) {
        let Some(group) = self.groups.get_mut(tracked.group) else {
            return;
        };
        let part = &tracked.part;
        self.errors.partial += u64::from(!part.has_io);
        let gauges = &mut group.now;
        gauges.procs += 1;
        gauges.threads += part.threads;
        gauges.resident += part.resident;
        gauges.virt += part.virt;
        gauges.swapped += part.swapped;
        gauges.started(Some(tracked.start_ns));
    }
}

impl Tracked {
    /// Begins an update.
    pub(super) fn begin(&mut self, moment: Moment) {
        self.seen_ns = moment.boottime_ns;
        self.orphan = false;
        self.leader_seen = false;
        self.joined = false;
        self.moved = false;
    }
}

/// Whether this is the entry of the process. With an unchanged record it is the process that had the pid.
pub(super) fn is_still(entry: &Tracked, process: Process<'_>, changed: bool) -> bool {
    if changed {
        is_same(entry, process)
    } else {
        entry.pid == process.pid()
    }
}
