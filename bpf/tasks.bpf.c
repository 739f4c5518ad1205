// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Every process in one run, by the open-coded task iterator (kernels from 6.7). */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task, unsigned int flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

#define FIELD(type, pointer, member) \
	(((type *)bpf_rdonly_cast((const void *)(pointer), bpf_core_type_id_kernel(type)))->member)

/*
 * In the walk's loop every path through the body is followed again for each that leads to it; a part of its own, as a
 * global function, is verified once.
 */
#define PART_DEFINE(part)                                                                                          \
	int part_##part(u32 index);                                                                                \
	__noinline int part_##part(u32 index)                                                                      \
	{                                                                                                          \
		struct fp_record *r = bpf_map_lookup_elem(&records, &index);                                       \
                                                                                                                   \
		if (r)                                                                                             \
			collect_##part(bpf_rdonly_cast((const void *)run.task,                                     \
						       bpf_core_type_id_kernel(struct task_struct)),               \
				       r, index);                                                                  \
		return 0;                                                                                          \
	}
#define PART(part, t, r, index) part_##part(index)

/* Kernels that have this iterator give every task that does not run a wait channel. */
#define WAITS(t, id) 1

#include "collect.h"
#include "ahead.h"

/*
 * Finds the record this task had in the run before, if it had one: run.has_old and run.old_at. New tasks join the end
 * of the list and dead ones leave it, so the old records stand in the same order, never before the new index: all are
 * met in one pass.
 */
int find_old(u32 index, u32 tgid, u64 start_ns);
__noinline int find_old(u32 index, u32 tgid, u64 start_ns)
{
	run.has_old = 0;
	for (u32 i = 0; i < 8; i++) {
		u32 at = RELOAD(run.old_next);
		struct fp_record *old;

		if (at >= run.previous || at < index)
			return 0;
		old = bpf_map_lookup_elem(&records, &at);
		if (!old)
			return 0;
		RELOAD(run.old_next) = at + 1;
		if (old->identity.tgid == tgid && old->identity.start_ns == start_ns) {
			run.old_at = at;
			run.has_old = 1;
			return 0;
		}
	}
	return 0;
}

SEC("syscall") int walk(void *ctx)
{
	struct bpf_iter_task it;
	struct task_struct *t, *next;

	bpf_rcu_read_lock();
	bpf_iter_task_new(&it, 0,
			  WANTED(FP_CPU | FP_IO | FP_THREADS) ? BPF_TASK_ITER_ALL_THREADS : BPF_TASK_ITER_ALL_PROCS);
	while ((t = bpf_iter_task_next(&it))) {
		u32 tgid = t->tgid, index;
		struct fp_record *r;

		if (!tgid)
			continue; /* the idle task */
		if (WANTED(FP_THREADS))
			list_thread(t);
		if ((u32)t->pid != tgid) {
			/* a thread follows its leader here: fold it into the record just written */
			if (RELOAD(run.current_tgid) != tgid) {
				RELOAD(run.orphans)++;
				continue;
			}
			index = RELOAD(run.current);
			r = bpf_map_lookup_elem(&records, &index);
			if (!r)
				continue;
			if (WANTED(FP_CPU))
				fold_cpu(t, &r->cpu);
			if (WANTED(FP_IO) && bpf_core_field_exists(t->ioac))
				IO_SET(&r->io, +=, t->ioac);
			r->identity.seen_threads++;
			continue;
		}
		index = RELOAD(run.records);
		r = bpf_map_lookup_elem(&records, &index);
		if (!r) {
			RELOAD(run.lost_records)++;
			RELOAD(run.current_tgid) = 0;
			continue;
		}
		if (WANTED(FP_SIGNALS))
			find_old(index, tgid, t->start_boottime);
		RELOAD(run.records) = index + 1;
		RELOAD(run.current) = index;
		RELOAD(run.current_tgid) = tgid;
		next = next_of(t);
		touch_far(t);
		touch_record(index);
		touch_task(next_of(next));
		touch_around(next);
		collect_leader(t, r, index);
	}
	bpf_iter_task_destroy(&it);
	bpf_rcu_read_unlock();
	return 0;
}
