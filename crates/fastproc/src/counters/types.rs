//! Questions to the running kernel's BTF: where members and per-CPU variables lie, how long groups of counters are.

use std::collections::HashMap;

use libbpf_rs::btf::{
    Btf, BtfKind, BtfType, HasSize, TypeId,
    types::{Composite, DataSec, Enum, MemberAttr, Struct},
};

use super::Error;

/// A per-CPU variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PerCpu {
    /// From the beginning of the per-CPU section.
    pub(super) offset: u32,
    pub(super) size: u32,
}

/// What the running kernel's types say. Only the answers are kept: BTF itself is megabytes.
#[derive(Debug, Default)]
pub(super) struct KernelTypes {
    percpu: HashMap<String, PerCpu>,
    constants: HashMap<String, i64>,
    types: HashMap<String, Layout>,
}

/// One type: nothing but its name for a function.
#[derive(Debug, Default)]
struct Layout {
    size: u32,
    /// Offsets, those of anonymous parts' members included.
    members: HashMap<String, u32>,
}

/// The enumerators that are asked for: a kernel has tens of thousands.
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

/// The types that are asked for. One pass finds them all; libbpf would search the whole of BTF for each.
const TYPES: &[&str] = &[
    "rq",
    "kernel_cpustat",
    "irq_cpustat_t",
    "zone",
    "pglist_data",
    "bpf_rdonly_cast",
    "btf_trace_task_newtask",
    "per_cpu_zonestat",
];

impl KernelTypes {
    pub(super) fn load() -> Result<Self, Error> {
        let btf = Btf::from_vmlinux().map_err(|source| Error::NoBtf {
            reason: source.to_string(),
        })?;
        let mut types = Self::default();
        for id in (1..btf.len() as u32).map(TypeId::from) {
            let Some(ty) = btf.type_by_id::<BtfType<'_>>(id) else {
                continue;
            };
            let name = name_of(&ty);
            match ty.kind() {
                BtfKind::Enum => types.add_constants(ty),
                BtfKind::DataSec if name == ".data..percpu" => types.add_percpu(&btf, ty),
                BtfKind::Struct | BtfKind::Typedef | BtfKind::Func if TYPES.contains(&name) => {
                    let mut layout = Layout::default();
                    if let Ok(structure) = Composite::try_from(ty.skip_mods_and_typedefs()) {
                        layout.size = Struct::try_from(structure)
                            .map_or(0, |structure| structure.size() as u32);
                        add_members(&btf, structure, 0, &mut layout.members);
                    }
                    types.types.entry(name.to_owned()).or_insert(layout);
                }
                _ => {}
            }
        }
        Ok(types)
    }

    fn add_constants(&mut self, ty: BtfType<'_>) {
        let Ok(list) = Enum::try_from(ty) else { return };
        for member in (0..list.len()).filter_map(|index| list.get(index)) {
            let name = member
                .name
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if CONSTANTS.contains(&name) {
                self.constants.insert(name.to_owned(), member.value);
            }
        }
    }

    fn add_percpu(&mut self, btf: &Btf<'_>, ty: BtfType<'_>) {
        let Ok(section) = DataSec::try_from(ty) else {
            return;
        };
        for variable in (0..section.len()).filter_map(|index| section.get(index)) {
            if let Some(var) = btf.type_by_id::<BtfType<'_>>(variable.ty) {
                let place = PerCpu {
                    offset: variable.offset,
                    size: variable.size as u32,
                };
                self.percpu.insert(name_of(&var).to_owned(), place);
            }
        }
    }

    pub(super) fn percpu(&self, name: &str) -> Option<PerCpu> {
        self.percpu.get(name).copied()
    }

    /// The value of an enumerator.
    pub(super) fn constant(&self, name: &str) -> Option<u32> {
        debug_assert!(CONSTANTS.contains(&name), "{name} is not collected");
        self.constants
            .get(name)
            .and_then(|&value| u32::try_from(value).ok())
    }

    /// Whether there is a type or a function of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        debug_assert!(TYPES.contains(&name), "{name} is not collected");
        self.types.contains_key(name)
    }

    /// The offset of a member of a structure.
    pub(super) fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        debug_assert!(TYPES.contains(&structure), "{structure} is not collected");
        self.types.get(structure)?.members.get(member).copied()
    }

    pub(super) fn size(&self, structure: &str) -> Option<u32> {
        debug_assert!(TYPES.contains(&structure), "{structure} is not collected");
        self.types.get(structure).map(|layout| layout.size)
    }
}

fn name_of<'a>(ty: &BtfType<'a>) -> &'a str {
    ty.name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn add_members(btf: &Btf<'_>, structure: Composite<'_>, base: u32, to: &mut HashMap<String, u32>) {
    for member in (0..structure.len()).filter_map(|index| structure.get(index)) {
        let MemberAttr::Normal { offset } = member.attr else {
            continue;
        };
        let offset = base + offset / 8;
        match member.name.and_then(|name| name.to_str()) {
            Some(name) if !name.is_empty() => {
                to.entry(name.to_owned()).or_insert(offset);
            }
            _ => {
                let inner = btf.type_by_id::<BtfType<'_>>(member.ty);
                let inner = inner
                    .and_then(|inner| Composite::try_from(inner.skip_mods_and_typedefs()).ok());
                if let Some(inner) = inner {
                    add_members(btf, inner, offset, to);
                }
            }
        }
    }
}
