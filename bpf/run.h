/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the library and the programs that walk hand each other besides records. Written as record.h is. */
#ifndef FASTPROC_RUN_H
#define FASTPROC_RUN_H

#include "types.h"

/* The index: for each record its tgid, and in the upper half what the library has to look at. */
#define FP_INDEX_TORN (1ULL << 32)
#define FP_INDEX_CHANGED (1ULL << 33) /* another process than before in this place, or it has run */

/* Supplementary groups that a record holds: `NGROUPS_MAX`. The text of so many costs a thousand times their copy. */
#define FP_MAX_GROUPS 65536

/* The largest single take from the pool, in words; settings.max_pool is never below it. */
#define FP_POOL_SLACK (FP_MAX_GROUPS / 2)

/* Fixed when the programs are loaded: the verifier drops the code of what was not asked for. */
struct fp_settings {
	u32 groups;
	u32 page_shift;
	u32 lone_threads, reserved; /* threads are listed that have no other beside them */
	u32 cpu_words, mem_words; /* words of Cpus_allowed and Mems_allowed */
	u32 max_pool, max_cpus;	  /* words of the pool; possible CPUs */
	/* the code of the scheduler and of the spin locks, where get_wchan() has to be done again; else 0 */
	u64 sched_start, sched_end, lock_start, lock_end;
};

/* One walk: the library sets it up, the programs count in it. pool counts words, and word 0 is never used. */
struct fp_run {
	u32 records, threads, pool;
	u32 lost_records, lost_threads, lost_pool;
	u32 done;     /* every process was met; else the program wants to be run again */
	u32 previous; /* records of the walk before, whose signal actions may still hold */
	u32 cpus;     /* entries of cpu_offsets in use; 0: this kernel prints rss without the per-CPU parts */
	/* the walk's own state: it lasts from one run to the next, and the verifier need not follow what it counts */
	u32 old_next, old_at, has_old, reused_actions;
	u32 tries, units, back, sequence, thread_pid;
	u64 thread_start_ns;
	u64 section_ns, deadline_ns; /* how long a run may take, from the library, and when this one ends */
	u64 task, first, next, leader, head, node;
	u64 groups; /* the group_info whose copy stands at groups_at: processes of a session share one */
	u32 groups_at, reserved;
};

#endif
