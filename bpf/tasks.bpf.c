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
#include "kfunc.h"

/*
 * The kernel's ids of the types that casts name. The library writes them here: libbpf relocates with an excerpt of the
 * kernel's type information, which has other ids.
 */
const volatile struct {
	u32 task_struct, signal_struct, mm_struct, pid, upid, cred, group_info, ucounts, in6_addr;
	u32 kthread, worker, worker_pool, workqueue_attrs, list_head;
} type_ids;

/* ID_OF(struct pid) is type_ids.pid */
#define ID_OF(type) ID_OF_##type
#define ID_OF_struct type_ids.
#define CAST(type, pointer) ((type *)rdonly_cast((const void *)(pointer), ID_OF(type)))
#define FIELD(type, pointer, member) (CAST(type, pointer)->member)

/* On kernels that have this iterator, every task that is not running has a wait channel. */
#define WAITS(t, id) 1

/* Data kept beside each record. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_place);
} places SEC(".maps");

/* Proofs of the records; a single one if no records are kept. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_proof);
} proofs SEC(".maps");

#include "collect.h"
#include "ahead.h"
#include "tasks/proof.h"

/* How many processes with lean records a section reads before it checks the clock again; about twice as many if it keeps
 * them. */
#define UNITS 8
/* A process with few threads, some of which exit while they are summed up, is met again up to this many times; with
 * many it is torn. */
#define MAX_TRIES 3
#define FEW_THREADS 64
#define MAX_STEPS (1 << 23)

#define FOLDS WANTED(FP_CPU | FP_IO | FP_THREADS)

/* Whether the record at this old place is of this task. */
static __always_inline int is_task_of(u32 old, u64 task)
{
	struct fp_place *place = bpf_map_lookup_elem(&places, &old);

	return place && place->task == task;
}

/* Old places whose lines are fetched together. */
#define BURST 8

#include "keep.h"

static __always_inline u64 next_node(u64 node)
{
	return (u64)RELOAD(CAST(struct list_head, node)->next);
}

/*
 * Whether this is still the same task and on its list, so that RCU keeps its successors. No node's `prev` points to a
 * removed one. Check that first: memory that belongs to another task by now has another start time. Or it belongs to a
 * thread that leads the process since it called execve(2), in the same place of the list.
 */
static __always_inline int is_here(u64 task, u64 node, u32 pid, u64 start_ns)
{
	struct task_struct *t = CAST(struct task_struct, task);

	if ((u64)RELOAD(CAST(struct list_head, next_node(node))->prev) != node)
		return 0;
	ordered();
	return RELOAD(t->pid) == (int)pid && RELOAD(t->start_boottime) == start_ns;
}

/*
 * Finds the place of this process in the previous walk, if it had one: run.has_old and run.old_at. New processes join
 * the end of the list and dead ones leave it, so old places have the same order and are never before the new one: one
 * pass meets all of them. Processes at skipped places have exited. Returns whether the search is over; if not, the next
 * step continues it.
 */
#define SEARCHED 32
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
		if (place->outlook != FP_PROVE || is_checked(place))
			touch_task(CAST(struct task_struct, place->task));
		if (place->outlook != FP_PROVE)
			continue;
		proof = bpf_map_lookup_elem(&proofs, &at);
		if (proof)
			touch_words(place->task, proof);
	}
	return 0;
}

/* Fetches all lines of a process that nothing has fetched ahead. */
int touch_process(u64 task);
__noinline int touch_process(u64 task)
{
	touch_task(CAST(struct task_struct, task));
	touch_around(CAST(struct task_struct, task));
	return 0;
}

/* Its record of the previous walk. Another process may have its pid by now. */
static __always_inline struct fp_record *old_record(struct task_struct *t)
{
	u32 at = run.old_at;
	struct fp_record *old = bpf_map_lookup_elem(&records, &at);

	if (!old || old->identity.start_ns != t->start_boottime)
		run.has_old = 0;
	return run.has_old ? old : 0;
}

/* Whether it has probably not run since: a process goes to sleep by a voluntary switch. Only its words prove it. */
static __always_inline int has_rested(struct task_struct *t, struct fp_record *old)
{
	return old && !(WANTED(FP_CPU) && old->cpu.nvcsw != t->nvcsw);
}

/* How the next walk treats the record of a sleeping process. `remembered`: its words were stored before it was read.
 * */
static __always_inline u32 judge(struct task_struct *t, struct fp_record *r, u32 index, u32 remembered)
{
	struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &index);

	if (!proof || !may_rest(remembered ? proof->words[WORD_STATE] : state_of(t), r->identity.flags) || !is_alone(t, r))
		return FP_SHARED;
	if (!remembered || !proves(index))
		return FP_READ;
	if (WANTED(FP_SIGNALS))
		proof->queued = r->signals.queued;
	return FP_PROVE;
}

/* Reads the record of a process without its other threads. */
int visit_leader(u64 task, u32 index);
__noinline int visit_leader(u64 task, u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index), *old;
	struct fp_place *place = bpf_map_lookup_elem(&places, &index), *after, *was;
	struct task_struct *t = CAST(struct task_struct, task), *next;
	u32 following = run.old_next, at = run.old_at, outlook = FP_READ, keeps = KEEPS;
	u32 rested = 0, remembered = 0, moves = 0;

	if (!r || !place)
		return 0;
	if (keeps) {
		remembered = run.checks;
		was = bpf_map_lookup_elem(&places, &at);
		outlook = was ? was->outlook : FP_READ;
		if (remembered || (run.has_old && outlook == FP_PROVE))
			touch_process(task);
	}
	old = old_record(t);
	if (keeps) {
		rested = remembered || has_rested(t, old);
		if (rested && !remembered && outlook != FP_SHARED) {
			moves = remember(task, index, at) && outlook != FP_READ;
			remembered = 1;
		}
	}
	place->task = task;
	touch_far(t);
	after = bpf_map_lookup_elem(&places, &following);
	if (!keeps || !after || following >= run.previous || after->outlook != FP_PROVE)
		touch_record(index);
	if (!keeps || following >= run.previous || !after) {
		next = next_of(t);
		touch_task(next_of(next));
		touch_around(next);
	} else if (after->outlook != FP_PROVE) {
		touch_around(CAST(struct task_struct, after->task));
	}
	collect_leader(t, r, index);
	if (LISTS_LEADER(r))
		list_thread(t);
	if (!keeps)
		return 0;
	outlook = rested ? judge(t, r, index, remembered) : FP_READ;
	place->outlook = moves && outlook == FP_PROVE ? FP_MOVES : outlook;
	return 0;
}

/* Adds a thread to its process. */
int visit_thread(u64 task, u32 index);
__noinline int visit_thread(u64 task, u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	struct task_struct *t = CAST(struct task_struct, task);

	if (!r)
		return 0;
	if (WANTED(FP_THREADS))
		list_thread(t);
	if (WANTED(FP_CPU))
		fold_cpu(t, &r->cpu);
	if (WANTED(FP_IO) && bpf_core_field_exists(t->ioac))
		IO_SET(&r->io, +=, t->ioac);
	r->identity.seen_threads++;
	return 0;
}

/* Drops this record and all after it. */
static __always_inline void drop_from(u32 index)
{
	struct fp_place *place = bpf_map_lookup_elem(&places, &index);

	if (run.dropped < run.records)
		run.dropped = run.records;
	run.records = index;
	run.node = 0;
	run.groups = 0;
	if (place) {
		run.pool = place->pool;
		run.threads = place->threads;
	}
}

/* Finishes the last process: it is complete, torn, or will be met again. */
int finish(u32 index);
__noinline int finish(u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);
	struct fp_place *place = bpf_map_lookup_elem(&places, &index);

	run.node = 0;
	if (!r || !entry)
		return 0;
	/* Its text is no substitute: the kernel looks up the credentials for each part of it. */
	if (r->identity.torn & FP_TORN_CREDENTIALS && ++run.tries < MAX_TRIES) {
		run.next = run.leader;
		drop_from(index);
		return 0;
	}
	/*
	 * The kernel's own readers of these sums do the same: an exiting thread moves its share into the signal struct.
	 * Also, a thread that calls execve(2) takes the leader's pid, which is then listed twice, before the leader is
	 * gone.
	 */
	if (FOLDS && (run.sequence & 1 || run.sequence != stats_sequence(CAST(struct task_struct, run.leader)) ||
		      RELOAD(CAST(struct task_struct, run.leader)->pid) != (int)r->identity.tgid)) {
		if (++run.tries < MAX_TRIES && r->identity.num_threads <= FEW_THREADS) {
			run.next = run.leader;
			drop_from(index);
			return 0;
		}
		r->identity.torn |= FP_TORN_THREADS;
	}
	run.tries = 0;
	if (r->identity.torn) {
		*entry |= FP_INDEX_TORN;
		if (place)
			place->outlook = FP_READ;
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
	struct fp_place *place, *was = 0;
	struct task_struct *t;
	u64 task = RELOAD(run.next);

	if (keeps && run.checks) {
		collect_all_the_same();
		return out_of_time(units);
	}
	if (keeps && old < run.previous) {
		if (old >= run.old_end) {
			fetch_old(old);
			run.old_end = old + BURST;
		}
		was = bpf_map_lookup_elem(&places, &old);
		if (was && was->outlook == FP_PROVE && (!task || task == was->task)) {
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
	if (keeps && was && was->task == task) {
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

/* Finds the last record whose task is still on the list: the walk continues after it. */
static int go_back(u32 i, void *unused)
{
	u32 at = run.back - 1;
	struct fp_record *r = bpf_map_lookup_elem(&records, &at);
	struct fp_place *place = bpf_map_lookup_elem(&places, &at);

	if (!r || !place) {
		run.searches = 0;
		return 1;
	}
	if (is_here(place->task, place->task + bpf_core_field_offset(struct task_struct, tasks), r->identity.tgid,
		    r->identity.start_ns)) {
		run.next = (u64)next_of(CAST(struct task_struct, place->task));
		run.searches = 0;
		return 1;
	}
	run.back = at;
	/* many may have exited since: no section is longer for that */
	return out_of_time(1);
}

/* Continues where the previous run stopped. Returns whether it is known where that is. */
static __always_inline int resume(void)
{
	u32 last = run.records - 1;
	struct fp_record *r;

	run.back = run.records;
	run.searches = 1;
	bpf_loop(MAX_STEPS, go_back, 0, 0);
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
	run.keeps = CAN_KEEP;
	run.lacks_words = !has_words();
	set_near_offsets();
	if (resume())
		bpf_loop(MAX_STEPS, step, 0, 0);
	bpf_rcu_read_unlock();
	took_ns = bpf_ktime_get_ns() - began_ns;
	if (took_ns > run.longest_ns)
		run.longest_ns = took_ns;
	return 0;
}
