/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rights of a process, which decide which readers see its files: the credentials of the task whose table is read, and
 * whether it may be dumped.
 *
 * They are read before the first descriptor, and must be the same whenever a run of the program ends and begins, and
 * after the last descriptor. They cannot come back in between: what gives a process more rights than its user's is an
 * exec, and the task counts those.
 */
#ifndef FASTPROC_FILES_RIGHTS_H
#define FASTPROC_FILES_RIGHTS_H

#include "../tasks/mm_flags.h"

/*
 * In the order of __ptrace_may_access(): a process that loses rights first forbids to dump it, and then gets the new
 * credentials.
 */
static __always_inline void read_rights(struct files_rights *r)
{
	struct task_struct *t = CAST(struct task_struct, run.holder);
	const struct cred *c = CAST(struct cred, RELOAD(t->real_cred));
	struct mm_struct *mm;

	/* what was read before and what is read afterwards belongs to these rights */
	ordered();
	r->uid = c->uid.val;
	r->euid = c->euid.val;
	r->suid = c->suid.val;
	r->gid = c->gid.val;
	r->egid = c->egid.val;
	r->sgid = c->sgid.val;
	r->cap_permitted = c->cap_permitted.val;
	r->user_ns = bpf_core_field_exists(c->user_ns) ? c->user_ns->ns.inum : 0;
	r->exec_id = RELOAD(t->self_exec_id);
	ordered();
	mm = RELOAD(t->mm);
	/* without memory, the folder belongs to root */
	r->dumpable = mm ? mm_flags(t, mm) & DUMPABLE_MASK : 0;
	ordered();
	/* exec changes the memory first */
	if (RELOAD(t->mm) != mm || RELOAD(t->real_cred) != c)
		r->dumpable = 0;
	ordered();
}

/* Slots of the largest table that is counted for another user: a thousand words of its bitmap. */
#define MOST_COUNTED 65536

/* Begins a process: only the user's own is read, if the walk is for a user. */
static __always_inline void begin_rights(u32 index, struct files_process *p)
{
	struct files_rights *r = bpf_map_lookup_elem(&rights, &index);

	run.only_counts = run.is_for_user;
	if (!run.is_for_user)
		return;
	if (r) {
		read_rights(r);
		if (r->euid == run.user && r->uid == run.user && r->suid == run.user) {
			run.only_counts = 0;
			return;
		}
	}
	p->state |= FILES_HIDDEN;
	/* a large table takes long to count, and the reader of another user must not pay for that: it calls stat(2) itself */
	if (run.max > MOST_COUNTED) {
		p->state |= FILES_UNSURE | FILES_UNCOUNTED;
		run.max = 0;
	}
}

/* Notes it if the rights of the process that is read have changed. */
int prove_rights(void);
__noinline int prove_rights(void)
{
	u32 index = run.processes - 1;
	struct files_process *p = bpf_map_lookup_elem(&processes, &index);
	struct files_rights *r = bpf_map_lookup_elem(&rights, &index), now = {};

	if (!p || !r || !run.is_for_user || run.only_counts)
		return 0;
	read_rights(&now);
	if (now.cap_permitted != r->cap_permitted || now.exec_id != r->exec_id || now.uid != r->uid ||
	    now.euid != r->euid || now.suid != r->suid || now.gid != r->gid || now.egid != r->egid ||
	    now.sgid != r->sgid || now.user_ns != r->user_ns || now.dumpable != r->dumpable)
		p->state |= FILES_HIDDEN | FILES_UNSURE;
	return 0;
}

#endif
