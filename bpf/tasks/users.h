/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Users, groups, sets of capabilities and the user namespace of credentials. */
#ifndef FASTPROC_TASKS_USERS_H
#define FASTPROC_TASKS_USERS_H

static __always_inline void collect_users(const struct cred *cred, struct fp_users *u)
{
	u->uid = cred->uid.val;
	u->euid = cred->euid.val;
	u->suid = cred->suid.val;
	u->fsuid = cred->fsuid.val;
	u->gid = cred->gid.val;
	u->egid = cred->egid.val;
	u->sgid = cred->sgid.val;
	u->fsgid = cred->fsgid.val;
}

/* Two words of 32 bits before Linux 6.3. */
#define COLLECT_CAPABILITIES(to, cred, set)                                                  \
	do {                                                                                 \
		if (bpf_core_field_exists((cred)->set.val))                                  \
			(to) = (cred)->set.val;                                              \
		else                                                                         \
			bpf_core_read(&(to), 8, &((struct cred___6_2 *)(void *)(cred))->set); \
	} while (0)

static __always_inline u32 user_ns_of(const struct cred *cred)
{
	return bpf_core_field_exists(cred->user_ns) ? cred->user_ns->ns.inum : 0;
}

#endif
