//! The parts of a record that change together, as far as a text shows them.

use bitflags::bitflags;

use super::access::Access;
use crate::{
    Process,
    record::{
        Cpu, Credentials, Identity, Layout, Limits, Memory, MemoryDetails, Namespaces, Record,
        Scheduling, Signals,
    },
};

bitflags! {
    /// What a line of a text depends on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Parts: u32 {
        const NAME = 1;
        const STATE = 1 << 1;
        /// Who it is: ids, flags, start, exit.
        const WHO = 1 << 2;
        const THREADS = 1 << 3;
        const WCHAN = 1 << 4;
        /// CPU times and faults.
        const TIMES = 1 << 5;
        const SWITCHES = 1 << 6;
        const MEMORY = 1 << 7;
        const MEMORY_DETAILS = 1 << 8;
        const LAYOUT = 1 << 9;
        const CREDENTIALS = 1 << 10;
        const GROUPS = 1 << 11;
        const SIGNALS = 1 << 12;
        /// What all processes of a user have in common.
        const SIGNAL_QUEUE = 1 << 13;
        const NAMESPACES = 1 << 14;
        const SCHEDULING = 1 << 15;
        const PROCESSOR = 1 << 16;
        const CPUS = 1 << 17;
        const MEMS = 1 << 18;
        const LIMITS = 1 << 19;
        /// What no record tells: it comes from the kernel's text each time.
        const KERNEL = 1 << 20;

        /// What lies in the pool.
        const LISTS = Self::GROUPS.bits() | Self::NAMESPACES.bits() | Self::CPUS.bits() | Self::MEMS.bits();
    }
}

/// Which of some parts differ. Each member of a group must be named, or this does not compile; those that no text shows,
/// or that are compared elsewhere, behind `but`.
macro_rules! differing {
    ($old:expr, $new:expr, $group:ident { $($part:ident: $($member:ident)*;)* } but { $($other:ident)* }) => {{
        let (old, new): (&$group, &$group) = ($old, $new);
        let $group { $($($member: _,)*)* $($other: _,)* } = old;
        let mut parts = 0;
        $(
            // All of them at once, without a branch for each.
            let differs = 0 $(| bits(old.$member ^ new.$member))*;
            parts |= if differs != 0 { Parts::$part.bits() } else { 0 };
        )*
        Parts::from_bits_retain(parts)
    }};
}

#[inline(always)]
fn bits(number: impl Number) -> u64 {
    number.bits()
}

trait Number {
    fn bits(self) -> u64;
}

macro_rules! number {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            #[allow(clippy::cast_lossless, reason = "it is of some types only")]
            fn bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}
number!(u8 u32 i32 u64);

/// A process and who looks at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    pub(super) process: Process<'a>,
    pub(super) access: Access,
}

/// Which of the `watched` parts of a text are not the same for two looks; others may be named, too. `words` are those of
/// the bitmaps of CPUs and of memory nodes, where lists are watched.
#[inline]
pub(super) fn changed(
    old: Look<'_>,
    new: Look<'_>,
    words: Option<(usize, usize)>,
    watched: Parts,
) -> Parts {
    let (from, to) = (old.process.record(), new.process.record());
    let Record {
        identity: _,
        cpu: _,
        memory: _,
        memory_details: _,
        layout: _,
        credentials: _,
        signals: _,
        namespaces: _,
        scheduling: _,
        limits: _,
        // No text shows these two.
        io: _,
        cgroup_id: _,
        name: _,
    } = from;
    if (from.identity.has_mm, from.identity.masked, old.access)
        != (to.identity.has_mm, to.identity.masked, new.access)
    {
        return Parts::all();
    }
    let mut parts = Parts::KERNEL | identity(&from.identity, &to.identity) | name(from, to);
    if watched.intersects(Parts::TIMES | Parts::SWITCHES) {
        parts |= differing!(&from.cpu, &to.cpu, Cpu {
            TIMES: utime_ns stime_ns gtime_ns cutime_ns cstime_ns cgtime_ns minflt majflt cminflt cmajflt;
            SWITCHES: nvcsw nivcsw;
        } but { sum_exec_ns sampled_utime_ns sampled_stime_ns prev_utime_ns prev_stime_ns });
    }
    if watched.contains(Parts::MEMORY) {
        parts |= differing!(&from.memory, &to.memory, Memory {
            MEMORY: vsize rss_approx rss_anon rss_file rss_shmem swap peak_vsize peak_rss locked pinned data stack exe lib text;
        } but {});
    }
    if watched.contains(Parts::MEMORY_DETAILS) {
        parts |= differing!(&from.memory_details, &to.memory_details, MemoryDetails {
            MEMORY_DETAILS: page_tables hugetlb mm_flags untag_mask;
        } but {});
    }
    if watched.contains(Parts::LAYOUT) {
        parts |= differing!(&from.layout, &to.layout, Layout {
            LAYOUT: start_code end_code start_stack kstkesp kstkeip start_data end_data start_brk arg_start arg_end
                env_start env_end;
        } but {});
    }
    if watched.intersects(Parts::CREDENTIALS | Parts::GROUPS) {
        parts |= differing!(&from.credentials, &to.credentials, Credentials {
            CREDENTIALS: uid euid suid fsuid gid egid sgid fsgid cap_inheritable cap_permitted cap_effective cap_bounding
                cap_ambient atomic_flags seccomp_mode seccomp_filters umask thread_features thread_features_locked;
            GROUPS: ngroups;
        } but { user_ns groups_at });
    }
    if watched.intersects(Parts::SIGNALS | Parts::SIGNAL_QUEUE) {
        parts |= differing!(&from.signals, &to.signals, Signals {
            SIGNALS: pending shared_pending blocked ignored caught;
            SIGNAL_QUEUE: queued queue_limit;
        } but { switches });
    }
    if watched.contains(Parts::NAMESPACES) {
        parts |= differing!(&from.namespaces, &to.namespaces, Namespaces {
            NAMESPACES: level;
        } but { ids_at });
    }
    if watched.intersects(Parts::SCHEDULING | Parts::PROCESSOR | Parts::CPUS | Parts::MEMS) {
        parts |= differing!(&from.scheduling, &to.scheduling, Scheduling {
            SCHEDULING: priority nice rt_priority policy ngid blkio_ns;
            PROCESSOR: processor;
            CPUS: cpus_allowed;
            MEMS: mems_allowed;
        } but { cpus_at mems_at });
    }
    if watched.contains(Parts::LIMITS) {
        parts |= differing!(&from.limits, &to.limits, Limits {
            LIMITS: rss_limit fd_size;
        } but { reserved });
    }
    if let Some(words) = words
        && (has_lists(from) || has_lists(to))
    {
        parts |= lists(old.process, new.process, words);
    }
    parts
}

#[inline(always)]
fn identity(old: &Identity, new: &Identity) -> Parts {
    differing!(old, new, Identity {
        STATE: state_bits;
        WHO: start_ns tgid ppid pgrp session tracer_pid flags tty_nr tpgid exit_signal exit_code core_dumping;
        THREADS: num_threads;
        WCHAN: wchan;
    } but { groups torn seen_threads has_mm masked comm })
}

/// A name is `comm`, or put together from that and the rest.
#[inline(always)]
fn name(old: &Record, new: &Record) -> Parts {
    let comm = |record: &Record| u128::from_le_bytes(record.identity.comm);
    let same =
        comm(old) == comm(new) && (old.name.kind | new.name.kind == 0 || old.name == new.name);
    if same { Parts::empty() } else { Parts::NAME }
}

/// Whether anything of it is in the pool.
#[inline(always)]
pub(super) fn has_lists(record: &Record) -> bool {
    record.credentials.ngroups
        | record.namespaces.level
        | record.scheduling.cpus_at
        | record.scheduling.mems_at
        != 0
}

fn lists(old: Process<'_>, new: Process<'_>, (cpu_words, node_words): (usize, usize)) -> Parts {
    let mut parts = Parts::empty();
    parts.set(
        Parts::GROUPS,
        !old.supplementary_groups().eq(new.supplementary_groups()),
    );
    parts.set(Parts::NAMESPACES, !old.nested_ids().eq(new.nested_ids()));
    parts.set(
        Parts::CPUS,
        old.cpus_allowed(cpu_words) != new.cpus_allowed(cpu_words),
    );
    parts.set(
        Parts::MEMS,
        old.mems_allowed(node_words) != new.mems_allowed(node_words),
    );
    parts
}
