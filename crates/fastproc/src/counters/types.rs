//! The query for the running kernel's types: offsets of members and per-CPU variables, and sizes of groups of counters.

use super::{Error, object::OBJECT};
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
    "IRQ_COUNT_NMI",
    "IRQ_COUNT_APIC_TIMER",
    "IRQ_COUNT_SPURIOUS",
    "IRQ_COUNT_APIC_PERF",
    "IRQ_COUNT_IRQ_WORK",
    "IRQ_COUNT_ICR_READ_RETRY",
    "IRQ_COUNT_X86_PLATFORM_IPI",
    "IRQ_COUNT_RESCHEDULE",
    "IRQ_COUNT_CALL_FUNCTION",
    "IRQ_COUNT_TLB",
    "IRQ_COUNT_THERMAL_APIC",
    "IRQ_COUNT_THRESHOLD_APIC",
    "IRQ_COUNT_DEFERRED_ERROR",
    "IRQ_COUNT_MCE_EXCEPTION",
    "IRQ_COUNT_MCE_POLL",
    "IRQ_COUNT_HYPERVISOR_CALLBACK",
    "IRQ_COUNT_HYPERV_REENLIGHTENMENT",
    "IRQ_COUNT_HYPERV_STIMER0",
    "IRQ_COUNT_POSTED_INTR",
    "IRQ_COUNT_POSTED_INTR_NESTED",
    "IRQ_COUNT_POSTED_INTR_WAKEUP",
    "IRQ_COUNT_PERF_GUEST_MEDIATED_PMI",
    "IRQ_COUNT_PIC_APIC_ERROR",
    "IRQ_COUNT_IOAPIC_MISROUTED",
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
    Ok(KernelTypes::read(Wanted {
        object: Some(&OBJECT),
        structures: STRUCTURES,
        functions: &["bpf_rdonly_cast"],
        constants: CONSTANTS,
        percpu: true,
        ..Wanted::default()
    })?)
}
