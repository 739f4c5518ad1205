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

/* pid_nr_ns() */
static __always_inline u32 nr_at_level(u64 pid, u32 level, u64 ns)
{
	u64 at;

	if (!pid || FIELD(struct pid, pid, level) < level)
		return 0;
	at = pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
	if ((u64)FIELD(struct upid, at, ns) != ns)
		return 0;
	return FIELD(struct upid, at, nr);
}

int nested_nr(u64 pid);
#ifdef MAY_BE_NESTED
/* nr_at_level() in the reader's pid namespace, with few loads, for a pid whose level is not lower */
__noinline int nested_nr(u64 pid)
{
	u64 at = pid + bpf_core_field_offset(struct pid, numbers) + run.pid_level * bpf_core_type_size(struct upid);
	struct {
		s32 nr;
		u64 ns;
	} upid;
	struct upid *typed;

	if (function_ids.bpf_rdonly_cast) {
		typed = rdonly_cast((const void *)at, type_ids.upid);
		return (u64)typed->ns == run.pid_ns ? typed->nr : 0;
	}
	if (bpf_core_field_offset(struct upid, nr) != 0 || bpf_core_field_offset(struct upid, ns) != 8)
		return nr_at_level(pid, run.pid_level, run.pid_ns);
	if (bpf_probe_read_kernel(&upid, sizeof(upid), (void *)at) || upid.ns != run.pid_ns)
		return 0;
	return upid.nr;
}
#define NESTED known()->nested
#else
#define NESTED 0
#endif

/* The number in the pid namespace of /proc, or 0 if it has none there. */
static __always_inline u32 pid_nr(struct pid *p)
{
	volatile u64 *slot = &run.pid;

	if (!NESTED)
		return p ? p->numbers[0].nr : 0;
	if (!p || p->level < run.pid_level)
		return 0;
	/* through memory: a global function accepts the value of a kernel pointer, not the pointer */
	*slot = (u64)p;
	return nested_nr(*slot);
}

/* The same, if the number of another pid is known, which may be the same pid. */
static __always_inline u32 pid_nr_beside(struct pid *p, struct pid *other, u32 nr)
{
	return NESTED && p == other ? nr : pid_nr(p);
}

static __always_inline u32 tid_of(struct task_struct *t)
{
	return NESTED ? pid_nr(t->thread_pid) : t->pid;
}

static __always_inline u32 tgid_of(struct task_struct *t)
{
	return NESTED ? pid_nr(t->signal->pids[PIDTYPE_TGID]) : t->tgid;
}

#endif
