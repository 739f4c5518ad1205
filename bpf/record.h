/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records: what the kernel side writes and the library reads, in place.
 *
 * Sizes are bytes, times are nanoseconds, whatever unit the kernel counts in. Every group starts on eight
 * bytes and has no hidden padding; crates/fastproc/src/record.rs mirrors this file and asserts each size at
 * compile time, and each offset against this object's BTF when it is loaded.
 */
#ifndef FASTPROC_RECORD_H
#define FASTPROC_RECORD_H

#ifndef __VMLINUX_TYPES__
typedef signed int s32;
typedef signed long long s64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

/* Field groups, as bits: asked for in settings.groups, and filled where identity.groups says so. */
#define FP_CPU 0x001
#define FP_MEMORY 0x002
#define FP_LAYOUT 0x004
#define FP_CREDENTIALS 0x008
#define FP_SIGNALS 0x010
#define FP_NAMESPACES 0x020
#define FP_SCHEDULING 0x040
#define FP_LIMITS 0x080
#define FP_IO 0x100
#define FP_CGROUP 0x200
#define FP_THREADS 0x400
#define FP_MEMORY_DETAILS 0x800

/* identity.torn: what was replaced while it was being read. The record is read again from /proc. */
#define FP_TORN_MM 0x01
#define FP_TORN_FILES 0x02
#define FP_TORN_FS 0x04
#define FP_TORN_TTY 0x08
#define FP_TORN_SIGHAND 0x10
#define FP_TORN_POOL 0x20
#define FP_TORN_RELEASED 0x80 /* its parent has waited for it meanwhile: /proc does not show it any more */
#define FP_TORN_STACK 0x40 /* could not be unwound for its wait channel */

/* The index: for each record its tgid, and in the upper half what the library has to look at. */
#define FP_INDEX_TORN (1ULL << 32)
#define FP_INDEX_CHANGED (1ULL << 33) /* another process than before in this place, or it has run */

/* name.kind */
#define FP_NAME_COMM 0	 /* comm is the whole name */
#define FP_NAME_FULL 1	 /* text holds the whole name */
#define FP_NAME_WORKER 2 /* a workqueue worker: the name is put together from the parts */

/* name.worker_flags */
#define FP_WORKER_POOL 1    /* has a pool, so pool_id and pool_cpu are known */
#define FP_WORKER_BUSY 2    /* current_work is set: '+' before the description, else '-' */
#define FP_WORKER_HIGH 4    /* pool nice below zero: the suffix 'H' */
#define FP_WORKER_RESCUER 8 /* text + 32 holds the name of the workqueue it rescues */

struct fp_identity {
	u64 start_ns; /* start_boottime */
	u32 tgid, ppid, pgrp, session;
	u32 tracer_pid, flags;
	s32 tty_nr, tpgid;
	u32 num_threads;
	s32 exit_signal, exit_code;
	u32 state_bits; /* the highest bit counts, as in __task_state_index(): 0 R, 1 S, 2 D, 4 T, 8 t, 16 X, ... */
	u32 groups, torn;
	u32 seen_threads; /* threads that were folded in, the leader included */
	u8 wchan, has_mm, core_dumping, masked;
	char comm[16];
};

struct fp_cpu {
	u64 utime_ns, stime_ns; /* as the kernel prints them; the library fills these in */
	u64 gtime_ns, cutime_ns, cstime_ns, cgtime_ns;
	u64 minflt, majflt, cminflt, cmajflt;
	u64 nvcsw, nivcsw;
	/* what cputime_adjust() is computed from */
	u64 sum_exec_ns, sampled_utime_ns, sampled_stime_ns, prev_utime_ns, prev_stime_ns;
};

struct fp_memory {
	u64 vsize, rss_approx;
	u64 rss_anon, rss_file, rss_shmem, swap;
	u64 peak_vsize, peak_rss;
	u64 locked, pinned, data, stack, exe, lib, text;
};

/* What a top does not show, and lies far from the rest in mm_struct: each costs a line of the cache. */
struct fp_memory_details {
	u64 page_tables, hugetlb;
	u64 mm_flags, untag_mask;
};

struct fp_layout {
	u64 start_code, end_code, start_stack, kstkesp, kstkeip;
	u64 start_data, end_data, start_brk, arg_start, arg_end, env_start, env_end;
};

struct fp_credentials {
	u32 uid, euid, suid, fsuid, gid, egid, sgid, fsgid;
	u64 cap_inheritable, cap_permitted, cap_effective, cap_bounding, cap_ambient;
	u64 atomic_flags;
	u32 user_ns, seccomp_mode, seccomp_filters;
	s32 umask;
	u32 ngroups, groups_at; /* gids in the pool, two a word */
	u64 thread_features, thread_features_locked; /* x86 with user shadow stacks, else 0 */
};

struct fp_signals {
	u64 pending, shared_pending, blocked, ignored, caught;
	u64 queued, queue_limit;
	u64 switches; /* context switches when ignored and caught were read; ~0: never reuse them */
};

struct fp_namespaces {
	u32 level, ids_at; /* for each level below the first, two words in the pool: tgid, pid; pgrp, session */
};

struct fp_scheduling {
	s32 priority, nice;
	u32 rt_priority, policy, processor, ngid;
	u64 cpus_allowed, mems_allowed; /* the first 64 of each */
	u64 blkio_ns;
	u32 cpus_at, mems_at;		/* all of them in the pool, where settings.*_words is more than one */
};

struct fp_limits {
	u64 rss_limit;
	u32 fd_size, reserved;
};

struct fp_io {
	u64 rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes;
};

struct fp_name {
	u32 kind, worker_flags;
	s32 worker_id, pool_id, pool_cpu;
	u32 reserved;
	char text[64];
};

struct fp_record {
	struct fp_identity identity;
	struct fp_cpu cpu;
	struct fp_memory memory;
	struct fp_memory_details memory_details;
	struct fp_layout layout;
	struct fp_credentials credentials;
	struct fp_signals signals;
	struct fp_namespaces namespaces;
	struct fp_scheduling scheduling;
	struct fp_limits limits;
	struct fp_io io;
	u64 cgroup_id;
	struct fp_name name;
};

/* One thread, where threads are listed or cannot be folded on the spot. */
struct fp_thread {
	u64 start_ns;
	u64 utime_ns, stime_ns, gtime_ns;
	u64 minflt, majflt, nvcsw, nivcsw;
	u64 sum_exec_ns, sampled_utime_ns, sampled_stime_ns, prev_utime_ns, prev_stime_ns;
	struct fp_io io;
	u32 tid, tgid, state_bits, flags;
	s32 priority, nice;
	u32 rt_priority, policy, processor, reserved;
	char comm[16];
};

/* Fixed when the programs are loaded: the verifier drops the code of what was not asked for. */
struct fp_settings {
	u32 groups;
	u32 page_shift;
	u32 cpu_words, mem_words; /* words of Cpus_allowed and Mems_allowed */
	u32 max_pool, max_cpus;	  /* words of the pool; possible CPUs */
	/* the code of the scheduler and of the spin locks, where get_wchan() has to be done again; else 0 */
	u64 sched_start, sched_end, lock_start, lock_end;
};

/* One run: the library sets it up, the programs count in it. pool counts words, and word 0 is never used. */
struct fp_run {
	u32 records, threads, pool;
	u32 lost_records, lost_threads, lost_pool;
	u32 torn, orphans; /* orphans: threads seen apart from their leader */
	u32 previous;	   /* records of the run before, whose signal actions may still hold */
	u32 cpus;	   /* entries of cpu_offsets in use; 0: this kernel prints rss without the per-CPU parts */
	/* the walk's own state: a loop counter must live in map memory, or the verifier enumerates it */
	u32 current, current_tgid, old_next, old_at, has_old, reused_actions;
	u64 task;
};

#endif
