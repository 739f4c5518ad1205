/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The distance to each CPU's part of a per-CPU object. */
#ifndef FASTPROC_TASKS_OFFSETS_H
#define FASTPROC_TASKS_OFFSETS_H

#include "../anchor.h"

/*
 * The distance to each CPU's part of a per-CPU object, without symbols: the address of our own per-CPU map element on
 * that CPU, minus the cookie that the map has for it. The library runs this once, for all possible CPUs.
 */
SEC("syscall") int find_cpu_offsets(void *ctx)
{
	volatile u64 *slot = &run.task;
	u64 cookie = 0;

	/* through memory, here and below: the verifier allows no arithmetic on a map pointer, or with two pointers */
	*slot = (u64)&anchor;
	bpf_probe_read_kernel(&cookie, sizeof(cookie), (void *)(*slot + bpf_core_field_offset(struct bpf_array, pptrs)));
	for (u32 i = 0; i < settings.max_cpus; i++) {
		u32 zero = 0, key = i;
		u64 *offset = bpf_map_lookup_elem(&cpu_offsets, &key);
		void *element = bpf_map_lookup_percpu_elem(&anchor, &zero, i);

		if (!offset || !element)
			continue;
		*slot = (u64)element;
		*offset = *slot - cookie;
	}
	return 0;
}

#endif
