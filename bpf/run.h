/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the library and the walking programs exchange besides records, in the form of record.h. */
#ifndef FASTPROC_RUN_H
#define FASTPROC_RUN_H

#include "types.h"

/* The index: for each record its tgid, and in the upper half the flags that the library must check. */
#define FP_INDEX_TORN (1ULL << 32)
#define FP_INDEX_CHANGED (1ULL << 33) /* another process than before in this place, or it has run */
#define FP_INDEX_KEPT (1ULL << 34)    /* the record was not read again: it is proven to be right */

/* Supplementary groups of a record: `NGROUPS_MAX`. Printing that many costs a thousand times as much as copying them. */
#define FP_MAX_GROUPS 65536

/* The largest single take from the pool, in words; settings.max_pool is never below it. */
#define FP_POOL_SLACK (FP_MAX_GROUPS / 2)

/* Fixed when the programs are loaded: the verifier drops the code of what was not requested. */
struct fp_settings {
	u32 groups;
	u32 page_shift;
	u32 lone_threads;	/* whether to list the threads of processes with one thread */
	u32 keeps;		/* whether to keep the records that are proven to be right: see tasks/proof.h */
	u32 cpu_words, mem_words; /* words of Cpus_allowed and Mems_allowed */
	u32 max_pool, max_cpus;	  /* words of the pool; possible CPUs */
	u32 nested, reserved;	  /* whether ids are those of the reader's pid namespace, and not the initial one's */
	/* the code of the scheduler and of the spin locks, if get_wchan() must be repeated here; else 0 */
	u64 sched_start, sched_end, lock_start, lock_end;
};

/* fp_place.plan: what the next walk does with the record */
#define FP_READ 0   /* reads it; if the process has not run by then, its words are remembered */
#define FP_PROVE 1  /* keeps it if its words prove it */
#define FP_MOVES 2  /* reads it, and remembers the words again: others have changed them since the walk before */
#define FP_SHARED 3 /* reads it: others may change it unseen */

/*
 * Beside each record: its task, where a later run goes on, and what was taken before it. Kernel addresses, which stay in the
 * kernel.
 */
struct fp_place {
	u64 task;
	u32 pool, threads;
	u32 tgid, plan;
};

/*
 * The iterator meets processes in the order of their pids, and their records stay where they are. An element for each
 * process that was met: the place of its record, after walks of an even and of an odd number. And beside that, a stack of
 * places that ended processes have left.
 */
struct fp_position {
	u32 places[2];
	u32 free, reserved;
};

/* Words of a record's proof: tasks/words.h names them. */
#define FP_WORDS 36

/* What is remembered of a process whose record may be kept. */
struct fp_proof {
	u64 mm, counters, signal, pgrp, ucounts, queued;
	u64 words[FP_WORDS];
};

/* One walk: the library sets it up, the programs count in it. pool counts words, and word 0 is never used. */
struct fp_run {
	u32 records, threads, pool;
	u32 lost_records, lost_threads, lost_pool;
	u32 done;     /* every process was met; else the library runs the program again */
	u32 previous; /* records of the previous walk, which may still be valid; for the iterator, processes that it met */
	u32 cpus;     /* entries of cpu_offsets in use; 0: this kernel prints rss without the per-CPU parts */
	/* the walk's own state: it lasts from one run to the next, and the verifier does not follow its counters */
	u32 old_next, old_at, has_old, reused_actions;
	u32 tries, units, back, sequence, thread_pid;
	u64 thread_start_ns;
	u64 section_ns, deadline_ns; /* how long a run may take, from the library, and when this one ends */
	u64 longest_ns;		     /* how long the longest run took */
	u64 task, first, next, leader, head, node;
	u64 groups; /* the group_info whose copy is at groups_at: processes of a session share one */
	u32 groups_at;
	u32 round;   /* counts walks, from the library: each checks other records */
	u32 kept, checked, disproven; /* records that were kept; that were read all the same; and differed from what was kept */
	u32 keeps, lacks_words; /* whether records are kept; not, as the type information lacks a word of the proofs */
	u32 old_end, checks;	  /* the first old place that is not fetched; whether the record that is read could be kept */
	u32 fresh_pool; /* the pool is empty: a record that points into it is read again */
	u32 dropped; /* this walk has already written records below this place, so none tells what was there before */
	u32 searches, reserved; /* the next run goes on searching for a task that is still on the list */
	/* if settings.nested: the level of the reader's pid namespace and its address, and the number that is looked up there */
	u32 pid_level;
	u64 pid_ns, pid;
	u32 met, free; /* the iterator: processes that it has met, and free places of records */
};

#endif
