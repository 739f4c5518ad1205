// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every process by an iter/task program (kernels from 5.8). The kernel goes through the pids in order and lets go of
 * RCU between them, so the walk may be as long as it likes; but a thread need not follow its leader, and the library
 * folds the threads.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define FIELD(type, pointer, member)                  \
	({                                            \
		type *__typed = (type *)(pointer);    \
		BPF_CORE_READ(__typed, member);       \
	})
#define PART_DEFINE(part)
#define PART(part, t, r, index) collect_##part(t, r, index)

static __always_inline u8 waits(struct task_struct *t, struct fp_identity *id);
#define WAITS(t, id) waits(t, id)

#include "collect.h"
#include "wchan.h"

SEC("iter/task") int visit(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct fp_record *r;
	u32 index;

	if (!t)
		return 0;
	if ((u32)t->pid != (u32)t->tgid) {
		if (WANTED(FP_CPU | FP_IO | FP_THREADS))
			list_thread(t);
		return 0;
	}
	if (WANTED(FP_THREADS))
		list_thread(t);
	index = run.records;
	r = bpf_map_lookup_elem(&records, &index);
	if (!r) {
		run.lost_records++;
		return 0;
	}
	run.records = index + 1;
	collect_leader(t, r, index);
	return 0;
}
