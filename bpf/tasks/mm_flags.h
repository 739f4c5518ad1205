/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flags of a process's memory. */
#ifndef FASTPROC_TASKS_MM_FLAGS_H
#define FASTPROC_TASKS_MM_FLAGS_H

static __always_inline u64 mm_flags(struct mm_struct *mm)
{
	struct mm_struct___6_1 *old = (void *)mm;

	return bpf_core_field_exists(mm->flags.__mm_flags) ? mm->flags.__mm_flags[0] : old->flags;
}

#endif
