//! A group, and all groups by name.

use std::collections::HashMap;

use fastproc::record::State;

use super::{Counts, NONE};
use crate::exposition::escape;

/// The states that process-exporter distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// `R`.
    Running,
    /// `S`.
    Sleeping,
    /// `D`.
    Waiting,
    /// `Z`.
    Zombie,
    /// All others.
    Other,
}

impl GroupState {
    /// All, in the order of [`Gauges::states`].
    pub const ALL: [Self; 5] = [
        Self::Running,
        Self::Sleeping,
        Self::Waiting,
        Self::Zombie,
        Self::Other,
    ];

    pub(super) const fn of(state: State) -> Self {
        match state {
            State::Running => Self::Running,
            State::Sleeping => Self::Sleeping,
            State::DiskSleep => Self::Waiting,
            State::Zombie => Self::Zombie,
            _ => Self::Other,
        }
    }
}

/// Current values of a group: the sums over its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Processes.
    pub procs: u64,
    /// Threads.
    pub threads: u64,
    /// Resident memory, in bytes.
    pub resident: u64,
    /// Virtual memory, in bytes.
    pub virt: u64,
    /// Swapped memory, in bytes.
    pub swapped: u64,
    /// Start of the oldest process, in nanoseconds after boot; `None` without processes.
    pub oldest_start_ns: Option<u64>,
    /// Threads by state, in the order of [`GroupState::ALL`].
    pub states: [u64; 5],
}

impl Gauges {
    pub(super) fn add(&mut self, more: &Self) {
        self.procs += more.procs;
        self.threads += more.threads;
        self.resident += more.resident;
        self.virt += more.virt;
        self.swapped += more.swapped;
        self.started(more.oldest_start_ns);
        for (sum, more) in self.states.iter_mut().zip(more.states) {
            *sum += more;
        }
    }

    pub(super) fn started(&mut self, start_ns: Option<u64>) {
        self.oldest_start_ns = match (self.oldest_start_ns, start_ns) {
            (Some(oldest), Some(start)) => Some(oldest.min(start)),
            (oldest, start) => oldest.or(start),
        };
    }
}

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: Box<str>,
    /// `groupname="…"`, as in every series.
    pub labels: Box<str>,
    /// What its processes did while it was shown, including exited ones.
    pub total: Counts,
    /// What they did since the last update.
    pub grown: Counts,
    /// Current values.
    pub now: Gauges,
    /// Whether it has its own series. The others are folded into one group.
    pub shown: bool,
}

/// All groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    slots: Vec<Option<Group>>,
    free: Vec<u32>,
    by_name: HashMap<Box<str>, u32>,
}

impl Groups {
    /// The group of this name; created if it does not exist.
    pub(super) fn intern(&mut self, name: &str) -> u32 {
        if let Some(&at) = self.by_name.get(name) {
            return at;
        }
        let group = Group {
            name: name.into(),
            labels: format!("groupname=\"{}\"", escape(name)).into(),
            total: Counts::default(),
            grown: Counts::default(),
            now: Gauges::default(),
            shown: false,
        };
        let at = if let Some(at) = self.free.pop() {
            self.slots[at as usize] = Some(group);
            at
        } else {
            self.slots.push(Some(group));
            self.slots.len() as u32 - 1
        };
        self.by_name.insert(name.into(), at);
        at
    }

    pub(super) fn remove(&mut self, at: u32) {
        if let Some(group) = self.slots[at as usize].take() {
            self.by_name.remove(&group.name);
            self.free.push(at);
        }
    }

    pub(super) fn get(&self, at: u32) -> Option<&Group> {
        if at == NONE {
            return None;
        }
        self.slots.get(at as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut Group> {
        if at == NONE {
            return None;
        }
        self.slots.get_mut(at as usize)?.as_mut()
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Group)> + Clone {
        (0..)
            .zip(&self.slots)
            .filter_map(|(at, slot)| Some((at, slot.as_ref()?)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Group)> {
        (0..)
            .zip(&mut self.slots)
            .filter_map(|(at, slot)| Some((at, slot.as_mut()?)))
    }
}
