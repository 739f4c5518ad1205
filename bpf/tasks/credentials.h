/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capabilities, seccomp, umask and supplementary groups. */
#ifndef FASTPROC_TASKS_CREDENTIALS_H
#define FASTPROC_TASKS_CREDENTIALS_H

#include "users.h"

/*
 * The supplementary groups. Their number and their ids come from one group_info, as in the kernel's own readers:
 * setgroups(2) never changes a list in place, but gives the task a new one. RCU keeps this one: call_rcu() frees the
 * credentials that hold it. The copy is dropped anyway if the task has other groups by now: memory after a list belongs
 * to the kernel, so one guarantee is not enough.
 */
int collect_groups(u32 index, u64 info);
#if GROUPS & FP_CREDENTIALS
__noinline int collect_groups(u32 index, u64 info)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	volatile u64 *slot = &run.task;
	const struct cred *cred;
	u32 n, at;
	u64 *words;

	if (!r)
		return 0;
	n = FIELD(struct group_info, info, ngroups);
	r->credentials.ngroups = n;
	if (!n)
		return 0;
	if (n > FP_MAX_GROUPS) {
		r->identity.torn |= FP_TORN_POOL;
		return 0;
	}
	/* The same object as the previous one in this RCU section, so its copy is valid for both. */
	if (info == run.groups) {
		r->credentials.groups_at = run.groups_at;
		return 0;
	}
	at = pool_take(r, (n + 1) / 2);
	words = pool_at(at);
	if (!at || !words)
		return 0;
	if (bpf_probe_read_kernel(words, n * 4, (void *)info + bpf_core_field_offset(struct group_info, gid)))
		r->identity.torn |= FP_TORN_GROUPS;
	ordered();
	cred = FIELD(struct task_struct, *slot, real_cred);
	if ((u64)FIELD(struct cred, cred, group_info) != info)
		r->identity.torn |= FP_TORN_GROUPS;
	r->credentials.groups_at = at;
	if (!(r->identity.torn & FP_TORN_GROUPS)) {
		run.groups = info;
		run.groups_at = at;
	}
	return 0;
}
#endif

static __always_inline void collect_credentials(struct task_struct *t, const struct cred *cred, struct fp_record *r,
						 u32 index)
{
	struct task_struct___6_6 *shadowed = (void *)t;
	struct fp_credentials *c = &r->credentials;
	volatile u64 *slot = &run.task;
	struct fs_struct *fs;
	u64 info;

	COLLECT_CAPABILITIES(c->cap_inheritable, cred, cap_inheritable);
	COLLECT_CAPABILITIES(c->cap_permitted, cred, cap_permitted);
	COLLECT_CAPABILITIES(c->cap_effective, cred, cap_effective);
	COLLECT_CAPABILITIES(c->cap_bounding, cred, cap_bset);
	COLLECT_CAPABILITIES(c->cap_ambient, cred, cap_ambient);
	/* without PFA_SPREAD_PAGE and PFA_SPREAD_SLAB, which cpusets of version 1 set on sleeping tasks, and no text
	 * shows */
	c->atomic_flags = t->atomic_flags & ~6ULL;
	c->user_ns = user_ns_of(cred);
	c->seccomp_mode = c->seccomp_filters = 0;
	if (bpf_core_field_exists(t->seccomp.mode))
		c->seccomp_mode = t->seccomp.mode;
	if (bpf_core_field_exists(t->seccomp.filter_count))
		c->seccomp_filters = t->seccomp.filter_count.counter;
	c->thread_features = c->thread_features_locked = 0;
	if (bpf_core_field_exists(shadowed->thread.features) && bpf_core_field_exists(shadowed->thread.features_locked)) {
		c->thread_features = shadowed->thread.features;
		c->thread_features_locked = shadowed->thread.features_locked;
	}
	c->umask = -1;
	fs = RELOAD(t->fs);
	if (fs) {
		c->umask = fs->umask;
		if (REPLACED(t->fs, fs))
			r->identity.torn |= FP_TORN_FS;
	}
	c->ngroups = c->groups_at = 0;
	/* through memory: a global function accepts the value of a kernel pointer, not the pointer */
	*slot = (u64)cred->group_info;
	info = *slot;
	*slot = (u64)t;
	collect_groups(index, info);
}

#endif
