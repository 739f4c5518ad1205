//! The interrupts that have no number, which the architecture counts: x86's `irq_cpustat_t`. Other architectures
//! have none, or the comparison finds that the sum differs.

use crate::kernel::KernelTypes;

/// A count of `irq_cpustat_t` on x86, by its row in `/proc/interrupts`: its member, and its place in `counts` from 7.0 on.
/// The last says whether `arch_irq_stat_cpu()` adds it to the sum in `/proc/stat`; from 7.0 on it adds all of them.
struct ArchCount {
    row: &'static str,
    member: &'static str,
    constant: &'static str,
    summed: bool,
}

const fn arch(
    row: &'static str,
    member: &'static str,
    constant: &'static str,
    summed: bool,
) -> ArchCount {
    ArchCount {
        row,
        member,
        constant,
        summed,
    }
}

const ARCH_COUNTS: &[ArchCount] = &[
    arch("NMI", "__nmi_count", "IRQ_COUNT_NMI", true),
    arch("LOC", "apic_timer_irqs", "IRQ_COUNT_APIC_TIMER", true),
    arch("SPU", "irq_spurious_count", "IRQ_COUNT_SPURIOUS", true),
    arch("PMI", "apic_perf_irqs", "IRQ_COUNT_APIC_PERF", true),
    arch("IWI", "apic_irq_work_irqs", "IRQ_COUNT_IRQ_WORK", true),
    arch(
        "RTR",
        "icr_read_retry_count",
        "IRQ_COUNT_ICR_READ_RETRY",
        true,
    ),
    arch(
        "PLT",
        "x86_platform_ipis",
        "IRQ_COUNT_X86_PLATFORM_IPI",
        true,
    ),
    arch("RES", "irq_resched_count", "IRQ_COUNT_RESCHEDULE", true),
    arch("CAL", "irq_call_count", "IRQ_COUNT_CALL_FUNCTION", true),
    arch("TLB", "irq_tlb_count", "IRQ_COUNT_TLB", false),
    arch("TRM", "irq_thermal_count", "IRQ_COUNT_THERMAL_APIC", true),
    arch(
        "THR",
        "irq_threshold_count",
        "IRQ_COUNT_THRESHOLD_APIC",
        true,
    ),
    arch(
        "DFR",
        "irq_deferred_error_count",
        "IRQ_COUNT_DEFERRED_ERROR",
        false,
    ),
    arch("MCE", "", "IRQ_COUNT_MCE_EXCEPTION", true),
    arch("MCP", "", "IRQ_COUNT_MCE_POLL", true),
    arch(
        "HYP",
        "irq_hv_callback_count",
        "IRQ_COUNT_HYPERVISOR_CALLBACK",
        true,
    ),
    arch(
        "HRE",
        "irq_hv_reenlightenment_count",
        "IRQ_COUNT_HYPERV_REENLIGHTENMENT",
        true,
    ),
    arch(
        "HVS",
        "hyperv_stimer0_count",
        "IRQ_COUNT_HYPERV_STIMER0",
        true,
    ),
    arch(
        "PIN",
        "kvm_posted_intr_ipis",
        "IRQ_COUNT_POSTED_INTR",
        false,
    ),
    arch(
        "NPI",
        "kvm_posted_intr_nested_ipis",
        "IRQ_COUNT_POSTED_INTR_NESTED",
        false,
    ),
    arch(
        "PIW",
        "kvm_posted_intr_wakeup_ipis",
        "IRQ_COUNT_POSTED_INTR_WAKEUP",
        false,
    ),
    arch(
        "VPMI",
        "perf_guest_mediated_pmis",
        "IRQ_COUNT_PERF_GUEST_MEDIATED_PMI",
        false,
    ),
    arch("ERR", "", "IRQ_COUNT_PIC_APIC_ERROR", true),
    arch("MIS", "", "IRQ_COUNT_IOAPIC_MISROUTED", false),
];

/// What a row of `/proc/interrupts` that is not an interrupt's prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchRow {
    /// A word of `irq_cpustat_t`.
    Word(usize),
    MceException,
    McePoll,
}

/// The words of `irq_cpustat_t` that the sum in `/proc/stat` takes in.
pub(super) fn summed(types: &KernelTypes, bytes: u32) -> Vec<usize> {
    let all = types.offset("irq_cpustat_t", "counts").is_some();
    ARCH_COUNTS
        .iter()
        .filter(|count| all || count.summed)
        .filter_map(|count| word(types, bytes, count))
        .collect()
}

/// Where the rows of `/proc/interrupts` come from.
pub(super) fn rows(types: &KernelTypes, bytes: u32) -> Vec<(&'static str, ArchRow)> {
    let words = ARCH_COUNTS
        .iter()
        .filter_map(|count| Some((count.row, ArchRow::Word(word(types, bytes, count)?))));
    let checks = [("MCE", ArchRow::MceException), ("MCP", ArchRow::McePoll)];
    words.chain(checks).collect()
}

fn word(types: &KernelTypes, bytes: u32, count: &ArchCount) -> Option<usize> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let member = types.offset("irq_cpustat_t", count.member);
    let word = match (member, types.offset("irq_cpustat_t", "counts")) {
        (Some(offset), _) => offset as usize / 4,
        (None, Some(counts)) => counts as usize / 4 + types.constant(count.constant)? as usize,
        (None, None) => return None,
    };
    (word < bytes as usize / 4).then_some(word)
}
