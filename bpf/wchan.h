/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a task that is not running has a wait channel, as do_task_stat() prints it.
 *
 * Since 5.16, when core_state moved, every such task has one. Before, get_wchan() followed the frame pointers of the
 * task's stack to the first function outside the scheduler; in a kernel without frame pointers it succeeded only by
 * chance. This code does the same; if it cannot follow a stack, the library asks the kernel.
 */
#ifndef FASTPROC_WCHAN_H
#define FASTPROC_WCHAN_H

#define MAX_FRAMES 17
#define MAX_STACK 0x4000 /* THREAD_SIZE */

static __always_inline int in_scheduler(u64 address)
{
	return address - settings.sched_start < settings.sched_end - settings.sched_start ||
	       address - settings.lock_start < settings.lock_end - settings.lock_start;
}

/* get_wchan() of arch/x86, reduced to whether it finds a function. */
int follow_frames(u64 sp, u64 bottom);
__noinline int follow_frames(u64 sp, u64 bottom)
{
	u64 top = bottom + MAX_STACK - 16, frame[2];

	if (!bpf_core_type_exists(struct inactive_task_frame))
		return 0;
	if (sp < bottom || sp > top ||
	    bpf_probe_read_kernel(frame, 8, (void *)sp + bpf_core_field_offset(struct inactive_task_frame, bp)))
		return 0;
	for (u32 i = 0; i < MAX_FRAMES; i++) {
		u64 at = frame[0];

		if (at < bottom || at > top || bpf_probe_read_kernel(frame, sizeof(frame), (void *)at))
			return 0;
		if (!in_scheduler(frame[1]))
			return frame[1] != 0;
	}
	return 0;
}

static __always_inline u8 waits(struct task_struct *t, struct fp_identity *id)
{
	struct task_struct___stack *old = (void *)t;

	if (bpf_core_field_exists(t->signal->core_state))
		return 1;
	if (bpf_core_field_exists(old->thread.sp) && settings.sched_end)
		return follow_frames(old->thread.sp, (u64)old->stack);
	id->torn |= FP_TORN_STACK;
	return 0;
}

#endif
