//! The kinds of counters beside those of CPUs: single words, and groups of `/proc/vmstat`.

use crate::{kernel::KernelTypes, text::vmstat::Names};

/// Single words of the kernel's data, in the order of their addresses in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Scalar {
    TotalForks,
    IrqErrCount,
    NrMemmapPages,
    NrMemmapBootPages,
    TotalreservePages,
    DirtyRatio,
    DirtyBytes,
    DirtyBackgroundRatio,
    DirtyBackgroundBytes,
}

impl Scalar {
    pub(super) const ALL: [(Self, &'static str); 9] = [
        (Self::TotalForks, "total_forks"),
        (Self::IrqErrCount, "irq_err_count"),
        (Self::NrMemmapPages, "nr_memmap_pages"),
        (Self::NrMemmapBootPages, "nr_memmap_boot_pages"),
        (Self::TotalreservePages, "totalreserve_pages"),
        (Self::DirtyRatio, "vm_dirty_ratio"),
        (Self::DirtyBytes, "vm_dirty_bytes"),
        (Self::DirtyBackgroundRatio, "dirty_background_ratio"),
        (Self::DirtyBackgroundBytes, "dirty_background_bytes"),
    ];

    pub(super) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The words that one line of `/proc/stat` or `/proc/vmstat` needs.
    pub(super) const STAT: u32 = Self::TotalForks.bit() | Self::IrqErrCount.bit();
    pub(super) const VM: u32 = Self::NrMemmapPages.bit()
        | Self::NrMemmapBootPages.bit()
        | Self::TotalreservePages.bit()
        | Self::DirtyRatio.bit()
        | Self::DirtyBytes.bit()
        | Self::DirtyBackgroundRatio.bit()
        | Self::DirtyBackgroundBytes.bit();
}

/// An `int` of the kernel, given the 64-bit word at its address.
pub(super) fn int_of(word: u64) -> u32 {
    if cfg!(target_endian = "little") {
        word as u32
    } else {
        (word >> 32) as u32
    }
}

/// A group of `/proc/vmstat` that is the sum over blocks of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Zone,
    Numa,
    /// Both, if one follows the other.
    ZoneAndNuma,
    Node,
}

/// The number of lines of `/proc/vmstat` in each group; they follow one another in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups {
    pub(super) zone: usize,
    pub(super) numa: usize,
    pub(super) node: usize,
    /// Dirty thresholds and, since 6.10, page structures.
    pub(super) computed: usize,
    pub(super) events: usize,
}

impl Groups {
    /// Computes the groups from the kernel's enumerations, if the names in the text confirm them.
    pub(super) fn find(types: &KernelTypes, names: &Names) -> Option<Self> {
        let size = |name| types.constant(name).map(|size| size as usize);
        let groups = Self {
            zone: size("NR_VM_ZONE_STAT_ITEMS")?,
            numa: size("NR_VM_NUMA_EVENT_ITEMS").unwrap_or(0),
            node: size("NR_VM_NODE_STAT_ITEMS")?,
            computed: size("NR_VM_STAT_ITEMS").or_else(|| size("NR_VM_WRITEBACK_STAT_ITEMS"))?,
            events: size("NR_VM_EVENT_ITEMS").unwrap_or(0),
        };
        let is_at = |line: usize, name: &str| names.get(line) == Some(name);
        let right = is_at(0, "nr_free_pages")
            && is_at(groups.first_node(), "nr_inactive_anon")
            && is_at(groups.first_computed(), "nr_dirty_threshold")
            && (groups.events == 0 || is_at(groups.first_event(), "pgpgin"));
        right.then_some(groups)
    }

    pub(super) fn first_node(&self) -> usize {
        self.zone + self.numa
    }

    pub(super) fn first_computed(&self) -> usize {
        self.first_node() + self.node
    }

    pub(super) fn first_event(&self) -> usize {
        self.first_computed() + self.computed
    }

    /// Lines after the last group: obsolete counters, printed as 0.
    pub(super) fn end(&self) -> usize {
        self.first_event() + self.events
    }
}
