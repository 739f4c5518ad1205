//! Field groups: a caller requests groups, and does not pay for others.

use super::record;

// The build generates these from `bpf/cgroup_record.h`.
include!(concat!(env!("OUT_DIR"), "/cgroup_fields.rs"));

impl Fields {
    /// All groups but the averages of pressure, which only the kernel's text has.
    pub const ALL_BUT_AVERAGES: Self = Self::all().difference(Self::PRESSURE_AVERAGES);

    /// Groups with the controllers that must be on version 2 for them.
    pub(super) const CONTROLLERS: [(&'static str, Self); 3] = [
        ("memory", Self::MEMORY.union(Self::MEMORY_STAT)),
        ("pids", Self::PIDS),
        ("io", Self::IO),
    ];
}
