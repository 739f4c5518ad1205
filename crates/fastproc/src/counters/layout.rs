//! What the library and `bpf/counters.bpf.c` hand each other: the Rust half of `bpf/counters.h`.

pub(super) const CPUSTATS: usize = 10;
pub(super) const SOFTIRQS: usize = 10;
pub(super) const ARCH_WORDS: usize = 32;
pub(super) const NUMA_EVENTS: usize = 6;
pub(super) const SCALARS: usize = 16;
pub(super) const MAX_NODES: usize = 1024;
pub(super) const IRQ_ROWS: usize = 64;

pub(super) const WANT_COUNTS: u32 = 1 << 0;
pub(super) const WANT_IRQS: u32 = 1 << 1;
pub(super) const WANT_ALL_IRQS: u32 = 1 << 2;
pub(super) const WANT_VM: u32 = 1 << 3;
pub(super) const WANT_TIMES: u32 = 1 << 4;
pub(super) const WANT_SOFTIRQS: u32 = 1 << 5;
pub(super) const WANT_STAT: u32 = WANT_COUNTS | WANT_TIMES | WANT_SOFTIRQS;

macro_rules! records {
    ($($(#[$doc:meta])* $rust:ident = $c:literal { $($member:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, Default)]
            #[allow(clippy::struct_field_names, reason = "they are the C structure's")]
            pub(super) struct $rust { $(pub(super) $member: $type),* }

            const _: () = {
                // Array maps round elements up to eight bytes, and padding would be bytes that nobody wrote.
                assert!(size_of::<$rust>().is_multiple_of(8));
                assert!(size_of::<$rust>() == 0 $(+ size_of::<$type>())*);
            };
        )*

        /// Name in C, size, and where every member lies: to be compared with the object's BTF.
        #[cfg(test)]
        pub(super) const STRUCTS: &[(&str, usize, &[(&str, usize)])] = &[
            $(($c, size_of::<$rust>(), &[$((stringify!($member), std::mem::offset_of!($rust, $member))),*])),*
        ];
    };
}

records! {
    /// Where the per-CPU structures of one CPU lie.
    Place = "counters_place" {
        cpustat: u64, kstat: u64, arch: u64, mce_exception: u64, mce_poll: u64, rq: u64, tick: u64, hotplug: u64,
        vm_events: u64, percpu: u64, online: u32, unused: u32,
    }
    /// A piece of memory to copy into a row.
    Block = "counters_block" { address: u64, bytes: u32, unused: u32 }
    /// One for the loaded object.
    Config = "counters_config" {
        irq_dir: u64, scalars: [u64; SCALARS], cpus: u32, blocks: u32, zones: u32, max_irqs: u32, max_hot: u32,
        row_count: u32, generation: u32, unused: u32,
    }
    /// What one run is to do, and what came of it.
    Run = "counters_run" {
        want: u32, irqs: u32, hot: u32, scalars_wanted: u32, irq_rev: u64, irqs_explained: u32, unused2: u32,
        taken_ns: u64, irqs_sum: u64, irqs_sum_after: u64, irq_rev_now: u64, scalars: [u64; SCALARS], shortcut: u32,
        faults: u32,
    }
    /// One CPU's counters.
    Cpu = "counters_cpu" {
        cpustat: [u64; CPUSTATS], idle_ns: u64, iowait_ns: u64, irqs_sum: u64, nr_switches: u64,
        softirqs: [u32; SOFTIRQS], arch: [u32; ARCH_WORDS], nr_running: u32, nr_iowait: u32, mce_exception: u32,
        mce_poll: u32, hotplug_state: u32, torn: u32, settled: u32, unused: u32,
    }
    /// One interrupt descriptor.
    Irq = "counters_irq" { desc: u64, irq: u32, count: u32 }
    /// What decides the words of a row of `/proc/interrupts`.
    IrqWords = "counters_irq_words" {
        action: u64, action_name: u64, action_next: u64, chip: u64, handler: u64, hwirq: u64, trigger: u32, unused: u32,
    }
    /// What `locate` and `find_nodes` found.
    Located = "counters_located" {
        rq: u64, irq_dir: u64, percpu_pointer: u64, rq_cpu: u32, irq_dir_fd: i32, nodes: u32, walk_closed: u32,
    }
}

impl PartialEq for IrqWords {
    fn eq(&self, other: &Self) -> bool {
        (
            self.action,
            self.action_name,
            self.action_next,
            self.chip,
            self.handler,
            self.hwirq,
            self.trigger,
        ) == (
            other.action,
            other.action_name,
            other.action_next,
            other.chip,
            other.handler,
            other.hwirq,
            other.trigger,
        )
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::{Btf, types::Struct};

    use super::STRUCTS;

    #[test]
    fn both_sides_agree() {
        let btf = Btf::from_raw("counters", super::super::object::OBJECT)
            .unwrap()
            .unwrap();
        for &(name, size, members) in STRUCTS {
            let c: Struct<'_> = btf
                .type_by_name(name)
                .unwrap_or_else(|| panic!("{name} is not in the object"));
            let c_size: usize = libbpf_rs::btf::HasSize::size(&c);
            assert_eq!(c_size, size, "{name}");
            assert_eq!(c.len(), members.len(), "{name}");
            for (theirs, &(ours, offset)) in c.iter().zip(members) {
                assert_eq!(theirs.name.unwrap().to_str().unwrap(), ours, "{name}");
                let libbpf_rs::btf::types::MemberAttr::Normal { offset: bits } = theirs.attr else {
                    panic!("{name}.{ours} is a bit-field");
                };
                assert_eq!(bits as usize / 8, offset, "{name}.{ours}");
            }
        }
    }
}
