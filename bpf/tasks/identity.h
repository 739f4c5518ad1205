/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Identity and state of a process, its relatives and its terminal. */
#ifndef FASTPROC_TASKS_IDENTITY_H
#define FASTPROC_TASKS_IDENTITY_H

static __always_inline void collect_tty(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct signal_struct *signal = t->signal;
	struct tty_struct *tty = RELOAD(signal->tty);
	struct tty_struct___5_15 *old = (void *)tty;
	struct fp_identity *id = &r->identity;
	u32 minor, major;

	if (!tty)
		return;
	minor = tty->driver->minor_start + tty->index;
	major = tty->driver->major;

	/* new_encode_dev() */
	id->tty_nr = (minor & 0xff) | (major << 8) | ((minor & ~0xff) << 12);
	if (bpf_core_field_exists(tty->ctrl.pgrp))
		id->tpgid = pid_nr(tty->ctrl.pgrp);
	else
		id->tpgid = pid_nr(old->pgrp);
	if (REPLACED(signal->tty, tty))
		id->torn |= FP_TORN_TTY;
}

static __always_inline u8 dumps_core(struct task_struct *t, struct signal_struct *signal)
{
	struct mm_struct___5_15 *old;

	if (bpf_core_field_exists(signal->core_state))
		return signal->core_state != 0;
	old = (void *)RELOAD(t->mm);
	return old && old->core_state;
}

/*
 * do_task_stat() prints the group's exit code since the patch series (5.17) that also gave kernel threads
 * worker_private; before, it prints the leader's own.
 */
static __always_inline int shows_group_exit_code(struct task_struct *t)
{
	return bpf_core_field_exists(t->worker_private);
}

static __always_inline void collect_identity(struct task_struct *t, struct fp_record *r, u32 flags)
{
	struct signal_struct *signal = t->signal;
	struct fp_identity *id = &r->identity;
	u32 state = state_of(t), signal_flags = signal->flags;
	struct pid *group;

	/* before its switches are read: see resting_switches() */
	id->on_cpu = bpf_core_field_exists(t->on_cpu) ? RELOAD(t->on_cpu) : FP_ON_CPU_UNKNOWN;
	ordered();
	id->start_ns = t->start_boottime;
	id->tgid = tgid_of(t);
	id->ppid = tgid_of(t->real_parent);
	group = signal->pids[PIDTYPE_PGID];
	id->pgrp = pid_nr_beside(group, signal->pids[PIDTYPE_TGID], id->tgid);
	id->session = pid_nr_beside(signal->pids[PIDTYPE_SID], group, id->pgrp);
	id->tracer_pid = 0;
	if (t->ptrace)
		id->tracer_pid = tid_of(t->parent);
	id->flags = flags;
	id->num_threads = signal->nr_threads;
	id->exit_signal = t->exit_signal;
	id->exit_code = t->exit_code;
	if (shows_group_exit_code(t) && signal_flags & (SIGNAL_GROUP_EXIT | SIGNAL_STOP_STOPPED))
		id->exit_code = signal->group_exit_code;
	id->state_bits = report_state(state, t->exit_state);
	id->core_dumping = dumps_core(t, signal);
	id->masked = 0;
	id->torn = 0;
	id->wchan = id->num_threads < 2 && state && WAITS(t, id);
	id->groups = settings.groups;
	id->seen_threads = 1;
	id->threads_state = 0;
	id->tty_nr = 0;
	id->tpgid = -1;
	__builtin_memcpy(id->comm, t->comm, sizeof(id->comm));
}

#endif
