/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds what the kernel keeps of a cgroup for each CPU. */
#ifndef FASTPROC_CGROUP_PERCPU_H
#define FASTPROC_CGROUP_PERCPU_H

#include "anchor.h"

/* Finds the part of our own map on which on_cpu relies. */
static __always_inline void begin_percpu(void)
{
	u64 map = VALUE(&anchor);

	bpf_probe_read_kernel(&run.anchor, sizeof(run.anchor), (void *)(map + bpf_core_field_offset(struct bpf_array, pptrs)));
}

/* From the cookie of a per-CPU object to its part on a CPU: the same distance as in our own map. */
static __always_inline u64 on_cpu(u64 object, u32 cpu)
{
	u32 zero = 0;
	void *element = bpf_map_lookup_percpu_elem(&anchor, &zero, cpu);

	return element ? VALUE(element) - run.anchor + object : 0;
}

#endif
