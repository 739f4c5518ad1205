/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A per-CPU object of our own. Its address on each CPU shows how far each CPU's part of any per-CPU object is. */
#ifndef FASTPROC_ANCHOR_H
#define FASTPROC_ANCHOR_H

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} anchor SEC(".maps");

#endif
