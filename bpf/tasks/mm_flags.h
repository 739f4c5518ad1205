/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flags of a process's memory, and whether its user may trace it. */
#ifndef FASTPROC_TASKS_MM_FLAGS_H
#define FASTPROC_TASKS_MM_FLAGS_H

#define DUMPABLE_MASK 3

/* The lowest bits are as in get_dumpable(); newer kernels keep them beside the memory, and then those of its flags are zero. */
static __always_inline u64 mm_flags(struct task_struct *t, struct mm_struct *mm)
{
	struct mm_struct___6_1 *old = (void *)mm;
	u64 flags = bpf_core_field_exists(mm->flags.__mm_flags) ? mm->flags.__mm_flags[0] : old->flags;

	if (bpf_core_field_exists(t->exec_state))
		flags = (flags & ~(u64)DUMPABLE_MASK) | (t->exec_state->dumpable & DUMPABLE_MASK);
	return flags;
}

#define KEEPS_DUMPABLE(t) (bpf_core_field_exists((t)->exec_state) || bpf_core_field_exists((t)->user_dumpable))

/* SUID_DUMP_USER, which permits a user to trace the process, after its memory is gone; if the kernel KEEPS_DUMPABLE. */
static __always_inline bool kept_dumpable(struct task_struct *t)
{
	if (bpf_core_field_exists(t->exec_state))
		return t->exec_state->dumpable == 1;
	return BPF_CORE_READ_BITFIELD(t, user_dumpable);
}

#endif
