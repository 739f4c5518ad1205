/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a task, its CPU and its numbers, on every kernel. */
#ifndef FASTPROC_TASKS_STATE_H
#define FASTPROC_TASKS_STATE_H

/* The task state as in __task_state_index(); the library uses the highest bit. */
static __always_inline u32 report_state(u32 state, u32 exit_state)
{
	u32 report = (state | exit_state) & TASK_REPORT;

	if ((state & TASK_IDLE) == TASK_IDLE)
		report = TASK_REPORT_IDLE;
	if (state & (TASK_RTLOCK_WAIT | TASK_FROZEN))
		report = TASK_UNINTERRUPTIBLE;
	return report;
}

static __always_inline u32 state_of(struct task_struct *t)
{
	struct task_struct___5_13 *old = (void *)t;

	if (bpf_core_field_exists(t->__state))
		return t->__state;
	return old->state;
}

static __always_inline u32 cpu_of(struct task_struct *t)
{
	struct task_struct___5_15 *old = (void *)t;

	if (bpf_core_field_exists(t->thread_info.cpu))
		return t->thread_info.cpu;
	return old->cpu;
}

static __always_inline u32 pid_nr(struct pid *p)
{
	return p ? p->numbers[0].nr : 0;
}

#endif
