//! The interrupts without a number, which the architecture counts: x86's `irq_cpustat_t`. Other architectures
//! have none, or the comparison finds that the sum differs.

use crate::kernel::KernelTypes;

macro_rules! counts {
    ($($member:literal $constant:literal $is_summed:literal;)*) => {
        &[$(($member, concat!("IRQ_COUNT_", $constant), $is_summed)),*]
    };
}

/// The counts of `irq_cpustat_t` on x86: the member, its place in `counts` from 7.0 on, and whether `arch_irq_stat_cpu()`
/// adds it to the sum in `/proc/stat`; from 7.0 on it adds all of them.
const COUNTS: &[(&str, &str, bool)] = counts! {
    "__nmi_count" "NMI" true;
    "apic_timer_irqs" "APIC_TIMER" true;
    "irq_spurious_count" "SPURIOUS" true;
    "apic_perf_irqs" "APIC_PERF" true;
    "apic_irq_work_irqs" "IRQ_WORK" true;
    "icr_read_retry_count" "ICR_READ_RETRY" true;
    "x86_platform_ipis" "X86_PLATFORM_IPI" true;
    "irq_resched_count" "RESCHEDULE" true;
    "irq_call_count" "CALL_FUNCTION" true;
    "irq_tlb_count" "TLB" false;
    "irq_thermal_count" "THERMAL_APIC" true;
    "irq_threshold_count" "THRESHOLD_APIC" true;
    "irq_deferred_error_count" "DEFERRED_ERROR" false;
    "" "MCE_EXCEPTION" true;
    "" "MCE_POLL" true;
    "irq_hv_callback_count" "HYPERVISOR_CALLBACK" true;
    "irq_hv_reenlightenment_count" "HYPERV_REENLIGHTENMENT" true;
    "hyperv_stimer0_count" "HYPERV_STIMER0" true;
    "kvm_posted_intr_ipis" "POSTED_INTR" false;
    "kvm_posted_intr_nested_ipis" "POSTED_INTR_NESTED" false;
    "kvm_posted_intr_wakeup_ipis" "POSTED_INTR_WAKEUP" false;
    "perf_guest_mediated_pmis" "PERF_GUEST_MEDIATED_PMI" false;
    "" "PIC_APIC_ERROR" true;
    "" "IOAPIC_MISROUTED" false;
};

/// The enumerators of the places in `counts`.
pub(super) fn constants() -> impl Iterator<Item = &'static str> {
    COUNTS.iter().map(|&(_, constant, _)| constant)
}

/// The words of `irq_cpustat_t` that the sum in `/proc/stat` takes in.
pub(super) fn summed(types: &KernelTypes, bytes: u32) -> Vec<usize> {
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    let offset = |member| types.offset("irq_cpustat_t", member);
    let counts = offset("counts").map(|counts| counts as usize / 4);
    let word = |member, constant| match (offset(member), counts) {
        (Some(offset), _) => Some(offset as usize / 4),
        (None, counts) => Some(counts? + types.constant(constant)? as usize),
    };
    COUNTS
        .iter()
        .filter(|(.., is_summed)| counts.is_some() || *is_summed)
        .filter_map(|&(member, constant, _)| word(member, constant))
        .filter(|&word| word < bytes as usize / 4)
        .collect()
}
