//! Field groups: a caller requests groups, and does not pay for others.

use super::record;

// The build generates these from `bpf/cgroup_record.h`.
include!(concat!(env!("OUT_DIR"), "/cgroup_fields.rs"));

impl Fields {
    /// Groups that few readers need, and that a service does not have.
    pub const RARE: Self = Self::HUGETLB.union(Self::CPU_TIMES);

    /// Groups with the controllers that must be on version 2 for them.
    pub(super) const CONTROLLERS: [(&'static str, Self); 4] = [
        ("memory", Self::MEMORY.union(Self::MEMORY_STAT)),
        ("pids", Self::PIDS),
        ("io", Self::IO),
        ("hugetlb", Self::HUGETLB),
    ];
}
