/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The numbers of a process in nested pid namespaces. */
#ifndef FASTPROC_TASKS_NAMESPACES_H
#define FASTPROC_TASKS_NAMESPACES_H

/* The level below which the ids are listed: that of the reader's pid namespace. */
#define OUTER_LEVEL (NESTED ? run.pid_level : 0)

/* pid_nr() of a number */
static __always_inline u32 outer_nr(u64 pid)
{
	if (NESTED)
		return nr_at_level(pid, run.pid_level, run.pid_ns);
	return pid ? FIELD(struct upid, pid + bpf_core_field_offset(struct pid, numbers), nr) : 0;
}

int collect_nested_ids(u32 index);
#if GROUPS & FP_NAMESPACES
__noinline int collect_nested_ids(u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	struct signal_struct *signal;
	u64 own, tgid, pgrp, session;
	u32 level, outer = OUTER_LEVEL, at;
	u64 *words;

	if (!r)
		return 0;
	level = r->namespaces.level;
	if (level > MAX_LEVEL) {
		r->identity.torn |= FP_TORN_POOL;
		return 0;
	}
	at = pool_take(r, 2 * level);
	words = pool_at(at);
	if (!at || !words)
		return 0;
	own = (u64)FIELD(struct task_struct, run.task, thread_pid);
	/* read again: execve(2) in a thread exchanges it, and a reaped process has none */
	if (!own || FIELD(struct pid, own, level) != outer + level) {
		r->identity.torn |= FP_TORN_NAMESPACES;
		return 0;
	}
	signal = FIELD(struct task_struct, run.task, signal);
	tgid = (u64)FIELD(struct signal_struct, signal, pids[PIDTYPE_TGID]);
	pgrp = (u64)FIELD(struct signal_struct, signal, pids[PIDTYPE_PGID]);
	session = (u64)FIELD(struct signal_struct, signal, pids[PIDTYPE_SID]);
	/* from one group and one session: the process may have changed them since its identity was read */
	r->identity.pgrp = outer_nr(pgrp);
	r->identity.session = outer_nr(session);
	for (u32 i = 0; i < MAX_LEVEL; i++) {
		u32 inner = outer + i + 1;
		u64 entry, ns;

		if (i >= level)
			break;
		entry = own + bpf_core_field_offset(struct pid, numbers) + inner * bpf_core_type_size(struct upid);
		ns = (u64)FIELD(struct upid, entry, ns);
		words[2 * i] = nr_at_level(tgid, inner, ns) | (u64)(u32)FIELD(struct upid, entry, nr) << 32;
		words[2 * i + 1] = nr_at_level(pgrp, inner, ns) | (u64)nr_at_level(session, inner, ns) << 32;
	}
	r->namespaces.ids_at = at;
	return 0;
}
#endif

static __always_inline void collect_namespaces(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct pid *own = t->thread_pid;

	r->namespaces.ids_at = 0;
	r->namespaces.level = own ? own->level - OUTER_LEVEL : 0;
	if (r->namespaces.level)
		collect_nested_ids(index);
}

#endif
