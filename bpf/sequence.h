/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether the sums of a signal_struct are from one moment. */
#ifndef FASTPROC_SEQUENCE_H
#define FASTPROC_SEQUENCE_H

#include "arch.h"

/* Counts the changes of the sums of dead threads and waited-for children in a signal struct; odd during a change. */
static __always_inline u32 stats_sequence(struct task_struct *t)
{
	struct signal_struct *signal = t->signal;
	struct signal_struct___5_9 *old = (void *)signal;
	u32 sequence = 0;

	ordered();
	if (bpf_core_field_exists(signal->stats_lock.seqcount.seqcount.sequence))
		sequence = RELOAD(signal->stats_lock.seqcount.seqcount.sequence);
	else if (bpf_core_field_exists(old->stats_lock.seqcount.sequence))
		sequence = RELOAD(old->stats_lock.seqcount.sequence);
	ordered();
	return sequence;
}

#endif
