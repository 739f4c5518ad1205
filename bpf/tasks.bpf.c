// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every process, in sections (kernels from 6.7).
 *
 * On a kernel without preemption nothing else runs on a CPU while a BPF program does. So a run stops when its time is
 * over, and the next run continues there: the library calls walk() until run.done.
 *
 * Between two runs any task may exit. The list of processes only loses members and gains new ones at its end, except
 * that a thread that calls execve(2) takes its leader's place. So a run continues after the last process met that is
 * still on the list, and drops the records after it: their tasks are gone, or another thread leads the process, which
 * the walk then meets again. Summing up a process's threads continues if the last thread still exists; otherwise the
 * process is met again or read from /proc.
 *
 * A task is a plain number here, and cast where it is read: for every pointer loaded through a trusted pointer, the
 * verifier searches the kernel's type information.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "casts.h"

#define CAN_CAST 1
#define FIELD(type, pointer, member) (CAST(type, pointer)->member)

/* On kernels that have this iterator, every task that is not running has a wait channel. */
#define WAITS(t, id) 1

#include "collect.h"
#include "list.h"
#include "ahead.h"
#include "tasks/proof.h"

/* How many processes with lean records a section reads before it checks the clock again; about twice as many if it keeps
 * them. */
#define UNITS 8

/* Whether the record at this old place is of this task. */
static __always_inline int is_task_of(u32 old, u64 task)
{
	struct fp_place *place = bpf_map_lookup_elem(&places, &old);

	return place && place->task == task;
}

/* Whether the words at this place prove that its task is unchanged. */
int proves(u32 at);
#define PROVES(t, at) proves(at)
#include "keep.h"
#include "keep_list.h"
#include "visit.h"

/*
 * Finds the place of this process in the previous walk, if it had one: run.has_old and run.old_at. New processes join
 * the end of the list and dead ones leave it, so old places have the same order and are never before the new one: one
 * pass meets all of them. Processes at skipped places have exited. Returns whether the search is over; if not, the next
 * step continues it.
 */
int find_old(u32 tgid);
__noinline int find_old(u32 tgid)
{
	for (u32 i = 0; i < SEARCHED; i++) {
		u32 at = RELOAD(run.old_next);
		struct fp_place *old;

		if (at >= run.previous)
			return 1;
		old = bpf_map_lookup_elem(&places, &at);
		if (!old)
			return 1;
		RELOAD(run.old_next) = at + 1;
		if (old->tgid == tgid) {
			run.old_at = at;
			run.has_old = 1;
			return 1;
		}
	}
	return 0;
}

/*
 * Fetches the lines of the next old places all at once, so that their cache misses overlap instead of following each
 * other.
 */
int fetch_old(u32 from);
__noinline int fetch_old(u32 from)
{
	for (u32 i = 0; i < BURST; i++) {
		u32 at = from + i;
		struct fp_place *place = bpf_map_lookup_elem(&places, &at);
		struct fp_proof *proof;

		if (!place || at >= run.previous)
			return 0;
		if (place->plan != FP_PROVE || is_checked(place))
			touch_task(CAST(struct task_struct, place->task));
		if (place->plan != FP_PROVE)
			continue;
		proof = bpf_map_lookup_elem(&proofs, &at);
		if (proof)
			touch_words(place->task, proof);
	}
	return 0;
}

static __always_inline int out_of_time(u32 units)
{
	run.units += units;
	/* read a record that is to be checked in the same section */
	if (run.checks || (run.units < UNITS && run.section_ns))
		return 0;
	run.units = 0;
	return bpf_ktime_get_ns() >= run.deadline_ns;
}

static __always_inline int step_thread(void)
{
	u32 last = run.records - 1;
	struct task_struct *t;
	u64 task;

	/* through memory, here and below: a global function accepts the value of a pointer, not a pointer */
	RELOAD(run.node) = next_node(run.node);
	if (RELOAD(run.node) == run.head) {
		finish(last);
		return 0;
	}
	task = RELOAD(run.node) - bpf_core_field_offset(struct task_struct, thread_node);
	t = CAST(struct task_struct, task);
	run.thread_pid = t->pid;
	run.thread_start_ns = t->start_boottime;
	if (task != run.leader)
		visit_thread(task, last);
	return out_of_time(1);
}

/* The task after that of the last record. A proven task is on the list: it has not run, so it has not exited. */
static __always_inline u64 follow(u32 index)
{
	u32 last = index - 1;
	struct fp_place *place = bpf_map_lookup_elem(&places, &last);

	return place ? (u64)next_of(CAST(struct task_struct, place->task)) : 0;
}

/*
 * Visits the next process. After a kept record, run.next is 0: its old successor, if proven, is still its successor,
 * because new processes join the end. Otherwise the list gives the next one.
 */
static __always_inline int step_process(void)
{
	u32 index = run.records, old = run.old_next, units = 1 + run.cpus / 8, keeps = KEEPS, kept;
	struct fp_place *place, *old_place = 0;
	struct task_struct *t;
	u64 task = RELOAD(run.next);

	if (keeps && run.checks) {
		read_and_check();
		return out_of_time(units);
	}
	if (keeps && old < run.previous) {
		if (old >= run.old_end) {
			fetch_old(old);
			run.old_end = old + BURST;
		}
		old_place = bpf_map_lookup_elem(&places, &old);
		if (old_place && old_place->plan == FP_PROVE && (!task || task == old_place->task)) {
			kept = keep(task, run.section_ns ? UNITS / units : 1);
			if (kept)
				return out_of_time(kept * units);
		}
	}
	place = bpf_map_lookup_elem(&places, &index);
	if (!task)
		RELOAD(run.next) = follow(index);
	task = RELOAD(run.next);
	if (!task || task == run.first) {
		run.done = 1;
		return 1;
	}
	if (!place) {
		run.lost_records++;
		run.done = 1;
		return 1;
	}
	t = CAST(struct task_struct, task);
	/* another thread has replaced it since the list was read, by execve(2) */
	if (RELOAD(t->pid) != t->tgid) {
		task = (u64)t->group_leader;
		t = CAST(struct task_struct, task);
	}
	RELOAD(run.leader) = task;
	task = RELOAD(run.leader);
	run.has_old = 0;
	if (keeps && old_place && old_place->task == task) {
		run.has_old = 1;
		run.old_at = old;
		run.old_next = old + 1;
	} else if ((keeps || WANTED(FP_SIGNALS)) && !run.tries) {
		/* at a second try the search has passed its old place already */
		if (!find_old(t->tgid))
			return out_of_time(1);
		old = run.old_at;
		if (keeps && run.has_old && is_task_of(old, task)) {
			run.old_next = old;
			if (keep(task, 1))
				return out_of_time(units);
			run.old_next = old + 1;
		}
	}
	place->tgid = t->tgid;
	place->pool = run.pool;
	place->threads = run.threads;
	run.records = index + 1;
	if (FOLDS)
		run.sequence = stats_sequence(t);
	visit_leader(task, index);
	RELOAD(run.next) = (u64)next_of(t);
	fold_threads(t, index);
	return out_of_time(units);
}

static int step(u32 i, void *unused)
{
	return run.node ? step_thread() : step_process();
}

static __always_inline u64 met_at(u32 at, u32 *pid, u64 *start_ns)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &at);
	struct fp_place *place = bpf_map_lookup_elem(&places, &at);

	if (!r || !place)
		return 0;
	*pid = r->identity.tgid;
	*start_ns = r->identity.start_ns;
	return place->task;
}

/* Continues where the previous run stopped. Returns whether it is known where that is. */
static __always_inline int resume(void)
{
	u32 last = run.records - 1;
	struct fp_record *r;

	search_back(run.records);
	if (run.back != run.records)
		drop_from(run.back);
	if (RELOAD(run.searches))
		return 0;
	if (!run.node)
		return 1;
	r = bpf_map_lookup_elem(&records, &last);
	if (run.node != run.head && r &&
	    !is_here(run.node - bpf_core_field_offset(struct task_struct, thread_node), run.node, run.thread_pid,
		     run.thread_start_ns)) {
		r->identity.torn |= FP_TORN_THREADS;
		finish(last);
	}
	return 1;
}

SEC("syscall") int walk(void *ctx)
{
	struct bpf_iter_task it;
	u64 began_ns = bpf_ktime_get_ns(), took_ns;

	run.deadline_ns = began_ns + run.section_ns;
	bpf_rcu_read_lock();
	/*
	 * The idle task, where the list begins and ends, and the first process. A kernel's iterator may skip tasks to
	 * hide them, for example the first process of a sandbox. This walk skips them too.
	 */
	bpf_iter_task_new(&it, 0, BPF_TASK_ITER_ALL_PROCS);
	run.first = (u64)bpf_iter_task_next(&it);
	run.next = (u64)bpf_iter_task_next(&it);
	bpf_iter_task_destroy(&it);
	run.groups = 0;
	run.lacks_words = !has_words() || (WANTED(FP_SIGNALS) && !has_queue());
	run.keeps = CAN_KEEP && !run.lacks_words;
	set_near_offsets();
	if (resume())
		bpf_loop(MAX_STEPS, step, 0, 0);
	bpf_rcu_read_unlock();
	took_ns = bpf_ktime_get_ns() - began_ns;
	if (took_ns > run.longest_ns)
		run.longest_ns = took_ns;
	return 0;
}
