//! Cgroups that were recorded, as a snapshot.

use super::{Snapshot, ids::Ids, lists::Lists, record::Record, snapshot::Paths, stat::Lines};

/// Records of cgroups from elsewhere than this machine's hierarchy.
#[derive(Debug, Default)]
pub struct Recorded {
    records: Vec<Record>,
    shown: Vec<u32>,
    paths: Ids<Box<[u8]>>,
    lists: Lists,
    lines: Lines,
    began_ns: u64,
}

impl Recorded {
    /// None yet, as read at this time in nanoseconds since boot.
    pub fn new(began_ns: u64) -> Self {
        Self {
            began_ns,
            ..Self::default()
        }
    }

    /// Adds one, of which there is none yet, after its parent. It has no devices, and no lines of memory.stat.
    pub fn add(&mut self, mut record: Record, path: &[u8]) {
        (record.io.devices_at, record.io.devices) = (0, 0);
        self.shown.push(self.records.len() as u32);
        self.paths.insert(record.identity.id, path.into());
        self.records.push(record);
    }

    /// All of them.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            records: &self.records,
            lists: &self.lists,
            shown: &self.shown,
            paths: Paths::Recorded(&self.paths),
            lines: &self.lines,
            began_ns: self.began_ns,
        }
    }
}
