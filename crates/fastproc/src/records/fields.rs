//! Field groups: what a caller requests, and pays for.

use crate::records::record;

// The build generates these from `bpf/record.h`: a bit for each group, and their names.
include!(concat!(env!("OUT_DIR"), "/fields.rs"));

impl Fields {
    /// What top shows: identity, state, CPU time, memory, threads, start time, context switches.
    pub const TOP: Self = Self::CPU.union(Self::MEMORY);

    /// Everything that `/proc/PID/stat`, `statm` and `status` show.
    pub const THREE_FILES: Self = Self::TOP
        .union(Self::MEMORY_DETAILS)
        .union(Self::LAYOUT)
        .union(Self::USERS)
        .union(Self::CREDENTIALS)
        .union(Self::SIGNALS)
        .union(Self::NAMESPACES)
        .union(Self::SCHEDULING)
        .union(Self::SCHEDULING_DETAILS)
        .union(Self::LIMITS);
}
