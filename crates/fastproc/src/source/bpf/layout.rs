//! Where every member of the shared structures lies, as this library was compiled: name, size, (member, offset).

use std::mem::{offset_of, size_of};

use super::object::{Run, Settings};
use crate::record::{
    Cpu, Credentials, Identity, Io, Layout, Limits, Memory, MemoryDetails, NameParts, Namespaces,
    Record, Scheduling, Signals, ThreadRecord,
};

type Struct = (&'static str, usize, &'static [(&'static str, usize)]);

macro_rules! layouts {
    ($($c:literal = $rust:ident { $($member:ident),* $(,)? })*) => {
        &[$(($c, size_of::<$rust>(), &[$((stringify!($member), offset_of!($rust, $member))),*])),*]
    };
}

pub(super) const STRUCTS: &[Struct] = layouts! {
    "fp_identity" = Identity {
        start_ns, tgid, ppid, pgrp, session, tracer_pid, flags, tty_nr, tpgid, num_threads, exit_signal, exit_code,
        state_bits, groups, torn, seen_threads, wchan, has_mm, core_dumping, masked, comm,
    }
    "fp_cpu" = Cpu {
        utime_ns, stime_ns, gtime_ns, cutime_ns, cstime_ns, cgtime_ns, minflt, majflt, cminflt, cmajflt, nvcsw, nivcsw,
        sum_exec_ns, sampled_utime_ns, sampled_stime_ns, prev_utime_ns, prev_stime_ns,
    }
    "fp_memory" = Memory {
        vsize, rss_approx, rss_anon, rss_file, rss_shmem, swap, peak_vsize, peak_rss, locked, pinned, data, stack, exe,
        lib, text,
    }
    "fp_memory_details" = MemoryDetails { page_tables, hugetlb, mm_flags, untag_mask }
    "fp_layout" = Layout {
        start_code, end_code, start_stack, kstkesp, kstkeip, start_data, end_data, start_brk, arg_start, arg_end,
        env_start, env_end,
    }
    "fp_credentials" = Credentials {
        uid, euid, suid, fsuid, gid, egid, sgid, fsgid, cap_inheritable, cap_permitted, cap_effective, cap_bounding,
        cap_ambient, atomic_flags, user_ns, seccomp_mode, seccomp_filters, umask, ngroups, groups_at,
        thread_features, thread_features_locked,
    }
    "fp_signals" = Signals { pending, shared_pending, blocked, ignored, caught, queued, queue_limit, switches }
    "fp_namespaces" = Namespaces { level, ids_at }
    "fp_scheduling" = Scheduling {
        priority, nice, rt_priority, policy, processor, ngid, cpus_allowed, mems_allowed, blkio_ns, cpus_at, mems_at,
    }
    "fp_limits" = Limits { rss_limit, fd_size, reserved }
    "fp_io" = Io { rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes }
    "fp_name" = NameParts { kind, worker_flags, worker_id, pool_id, pool_cpu, reserved, text }
    "fp_record" = Record {
        identity, cpu, memory, memory_details, layout, credentials, signals, namespaces, scheduling, limits, io, cgroup_id, name,
    }
    "fp_thread" = ThreadRecord {
        start_ns, utime_ns, stime_ns, gtime_ns, minflt, majflt, nvcsw, nivcsw, sum_exec_ns, sampled_utime_ns,
        sampled_stime_ns, prev_utime_ns, prev_stime_ns, io, tid, tgid, state_bits, flags, priority, nice, rt_priority,
        policy, processor, reserved, comm,
    }
    "fp_settings" = Settings { groups, page_shift, cpu_words, mem_words, max_pool, max_cpus, sched_start, sched_end, lock_start, lock_end }
    "fp_run" = Run {
        records, threads, pool, lost_records, lost_threads, lost_pool, torn, orphans, previous, cpus, current,
        current_tgid, old_next, old_at, has_old, reused_actions, task,
    }
};
