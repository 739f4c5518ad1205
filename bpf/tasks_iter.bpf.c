// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every process by an iter/task program (kernels from 5.8). The kernel visits the pids in order and leaves the RCU
 * section between them, so the walk may take any time. But a thread need not come right after its leader, so the
 * library sums up the threads.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "casts.h"

#define CAN_CAST function_ids.bpf_rdonly_cast
#define FIELD(type, pointer, member)                                                               \
	({                                                                                         \
		type *__typed = (type *)(pointer);                                                 \
		CAN_CAST ? CAST(type, pointer)->member : BPF_CORE_READ(__typed, member);           \
	})

static __always_inline u8 waits(struct task_struct *t, struct fp_identity *id);
#define WAITS(t, id) waits(t, id)

/* The kernel visits the processes of the reader's pid namespace. If that is not the initial one, the ids are those of
 * the namespace. */
#define MAY_BE_NESTED

#include "collect.h"
#include "wchan.h"
#include "ahead.h"
#include "tasks/proof.h"

/* This task is alive, so the pointers to its parts are right. */
static __always_inline int is_proven(struct task_struct *t, u32 at)
{
	struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &at);

	return proof && has_same_words(t, t->signal, t->flags & PF_KTHREAD ? 0 : RELOAD(t->mm), proof);
}
#define PROVES(t, at) is_proven(t, at)
#include "keep.h"
#include "order.h"

#define FOLDS WANTED(FP_CPU | FP_IO | FP_DELAYS | FP_THREADS)

/*
 * Changes when a thread starts or exits: then the sums of a process, whose threads are read one by one, may lack a thread
 * or count it twice. The sequence counts exiting threads, and the number of threads shows new ones.
 */
static __always_inline u32 threads_state(struct task_struct *t)
{
	return stats_sequence(t) + ((u32)t->signal->nr_threads << 16);
}

/*
 * Whether this process may be exchanging its leader: if another thread calls execve(2), the two exchange their pids
 * while the kernel holds one of them for us. Check its own pid first.
 */
static __always_inline int changes_leader(struct task_struct *t)
{
	struct signal_struct *signal = t->signal;
	struct signal_struct___5_16 *old = (void *)signal;

	ordered();
	if (bpf_core_field_exists(signal->group_exec_task) ? RELOAD(signal->group_exec_task) != 0 :
							     RELOAD(old->group_exit_task) != 0)
		return 1;
	ordered();
	return !RELOAD(t->thread_pid) || RELOAD(t->pid) == RELOAD(t->tgid);
}

/* The library reads a process from /proc if a thread comes without its leader. */
static __always_inline void visit_thread(struct task_struct *t)
{
	struct fp_thread_record *r;

	if (!FOLDS && !changes_leader(t))
		return;
	r = list_thread(t);
	if (r && FOLDS)
		r->threads_state = threads_state(t);
}

/* Keeps the record at this place, or prepares to check it: then run.checks is set. */
static __always_inline int keep(struct task_struct *t, u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index), *kept;
	struct fp_place *place = bpf_map_lookup_elem(&places, &index);
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);
	u32 zero = 0;

	if (!r || !place || !entry || place->plan != FP_PROVE || place->task != (u64)t)
		return 0;
	if ((run.fresh_pool && points_into_pool(index)) || !is_proven(t, index))
		return 0;
	if (HAS_MASKS && !has_same_masks(index))
		return 0;
	if (is_checked(place)) {
		kept = bpf_map_lookup_elem(&kept_record, &zero);
		if (kept)
			bpf_probe_read_kernel(kept, used_bytes(), r);
		run.checks = 1;
		return 0;
	}
	*entry = place->tgid | FP_INDEX_KEPT;
	if (WANTED(FP_SIGNALS) && set_queued(index, queued_signals(t)))
		*entry = place->tgid | FP_INDEX_CHANGED;
	run.kept++;
	if (WANTED(FP_SIGNALS))
		run.reused_actions++;
	return 1;
}

static __always_inline void read_leader(struct task_struct *t, u32 index, u32 keeps)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	struct fp_place *place = bpf_map_lookup_elem(&places, &index);
	struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &index);
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);
	u32 sequence = 0, plan, rested = 0, remembered = run.checks, moves = 0;

	if (!r || !place || !entry)
		return;
	/* another process may have its pid by now */
	run.has_old = run.has_old && r->identity.start_ns == t->start_boottime;
	plan = run.has_old ? place->plan : FP_READ;
	if (keeps && run.has_old && proof) {
		rested = remembered || has_rested(t, r);
		if (rested && !remembered && plan != FP_SHARED) {
			moves = store_words(t, proof, proof) && plan != FP_READ;
			remembered = 1;
		}
		/* Until it has left the run queue the scheduler may still add to what it waited: see proof.h. */
		if (bpf_core_field_exists(t->on_rq))
			rested = rested && !RELOAD(t->on_rq);
	}
	place->task = (u64)t;
	place->pool = run.pool;
	run.groups = 0;
	if (run.checks)
		run.has_old = 0; /* read the signal actions, too */
	if (FOLDS)
		sequence = stats_sequence(t);
	collect_leader(t, r, index);
	place->tgid = r->identity.tgid;
	if (LISTS_LEADER(r))
		list_thread(t);
	if (FOLDS) {
		r->identity.threads_state = threads_state(t);
		if (sequence & 1 || sequence != stats_sequence(t))
			r->identity.torn |= FP_TORN_THREADS;
	}
	plan = rested ? judge(t, r, index, remembered) : FP_READ;
	if (r->identity.torn) {
		*entry |= FP_INDEX_TORN;
		plan = FP_READ;
	}
	place->plan = moves && plan == FP_PROVE ? FP_MOVES : plan;
	if (run.checks && place->plan == FP_PROVE)
		check(index);
	run.checks = 0;
}

/* Returns whether the kernel shall show this process again, because the search for its place is not over. */
static __always_inline int visit_leader(struct task_struct *t)
{
	u32 index, keeps = KEEPS;

	/* a process that is being released has no number */
	if (NESTED && !t->signal->pids[PIDTYPE_TGID])
		return 0;
	if (keeps && CAN_CAST && run.old_next >= run.old_end) {
		fetch_old(run.old_next);
		run.old_end = run.old_next + BURST;
	}
	run.has_old = 0;
	if (!find_place(tgid_of(t)))
		return 1;
	if (!run.has_old && !take_place()) {
		run.lost_records++;
		return 0;
	}
	index = run.old_at;
	put_next(index);
	if (!keeps || !run.has_old || !keep(t, index))
		read_leader(t, index, keeps);
	return 0;
}

static __always_inline void find_own_namespace(void)
{
	u64 reader = bpf_get_current_task(), pid, at;

	pid = (u64)FIELD(struct task_struct, reader, thread_pid);
	run.pid_level = FIELD(struct pid, pid, level);
	at = pid + bpf_core_field_offset(struct pid, numbers) + run.pid_level * bpf_core_type_size(struct upid);
	run.pid_ns = (u64)FIELD(struct upid, at, ns);
}

static __always_inline void begin(void)
{
	run.first = 1;
	run.lacks_words = !has_words();
	run.keeps = CAN_KEEP && !run.lacks_words;
	set_near_offsets();
	if (NESTED)
		find_own_namespace();
}

SEC("iter/task") int visit(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;

	if (!t) {
		run.done = 1;
		return 0;
	}
	/* a pointer that the verifier does not trust: it searches the type information for every load through a trusted one */
	if (CAN_CAST)
		t = rdonly_cast(t, type_ids.task_struct);
	if (!run.first)
		begin();
	if (RELOAD(t->pid) == RELOAD(t->tgid))
		return visit_leader(t);
	visit_thread(t);
	return 0;
}
