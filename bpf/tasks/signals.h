/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Signals: pending, blocked, queued, and the actions. */
#ifndef FASTPROC_TASKS_SIGNALS_H
#define FASTPROC_TASKS_SIGNALS_H

/* 1 unless v is 0, without a branch: every branch doubles the paths that the verifier follows. */
static __always_inline u64 nonzero(u64 v)
{
	u64 negative = -v;

	asm volatile("" : "+r"(negative));
	v |= negative;
	asm volatile("" : "+r"(v));
	return v >> 63;
}

/* Which signals are ignored or caught. 2 KiB per process: the largest single cost of a full record. */
u64 actions[ARRAY_OF_ACTIONS * MAX_ACTION_WORDS];

int collect_actions(u32 index);
#if GROUPS & FP_SIGNALS
__noinline int collect_actions(u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	struct sighand_struct *sighand;
	u32 size = bpf_core_type_size(struct k_sigaction), words = size / 8;
	u64 ignored = 0, caught = 0;

	if (!r || words > MAX_ACTION_WORDS)
		return 0;
	sighand = FIELD(struct task_struct, run.task, sighand);
	if (!sighand) {
		r->signals.ignored = r->signals.caught = 0;
		return 0;
	}
	bpf_probe_read_kernel(actions, ARRAY_OF_ACTIONS * size,
			      (void *)sighand + bpf_core_field_offset(struct sighand_struct, action));
	/* Most actions are SIG_DFL, a zero: check eight at a time, and each of them only if one is not zero. */
	for (u32 base = 0; base < ARRAY_OF_ACTIONS; base += 8) {
		u64 any = 0;

		for (u32 i = 0; i < 8; i++)
			any |= actions[(base + i) * words];
		if (!any)
			continue;
		for (u32 i = 0; i < 8; i++) {
			u64 handler = actions[(base + i) * words];
			u64 set = nonzero(handler), caught_or_default = nonzero(handler ^ 1 /* SIG_IGN */);

			ignored |= (caught_or_default ^ 1) << (base + i);
			caught |= (set & caught_or_default) << (base + i);
		}
	}
	ordered();
	if (FIELD(struct task_struct, run.task, sighand) != sighand)
		r->identity.torn |= FP_TORN_SIGHAND;
	r->signals.ignored = ignored;
	r->signals.caught = caught;
	return 0;
}
#endif

/* The number of signals that the user has queued: a counter of the user, not of the process. */
static __always_inline u64 queued_signals(struct task_struct *t)
{
	const struct cred *cred = t->real_cred;
	struct cred___5_13 *old = (void *)cred;
	u64 index, at, queued = 0;

	if (!bpf_core_field_exists(cred->ucounts))
		return old->user->sigpending.counter;
	if (bpf_core_field_exists(cred->ucounts->rlimit)) {
		index = bpf_core_enum_value(enum rlimit_type, UCOUNT_RLIMIT_SIGPENDING);
		if (index == UCOUNT_RLIMIT_SIGPENDING)
			return FIELD(struct ucounts, cred->ucounts, rlimit[UCOUNT_RLIMIT_SIGPENDING].counter);
		at = bpf_core_field_offset(struct ucounts, rlimit);
	} else {
		index = bpf_core_enum_value(enum ucount_type___6_0, UCOUNT_RLIMIT_SIGPENDING___6_0);
		at = bpf_core_field_offset(struct ucounts___6_0, ucount);
	}
	bpf_probe_read_kernel(&queued, sizeof(queued), (void *)cred->ucounts + at + 8 * index);
	return queued;
}

/*
 * Only the running task changes its signal actions: by sigaction(2), execve(2) or a caught one-shot signal. So a task
 * without other threads that has not been on a CPU since they were read still has them. Every run ends in a counted
 * switch before on_cpu becomes zero, so check on_cpu first. A thread that calls execve(2) becomes the leader, and may
 * have the same number of switches; the run time of the group then differs.
 */
static __always_inline u64 resting_switches(struct task_struct *t)
{
	struct mm_struct *mm = t->mm;

	if (!bpf_core_field_exists(t->on_cpu))
		return ~0ULL;
	if (RELOAD(t->on_cpu))
		return ~0ULL;
	ordered();
	if (t->signal->nr_threads != 1 || !t->sighand || t->sighand->count.refs.counter != 1)
		return ~0ULL;
	if (mm && mm->mm_users.counter != 1)
		return ~0ULL;
	return RELOAD(t->nvcsw) + RELOAD(t->nivcsw);
}

/* Copies the actions of the previous walk if they are still valid. Returns whether it did. */
int reuse_actions(u32 index, u64 switches, u64 run_ns);
#if GROUPS & FP_SIGNALS
__noinline int reuse_actions(u32 index, u64 switches, u64 run_ns)
{
	u32 at = run.old_at;
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	struct fp_record *old = bpf_map_lookup_elem(&records, &at);

	if (!run.has_old || switches == ~0ULL || !r || !old || old->signals.switches != switches ||
	    old->signals.run_ns != run_ns)
		return 0;
	r->signals.ignored = old->signals.ignored;
	r->signals.caught = old->signals.caught;
	run.reused_actions++;
	return 1;
}
#endif

static __always_inline void collect_signals(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct signal_struct *signal = t->signal;
	struct fp_signals *s = &r->signals;
	u64 switches = resting_switches(t), run_ns = signal->sum_sched_runtime + t->se.sum_exec_runtime;

	s->pending = t->pending.signal.sig[0];
	s->shared_pending = signal->shared_pending.signal.sig[0];
	s->blocked = t->blocked.sig[0];
	s->queued = queued_signals(t);
	s->queue_limit = signal->rlim[RLIMIT_SIGPENDING].rlim_cur;
	if (!reuse_actions(index, switches, run_ns))
		collect_actions(index);
	s->switches = switches;
	s->run_ns = run_ns;
}

#endif
