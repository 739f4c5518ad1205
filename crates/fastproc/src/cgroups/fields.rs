//! Field groups: what a caller asks for, and pays for.

use super::record;

// The build makes these from `bpf/cgroup_record.h`.
include!(concat!(env!("OUT_DIR"), "/cgroup_fields.rs"));

impl Fields {
    /// The groups with the names of the controllers that must be on version 2 for them.
    pub(super) const CONTROLLERS: [(&'static str, Self); 3] = [
        ("memory", Self::MEMORY.union(Self::MEMORY_STAT)),
        ("pids", Self::PIDS),
        ("io", Self::IO),
    ];
}
