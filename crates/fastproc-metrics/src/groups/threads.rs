//! Threads of groups, by name.

use std::collections::HashMap;

use fastproc::{difference::Marks, record::ThreadRecord};

use super::{Counts, NONE, OTHER};
use crate::{exposition::escape, names};

/// The name of a thread, as the kernel keeps it.
pub(super) type Comm = [u8; 16];

/// All threads of a group that have the same name.
#[derive(Clone, Debug)]
pub struct ThreadName {
    /// The group.
    pub(super) group: u32,
    comm: Comm,
    /// `groupname="…",threadname="…"`, as in every series.
    pub labels: Box<str>,
    /// What they did, including exited ones.
    pub total: Counts,
    /// What they did since the last update.
    pub grown: Counts,
    /// The current number of threads.
    pub count: u64,
}

/// All names of threads in all groups.
#[derive(Debug, Default)]
pub(super) struct ThreadNames {
    slots: Vec<Option<ThreadName>>,
    free: Vec<u32>,
    by_name: HashMap<(u32, Comm), u32>,
}

/// The name into which excess names are folded.
const OTHER_COMM: Comm = {
    let mut comm = [0; 16];
    let other = OTHER.as_bytes();
    let mut at = 0;
    while at < other.len() {
        comm[at] = other[at];
        at += 1;
    }
    comm
};

impl ThreadNames {
    /// The name in its group; the one for all others if there are `most` names already.
    pub(super) fn intern(
        &mut self,
        group: u32,
        labels: &str,
        comm: Comm,
        most: usize,
    ) -> (u32, bool) {
        if let Some(&at) = self.by_name.get(&(group, comm)) {
            return (at, false);
        }
        let full = self.by_name.len() >= most;
        let comm = if full { OTHER_COMM } else { comm };
        if full && let Some(&at) = self.by_name.get(&(group, comm)) {
            return (at, true);
        }
        let text = comm.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = ThreadName {
            group,
            comm,
            labels: format!("{labels},threadname=\"{}\"", escape(&names::text(text))).into(),
            total: Counts::default(),
            grown: Counts::default(),
            count: 0,
        };
        let at = if let Some(at) = self.free.pop() {
            self.slots[at as usize] = Some(name);
            at
        } else {
            self.slots.push(Some(name));
            self.slots.len() as u32 - 1
        };
        self.by_name.insert((group, comm), at);
        (at, full)
    }

    pub(super) fn other(&mut self, group: u32, labels: &str) -> u32 {
        self.intern(group, labels, OTHER_COMM, usize::MAX).0
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut ThreadName> {
        if at == NONE {
            return None;
        }
        self.slots.get_mut(at as usize)?.as_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ThreadName> + Clone {
        self.slots.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ThreadName> {
        self.slots.iter_mut().flatten()
    }

    /// Forgets unused names, as process-exporter does: otherwise they would only accumulate.
    pub(super) fn forget_unused(&mut self) {
        for at in 0..self.slots.len() {
            if let Some(name) = self.slots[at].take_if(|name| name.count == 0) {
                self.by_name.remove(&(name.group, name.comm));
                self.free.push(at as u32);
            }
        }
    }
}

/// A thread at the last update.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackedThread {
    /// Its tgid and its tid.
    pub(super) key: u64,
    pub(super) start_ns: u64,
    pub(super) marks: Marks,
    pub(super) comm: Comm,
    pub(super) group: u32,
    /// Its name among [`ThreadNames`].
    pub(super) name: u32,
    /// Index of its process among the tracked ones.
    pub(super) process: u32,
    /// Whether the name stands for others as well, because there were too many.
    pub(super) folded: bool,
}

pub(super) fn key(thread: &ThreadRecord) -> u64 {
    u64::from(thread.tgid) << 32 | u64::from(thread.tid)
}

/// Finds known threads. A source reports them in about the same order each time, so the next one mostly matches.
#[derive(Debug, Default)]
pub(super) struct Finder {
    next: usize,
    /// Sorted keys and places, made only if a thread is not among the next few.
    index: Vec<(u64, u32)>,
}

impl Finder {
    const AHEAD: usize = 8;

    pub(super) fn begin(&mut self) {
        self.next = 0;
        self.index.clear();
    }

    pub(super) fn find(&mut self, threads: &[TrackedThread], key: u64) -> Option<usize> {
        let ahead = threads.get(self.next..).unwrap_or_default().iter();
        let near = ahead.take(Self::AHEAD).position(|thread| thread.key == key);
        let at = near.map(|ahead| self.next + ahead).or_else(|| {
            if self.index.is_empty() {
                let keys = threads.iter().map(|thread| thread.key);
                self.index.extend(keys.zip(0..));
                self.index.sort_unstable();
            }
            let at = self
                .index
                .binary_search_by_key(&key, |&(key, _)| key)
                .ok()?;
            Some(self.index[at].1 as usize)
        })?;
        self.next = at + 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_whose_names_differ_in_bytes_that_are_not_utf_8_have_different_labels() {
        let mut names = ThreadNames::default();
        for byte in [0xfe, 0xff] {
            let mut comm = [0; 16];
            comm[..2].copy_from_slice(&[b'a', byte]);
            names.intern(0, "groupname=\"g\"", comm, 10);
        }
        let labels: Vec<_> = names.iter().map(|name| &*name.labels).collect();
        let expected = [
            r#"groupname="g",threadname="a\\xfe""#,
            r#"groupname="g",threadname="a\\xff""#,
        ];
        assert_eq!(labels, expected);
    }
}
