/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One thread, if threads are listed. */
#ifndef FASTPROC_TASKS_THREADS_H
#define FASTPROC_TASKS_THREADS_H

/* Whether the leading thread of this process is listed. */
#define LISTS_LEADER(r) (WANTED(FP_THREADS) && (settings.lone_threads || (r)->identity.num_threads > 1))

static __always_inline void collect_thread(struct task_struct *t, struct fp_thread_record *r)
{
	r->start_ns = t->start_boottime;
	collect_thread_cpu(t, r);
	if (WANTED(FP_IO) && bpf_core_field_exists(t->ioac))
		IO_SET(&r->io, =, t->ioac);
	if (WANTED(FP_DELAYS))
		delays_of_thread(t, &r->delays);
	r->tid = tid_of(t);
	r->tgid = tgid_of(t);
	r->state_bits = report_state(state_of(t), t->exit_state);
	r->flags = t->flags;
	r->priority = t->prio - 100;
	r->nice = t->static_prio - 120;
	r->rt_priority = t->rt_priority;
	r->policy = t->policy;
	r->processor = cpu_of(t);
	r->threads_state = 0;
	__builtin_memcpy(r->comm, t->comm, sizeof(r->comm));
}

static __always_inline struct fp_thread_record *list_thread(struct task_struct *t)
{
	u32 at = run.threads;
	struct fp_thread_record *r = bpf_map_lookup_elem(&threads, &at);

	if (!r) {
		run.lost_threads++;
		return 0;
	}
	collect_thread(t, r);
	/* a thread that has just exited has no number */
	if (NESTED && !(r->tid && r->tgid))
		return 0;
	run.threads = at + 1;
	return r;
}

#endif
