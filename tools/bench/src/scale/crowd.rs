//! Idle processes, as many as the kernel and its memory have room for.

use std::collections::BTreeSet;

use fastproc::{Process, Snapshot};

use crate::{command::bytes, idle::Idle, measure::Failure};

/// Processes that are started at once, before memory is looked at again.
const STEP: usize = 2_000;

/// What part of the memory stays free.
const KEPT_FREE: u64 = 8;

/// What one task needs at least: its kernel stack, its structures and its page tables. Until it is measured.
pub const LEAST_BYTES: u64 = 40 << 10;

/// Fails if this many more tasks, each of this size, need memory that others may need.
pub fn room_for(more: usize, bytes: u64) -> Result<(), Failure> {
    let spare = meminfo("MemAvailable:")?.saturating_sub(meminfo("MemTotal:")? / KEPT_FREE);
    if more as u64 * bytes > spare {
        return Err(format!("there is no memory for {more} more tasks; give --processes and --threads smaller numbers").into());
    }
    Ok(())
}

/// Idle processes.
pub struct Crowd {
    groups: Vec<Idle>,
    /// Bytes available before the first of them.
    available: u64,
    /// Memory that one of them has taken, about.
    pub bytes_of_process: u64,
}

impl Crowd {
    /// No process yet.
    pub fn new() -> Result<Self, Failure> {
        Ok(Self {
            groups: Vec::new(),
            available: meminfo("MemAvailable:")?,
            bytes_of_process: LEAST_BYTES,
        })
    }

    /// Starts processes until there are this many.
    pub fn grow_to(&mut self, wanted: usize) -> Result<(), Failure> {
        while self.count() < wanted {
            let more = (wanted - self.count()).min(STEP);
            room_for(more, self.bytes_of_process)?;
            self.groups.push(Idle::start(more)?);
            let used = self.available.saturating_sub(meminfo("MemAvailable:")?);
            self.bytes_of_process = (used / self.count() as u64).max(LEAST_BYTES);
        }
        Ok(())
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.groups.iter().map(Idle::count).sum()
    }

    /// Their pids.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().flat_map(Idle::pids)
    }

    /// Some of their pids, from the first to the last.
    pub fn sample(&self, wanted: usize) -> Vec<u32> {
        let each = (self.count() / wanted).max(1);
        self.pids().step_by(each).collect()
    }

    /// Checks that a snapshot has each of them once. Returns how many processes it has.
    pub fn check_snapshot(&self, snapshot: &Snapshot<'_>) -> Result<usize, Failure> {
        self.check(snapshot.iter().map(Process::pid), "a snapshot")?;
        Ok(snapshot.len())
    }

    /// Checks that a number of processes includes them.
    pub fn check_count(&self, found: usize, whose: &str) -> Result<(), Failure> {
        if found < self.count() {
            return Err(format!("{whose} has {found} of {} processes", self.count()).into());
        }
        Ok(())
    }

    /// Checks that a list of pids has each of them once.
    pub fn check(&self, found: impl Iterator<Item = u32>, whose: &str) -> Result<(), Failure> {
        let mut missing: BTreeSet<u32> = self.pids().collect();
        let mut seen = BTreeSet::new();
        for pid in found {
            if !seen.insert(pid) {
                return Err(format!("{whose} has process {pid} twice").into());
            }
            missing.remove(&pid);
        }
        match missing.first() {
            None => Ok(()),
            Some(pid) => Err(format!(
                "{whose} lacks {} of {} processes, {pid} first",
                missing.len(),
                self.count()
            )
            .into()),
        }
    }
}

/// A value of `/proc/meminfo`, in bytes.
fn meminfo(name: &str) -> Result<u64, Failure> {
    bytes("/proc/meminfo", name)
}
