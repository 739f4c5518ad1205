//! A snapshot of all cgroups, borrowed from its collector.

use super::{
    fields::Fields,
    ids::Ids,
    lists::{Lists, range},
    record::{Device, Record},
    stat::{Lines, StatLine},
    tree::Tree,
};

/// All cgroups at about one time, parents before their children.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    pub(super) records: &'a [Record],
    pub(super) lists: &'a Lists,
    /// The indices of records that are shown.
    pub(super) shown: &'a [u32],
    pub(super) paths: Paths<'a>,
    pub(super) lines: &'a Lines,
    pub(super) began_ns: u64,
}

/// Where the paths of a snapshot are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Paths<'a> {
    /// In the tree that was read.
    Tree(&'a Tree),
    /// With the records.
    Recorded(&'a Ids<Box<[u8]>>),
}

/// One cgroup of a snapshot: a view of its record, not a copy.
///
/// A group of fields is `None` if it was not requested, or if the cgroup lacks it: its controller is not enabled, or is
/// on version 1.
#[derive(Clone, Copy, Debug)]
pub struct Cgroup<'a> {
    record: &'a Record,
    snapshot: Snapshot<'a>,
}

// The build generates these accessors from `bpf/cgroup_record.h`: one for each group.
include!(concat!(env!("OUT_DIR"), "/cgroup.rs"));

impl<'a> Snapshot<'a> {
    /// Every cgroup that this process can reach from the mount of the hierarchy.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Cgroup<'a>> {
        self.shown.iter().map(move |&at| self.of_record(at))
    }

    /// The cgroup at this place in [`iter`](Self::iter).
    pub fn at(self, place: usize) -> Option<Cgroup<'a>> {
        self.shown.get(place).map(|&at| self.of_record(at))
    }

    fn of_record(self, at: u32) -> Cgroup<'a> {
        Cgroup {
            record: &self.records[at as usize],
            snapshot: self,
        }
    }

    /// The number of cgroups.
    pub fn len(self) -> usize {
        self.shown.len()
    }

    /// Whether there are no cgroups.
    pub fn is_empty(self) -> bool {
        self.shown.is_empty()
    }

    /// The cgroup with this path below the mount, as in `/system.slice`.
    pub fn find(self, path: &[u8]) -> Option<Cgroup<'a>> {
        self.iter().find(|cgroup| cgroup.path() == path)
    }

    /// A line of memory.stat, if this kernel has it, as in `anon`. Look it up once for all cgroups.
    pub fn memory_stat_line(self, name: &str) -> Option<StatLine> {
        self.lines.find(name)
    }

    /// The lines of memory.stat, in their order. Empty if they were not requested, or no cgroup has them.
    pub fn memory_stat_lines(self) -> impl Iterator<Item = (StatLine, &'a str)> {
        self.lines.names()
    }

    /// The number of cgroups that were left out because their paths are too long: of more than 4,000 bytes, or 1,024 or
    /// 64 parts from a service. What is below them is left out too, but not counted.
    pub fn left_out(self) -> usize {
        match self.paths {
            Paths::Tree(tree) => tree.left_out,
            Paths::Recorded(_) => 0,
        }
    }

    /// When the snapshot began, in nanoseconds since boot.
    pub fn began_ns(self) -> u64 {
        self.began_ns
    }
}

impl<'a> Cgroup<'a> {
    /// The id: the inode number of its directory.
    pub fn id(self) -> u64 {
        self.record.identity.id
    }

    /// The path below the mount, as in `/proc/PID/cgroup`. The root is `/`.
    pub fn path(self) -> &'a [u8] {
        let path = match self.snapshot.paths {
            Paths::Tree(tree) => tree.path(self.id()),
            Paths::Recorded(paths) => paths.get(&self.id()).map(|path| &**path),
        };
        path.unwrap_or_default()
    }

    /// The last part of the path.
    pub fn name(self) -> &'a [u8] {
        let path = self.path();
        let start = path
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |at| at + 1);
        if path.len() > 1 { &path[start..] } else { path }
    }

    /// The number of levels below the mount.
    pub fn depth(self) -> usize {
        let path = self.path();
        if path.len() > 1 {
            path.split(|&byte| byte == b'/').count() - 1
        } else {
            0
        }
    }

    /// The record itself.
    pub fn record(self) -> &'a Record {
        self.record
    }

    /// A value of memory.stat, in the unit of the kernel's file: bytes, or events.
    pub fn memory_stat_value(self, line: StatLine) -> Option<u64> {
        let by_line = self.record.identity.stat_by_line != 0;
        self.snapshot
            .lines
            .value(&self.memory_stat()?.slots, by_line, line)
    }

    /// I/O by device: the lines of io.stat.
    pub fn devices(self) -> &'a [Device] {
        let devices = &self.snapshot.lists.devices;
        self.io()
            .map_or(&[], |io| range(devices, io.devices_at, io.devices))
    }

    fn group<T>(self, group: Fields, value: &'a T) -> Option<&'a T> {
        (self.record.identity.groups & group.bits() != 0).then_some(value)
    }
}
