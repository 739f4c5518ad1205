// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every process by an iter/task program (kernels from 5.8). The kernel visits the pids in order and leaves the RCU
 * section between them, so the walk may take any time. But a thread need not come right after its leader, so the
 * library sums up the threads.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "kfunc.h"

/* The ids of the types in this kernel: see tasks.bpf.c. */
const volatile struct {
	u32 task_struct, upid;
} type_ids;

#define FIELD(type, pointer, member)                  \
	({                                            \
		type *__typed = (type *)(pointer);    \
		BPF_CORE_READ(__typed, member);       \
	})

static __always_inline u8 waits(struct task_struct *t, struct fp_identity *id);
#define WAITS(t, id) waits(t, id)

/* The kernel visits the processes of the reader's pid namespace. If that is not the initial one, the ids are those of
 * the namespace. */
#define MAY_BE_NESTED

#include "collect.h"
#include "wchan.h"

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

static __always_inline void visit_leader(struct task_struct *t)
{
	u32 index = run.records, sequence = 0;
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);

	if (!r || !entry) {
		run.lost_records++;
		return;
	}
	/* a process that is being released has no number */
	if (NESTED && !t->signal->pids[PIDTYPE_TGID])
		return;
	run.records = index + 1;
	run.groups = 0;
	if (WANTED(FP_THREADS))
		list_thread(t);
	if (FOLDS)
		sequence = stats_sequence(t);
	collect_leader(t, r, index);
	if (FOLDS) {
		r->identity.threads_state = threads_state(t);
		if (sequence & 1 || sequence != stats_sequence(t))
			r->identity.torn |= FP_TORN_THREADS;
	}
	if (r->identity.torn)
		*entry |= FP_INDEX_TORN;
}

static __always_inline void find_own_namespace(void)
{
	u64 reader = bpf_get_current_task(), pid, at;

	pid = (u64)FIELD(struct task_struct, reader, thread_pid);
	run.pid_level = FIELD(struct pid, pid, level);
	at = pid + bpf_core_field_offset(struct pid, numbers) + run.pid_level * bpf_core_type_size(struct upid);
	run.pid_ns = (u64)FIELD(struct upid, at, ns);
}

SEC("iter/task") int visit(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;

	if (!t)
		return 0;
	/* a pointer that the verifier does not trust: it searches the type information for every load through a trusted one */
	if (function_ids.bpf_rdonly_cast)
		t = rdonly_cast(t, type_ids.task_struct);
	if (NESTED && !run.pid_ns)
		find_own_namespace();
	if (RELOAD(t->pid) == RELOAD(t->tgid))
		visit_leader(t);
	else
		visit_thread(t);
	return 0;
}
