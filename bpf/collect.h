/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a task to its record. The two programs that walk the tasks include this file. Each defines how to read a pointer
 * without a type (FIELD): by bpf_rdonly_cast(), or by bpf_probe_read_kernel() if the kernel lacks the cast; and whether
 * a task that is not running has a wait channel (WAITS).
 *
 * Functions with inner loops are global (not static, not inlined): the verifier then checks each once instead of once
 * for every path that leads to it, and loading takes a tenth of a second instead of several. A kernel pointer cannot be
 * passed to a global function, so it is passed through run.task.
 */
#ifndef FASTPROC_COLLECT_H
#define FASTPROC_COLLECT_H

#include "tasks/maps.h"
#include "tasks/offsets.h"
#include "tasks/state.h"
#include "tasks/identity.h"
#include "tasks/accounting.h"
#include "tasks/delays.h"
#include "tasks/memory.h"
#include "tasks/credentials.h"
#include "tasks/signals.h"
#include "tasks/namespaces.h"
#include "tasks/scheduling.h"
#include "tasks/name.h"
#include "tasks/threads.h"

/* The whole record of a thread group leader. */
static __always_inline void collect_leader(struct task_struct *t, struct fp_record *r, u32 index)
{
	volatile u64 *slot = &run.task;
	const struct cred *cred;
	u32 flags = t->flags;
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);
	/* the record still contains the process that had this place in the previous walk: usually the same one */
	u64 start_ns = r->identity.start_ns, ran = r->cpu.sum_exec_ns;
	u64 shown_utime = r->cpu.prev_utime_ns, shown_stime = r->cpu.prev_stime_ns, moved;

	*slot = (u64)t;
	collect_identity(t, r, flags);
	moved = start_ns ^ r->identity.start_ns;
	r->name.kind = FP_NAME_COMM;
	if (t->signal->tty)
		collect_tty(t, r, index);
	if (flags & PF_KTHREAD)
		collect_name(t, r, index);
	if (WANTED(FP_CPU)) {
		collect_cpu(t, &r->cpu);
		moved |= (ran ^ r->cpu.sum_exec_ns) | (shown_utime ^ r->cpu.prev_utime_ns) |
			 (shown_stime ^ r->cpu.prev_stime_ns);
	}
	/*
	 * The objective credentials, as in __task_cred(), not those that the task may be acting with. One object has them all,
	 * and is replaced as a whole. Read them before the flags of its memory, in the order of __ptrace_may_access():
	 * commit_creds() clears dumpable before it publishes other ids.
	 */
	cred = RELOAD(t->real_cred);
	ordered();
	if (WANTED(FP_MEMORY | FP_MEMORY_DETAILS | FP_LAYOUT))
		collect_mm(t, r, flags);
	if (WANTED(FP_USERS))
		collect_users(cred, &r->users);
	if (WANTED(FP_CREDENTIALS))
		collect_credentials(t, cred, r, index);
	/* The service checks access with both values, so they must be of the same moment. */
	if (WANTED(FP_USERS | FP_CREDENTIALS) && REPLACED(t->real_cred, cred))
		r->identity.torn |= FP_TORN_CREDENTIALS;
	if (WANTED(FP_SIGNALS))
		collect_signals(t, r, index);
	if (WANTED(FP_NAMESPACES))
		collect_namespaces(t, r, index);
	if (WANTED(FP_SCHEDULING))
		collect_scheduling(t, &r->scheduling);
	if (WANTED(FP_SCHEDULING_DETAILS))
		collect_scheduling_details(t, r, index);
	if (WANTED(FP_LIMITS))
		collect_limits(t, r, index);
	if (WANTED(FP_IO))
		collect_io(t, r, index);
	if (WANTED(FP_DELAYS))
		collect_delays(t, &r->delays);
	if (WANTED(FP_CGROUP) && bpf_core_field_exists(t->cgroups))
		r->cgroup.id = t->cgroups->dfl_cgrp->kn->id;
	ordered();
	if (!RELOAD(t->signal->nr_threads))
		r->identity.torn |= FP_TORN_RELEASED;
	if (entry)
		*entry = r->identity.tgid |
			 (moved || index < run.dropped || r->identity.num_threads > 1 ? FP_INDEX_CHANGED : 0);
}

#endif
