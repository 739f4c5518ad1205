//! Field groups: what a caller asks for, and pays for.

use bitflags::bitflags;

use crate::records::record;

bitflags! {
    /// Groups of fields. A snapshot holds [`Identity`](crate::record::Identity) of every process and the groups that
    /// were asked for; nothing else is read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Fields: u32 {
        /// CPU time, faults and context switches: [`Cpu`](crate::record::Cpu).
        const CPU = record::CPU;
        /// Memory sizes: [`Memory`](crate::record::Memory).
        const MEMORY = record::MEMORY;
        /// Addresses: [`Layout`](crate::record::Layout).
        const LAYOUT = record::LAYOUT;
        /// Supplementary groups, capabilities, seccomp, umask: [`Credentials`](crate::record::Credentials).
        const CREDENTIALS = record::CREDENTIALS;
        /// Signal sets: [`Signals`](crate::record::Signals).
        const SIGNALS = record::SIGNALS;
        /// Ids in nested pid namespaces: [`Namespaces`](crate::record::Namespaces).
        const NAMESPACES = record::NAMESPACES;
        /// Priority, policy, processor: [`Scheduling`](crate::record::Scheduling).
        const SCHEDULING = record::SCHEDULING;
        /// Limits: [`Limits`](crate::record::Limits).
        const LIMITS = record::LIMITS;
        /// I/O counters: [`Io`](crate::record::Io).
        const IO = record::IO;
        /// Cgroup of the default hierarchy.
        const CGROUP = record::CGROUP;
        /// Every thread on its own: [`ThreadRecord`](crate::record::ThreadRecord).
        const THREADS = record::THREADS;
        /// Page tables, huge pages, flags of the address space: [`MemoryDetails`](crate::record::MemoryDetails).
        const MEMORY_DETAILS = record::MEMORY_DETAILS;
        /// Users and groups: [`Users`](crate::record::Users).
        const USERS = record::USERS;
        /// Allowed CPUs and nodes, waiting for block I/O: [`SchedulingDetails`](crate::record::SchedulingDetails).
        const SCHEDULING_DETAILS = record::SCHEDULING_DETAILS;

        /// What a `top` shows: identity, state, CPU time, memory, threads, start time, context switches.
        const TOP = Self::CPU.bits() | Self::MEMORY.bits();
        /// All that `/proc/PID/stat`, `statm` and `status` show.
        const THREE_FILES = Self::TOP.bits() | Self::MEMORY_DETAILS.bits() | Self::LAYOUT.bits() | Self::USERS.bits() | Self::CREDENTIALS.bits()
            | Self::SIGNALS.bits() | Self::NAMESPACES.bits() | Self::SCHEDULING.bits() | Self::SCHEDULING_DETAILS.bits() | Self::LIMITS.bits();
    }
}

impl Fields {
    /// The groups with their names, in the order of the bits.
    pub const NAMES: [(&'static str, Self); 14] = [
        ("cpu", Self::CPU),
        ("memory", Self::MEMORY),
        ("memory-details", Self::MEMORY_DETAILS),
        ("layout", Self::LAYOUT),
        ("users", Self::USERS),
        ("credentials", Self::CREDENTIALS),
        ("signals", Self::SIGNALS),
        ("namespaces", Self::NAMESPACES),
        ("scheduling", Self::SCHEDULING),
        ("scheduling-details", Self::SCHEDULING_DETAILS),
        ("limits", Self::LIMITS),
        ("io", Self::IO),
        ("cgroup", Self::CGROUP),
        ("threads", Self::THREADS),
    ];
}
