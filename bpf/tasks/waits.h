/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long threads waited for a CPU, and how often they got one: the second and third number of schedstat.
 *
 * A thread that exits beside others leaves both in signal->stats (taskstats_exit()), if the kernel has delay accounting; it
 * need not be switched on. It does so early, and stays on the list of threads: a leading thread until all others are gone.
 * So an exiting thread does not count itself. Until it has left them, the sum lacks them: that is harmless, because
 * readers keep the highest value that they have seen, while a thread that is counted twice would be a growth.
 */
#ifndef FASTPROC_TASKS_WAITS_H
#define FASTPROC_TASKS_WAITS_H

#define UNKNOWN_WAIT (~0ULL)

/* Whether the kernel counts for this thread: one that has run got a CPU. Without CONFIG_SCHEDSTATS it may not count. */
static __always_inline int has_waits(struct task_struct *t)
{
	return bpf_core_field_exists(t->sched_info.run_delay) && (t->sched_info.pcount || !t->se.sum_exec_runtime);
}

static __always_inline void waits_of_thread(struct task_struct *t, u64 *delay_ns, u64 *timeslices)
{
	*delay_ns = *timeslices = UNKNOWN_WAIT;
	if (!has_waits(t))
		return;
	*delay_ns = t->sched_info.run_delay;
	*timeslices = t->sched_info.pcount;
}

/* What exited threads have left. Null: none has, or the kernel does not keep it. */
static __always_inline struct taskstats *waits_of_gone(struct task_struct *t)
{
	struct signal_struct *signal = t->signal;

	return bpf_core_field_exists(signal->stats) && bpf_core_field_exists(t->delays) ? signal->stats : 0;
}

/* Those of a leading thread and of exited ones. */
static __always_inline void collect_waits(struct task_struct *t, u64 *delay_ns, u64 *timeslices)
{
	u32 exits = t->flags & PF_EXITING;
	struct taskstats *gone;

	waits_of_thread(t, delay_ns, timeslices);
	/* in the line of another value of the record, unlike stats */
	if (!exits && !t->signal->sum_sched_runtime)
		return;
	gone = waits_of_gone(t);
	if (!gone || *delay_ns == UNKNOWN_WAIT)
		return;
	*delay_ns = gone->cpu_delay_total + (exits ? 0 : *delay_ns);
	*timeslices = gone->cpu_count + (exits ? 0 : *timeslices);
}

/* Adds those of another thread. */
static __always_inline void fold_waits(struct task_struct *t, u64 *delay_ns, u64 *timeslices)
{
	if (*delay_ns == UNKNOWN_WAIT || t->flags & PF_EXITING)
		return;
	if (!has_waits(t)) {
		*delay_ns = *timeslices = UNKNOWN_WAIT;
		return;
	}
	*delay_ns += t->sched_info.run_delay;
	*timeslices += t->sched_info.pcount;
}

/* Those of a process all of whose threads have exited. If the kernel does not keep them, those of its only thread. */
static __always_inline void waits_of_exited(struct task_struct *leader, u64 *delay_ns, u64 *timeslices)
{
	struct signal_struct *signal = leader->signal;
	struct taskstats *gone = waits_of_gone(leader);
	u64 run_ns = signal->sum_sched_runtime;

	waits_of_thread(leader, delay_ns, timeslices);
	if (*delay_ns == UNKNOWN_WAIT)
		return;
	/* 5.10 to 5.13 allocate it even with nodelayacct, and leave it empty: an exited thread has had a CPU */
	if (gone && gone->cpu_count) {
		*delay_ns = gone->cpu_delay_total;
		*timeslices = gone->cpu_count;
	} else if (signal->nr_threads > 1 || (run_ns && run_ns != leader->se.sum_exec_runtime)) {
		*delay_ns = *timeslices = UNKNOWN_WAIT;
	}
}

#endif
