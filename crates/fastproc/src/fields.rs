//! Field groups: what a caller asks for, and pays for.

use bitflags::bitflags;

bitflags! {
    /// Groups of fields. A snapshot holds [`Identity`](crate::record::Identity) of every process and the groups that
    /// were asked for; nothing else is read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Fields: u32 {
        /// CPU time, faults and context switches: [`Cpu`](crate::record::Cpu).
        const CPU = 0x001;
        /// Memory sizes: [`Memory`](crate::record::Memory).
        const MEMORY = 0x002;
        /// Addresses: [`Layout`](crate::record::Layout).
        const LAYOUT = 0x004;
        /// User, groups, capabilities, seccomp: [`Credentials`](crate::record::Credentials).
        const CREDENTIALS = 0x008;
        /// Signal sets: [`Signals`](crate::record::Signals).
        const SIGNALS = 0x010;
        /// Ids in nested pid namespaces: [`Namespaces`](crate::record::Namespaces).
        const NAMESPACES = 0x020;
        /// Priority, policy, processor, allowed CPUs and nodes: [`Scheduling`](crate::record::Scheduling).
        const SCHEDULING = 0x040;
        /// Limits: [`Limits`](crate::record::Limits).
        const LIMITS = 0x080;
        /// I/O counters: [`Io`](crate::record::Io).
        const IO = 0x100;
        /// Cgroup of the default hierarchy.
        const CGROUP = 0x200;
        /// Every thread on its own: [`ThreadRecord`](crate::record::ThreadRecord).
        const THREADS = 0x400;
        /// Page tables, huge pages, flags of the address space: [`MemoryDetails`](crate::record::MemoryDetails).
        const MEMORY_DETAILS = 0x800;

        /// What a `top` shows: identity, state, CPU time, memory, threads, start time, context switches.
        const TOP = Self::CPU.bits() | Self::MEMORY.bits();
        /// All that `/proc/PID/stat`, `statm` and `status` show.
        const THREE_FILES = Self::TOP.bits() | Self::MEMORY_DETAILS.bits() | Self::LAYOUT.bits() | Self::CREDENTIALS.bits() | Self::SIGNALS.bits()
            | Self::NAMESPACES.bits() | Self::SCHEDULING.bits() | Self::LIMITS.bits();
    }
}

impl Fields {
    /// The groups with their names, in the order of the bits.
    pub const NAMES: [(&'static str, Self); 12] = [
        ("cpu", Self::CPU),
        ("memory", Self::MEMORY),
        ("memory-details", Self::MEMORY_DETAILS),
        ("layout", Self::LAYOUT),
        ("credentials", Self::CREDENTIALS),
        ("signals", Self::SIGNALS),
        ("namespaces", Self::NAMESPACES),
        ("scheduling", Self::SCHEDULING),
        ("limits", Self::LIMITS),
        ("io", Self::IO),
        ("cgroup", Self::CGROUP),
        ("threads", Self::THREADS),
    ];
}
