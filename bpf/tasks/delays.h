/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Delay accounting. Exited threads are counted as in waits.h, where they leave these times too. */
#ifndef FASTPROC_TASKS_DELAYS_H
#define FASTPROC_TASKS_DELAYS_H

#include "waits.h"

/* Our names and the kernel's. */
#define EACH_DELAY(with)                  \
	with(blkio, blkio);               \
	with(swapin, swapin);             \
	with(reclaim, freepages);         \
	with(thrashing, thrashing);       \
	with(compaction, compact)

#define FORGET_DELAY(ours, theirs) d->ours##_delay_ns = d->ours##_count = UNKNOWN_WAIT

#define TAKE_DELAY(ours, theirs)                                        \
	if (bpf_core_field_exists(delays->theirs##_delay)) {            \
		d->ours##_delay_ns = delays->theirs##_delay;            \
		d->ours##_count = delays->theirs##_count;               \
	}

#define ADD_DELAY(ours, theirs)                                         \
	if (bpf_core_field_exists(delays->theirs##_delay)) {            \
		d->ours##_delay_ns += delays->theirs##_delay;           \
		d->ours##_count += delays->theirs##_count;              \
	}

#define ADD_GONE(ours, theirs)                                                                                      \
	if (bpf_core_field_exists(delays->theirs##_delay) && bpf_core_field_exists(gone->theirs##_count)) {         \
		d->ours##_delay_ns = gone->theirs##_delay_total + (exits ? 0 : d->ours##_delay_ns);                 \
		d->ours##_count = gone->theirs##_count + (exits ? 0 : d->ours##_count);                             \
	}

/* Null: the thread began while delay accounting was switched off. */
static __always_inline struct task_delay_info *delays_of(struct task_struct *t)
{
	return bpf_core_field_exists(t->delays) ? t->delays : 0;
}

static __always_inline void delays_of_thread(struct task_struct *t, struct fp_delays *d)
{
	struct task_delay_info *delays = delays_of(t);

	EACH_DELAY(FORGET_DELAY);
	if (!delays)
		return;
	EACH_DELAY(TAKE_DELAY);
}

/* Those of a leading thread and of exited ones. */
static __always_inline void collect_delays(struct task_struct *t, struct fp_delays *d)
{
	struct task_delay_info *delays = delays_of(t);
	struct taskstats *gone = waits_of_gone(t);
	u32 exits = t->flags & PF_EXITING;

	delays_of_thread(t, d);
	if (!delays || !gone)
		return;
	EACH_DELAY(ADD_GONE);
}

/* Adds those of another thread. */
static __always_inline void fold_delays(struct task_struct *t, struct fp_delays *d)
{
	struct task_delay_info *delays = delays_of(t);

	if (d->blkio_delay_ns == UNKNOWN_WAIT || t->flags & PF_EXITING)
		return;
	if (!delays) {
		EACH_DELAY(FORGET_DELAY);
		return;
	}
	EACH_DELAY(ADD_DELAY);
}

#endif
