//! The query for the running kernel's types: offsets of members and per-CPU variables, and sizes of groups of counters.

use super::{Error, arch, object::OBJECT};
use crate::kernel::{KernelTypes, Wanted};

/// The enumerators that are queried: a kernel has tens of thousands.
const CONSTANTS: &[&str] = &[
    "CPUTIME_USER",
    "CPUTIME_NICE",
    "CPUTIME_SYSTEM",
    "CPUTIME_SOFTIRQ",
    "CPUTIME_IRQ",
    "CPUTIME_IDLE",
    "CPUTIME_IOWAIT",
    "CPUTIME_STEAL",
    "CPUTIME_GUEST",
    "CPUTIME_GUEST_NICE",
    "NR_SOFTIRQS",
    "NR_VM_ZONE_STAT_ITEMS",
    "NR_VM_NUMA_EVENT_ITEMS",
    "NR_VM_NODE_STAT_ITEMS",
    "NR_VM_STAT_ITEMS",
    "NR_VM_WRITEBACK_STAT_ITEMS",
    "NR_VM_EVENT_ITEMS",
    "__MAX_NR_ZONES",
];

const STRUCTURES: &[&str] = &[
    "rq",
    "kernel_cpustat",
    "irq_cpustat_t",
    "zone",
    "pglist_data",
    "per_cpu_zonestat",
    "btf_trace_task_newtask",
];

pub(super) fn load() -> Result<KernelTypes, Error> {
    let constants = CONSTANTS.iter().copied().chain(arch::constants());
    Ok(KernelTypes::read(Wanted {
        object: Some(&OBJECT),
        structures: STRUCTURES,
        functions: &["bpf_rdonly_cast"],
        constants: &constants.collect::<Vec<_>>(),
        percpu: true,
        ..Wanted::default()
    })?)
}
