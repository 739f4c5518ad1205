/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef FASTPROC_COUNTERS_VM_H
#define FASTPROC_COUNTERS_VM_H

/* ---- /proc/vmstat ---- */

struct numa_loop {
	u64 percpu;
	u64 *to;
};

static long add_zone(u32 i, struct numa_loop *loop)
{
	u64 *pointer = bpf_map_lookup_elem(&zonestats, &i);
	u64 stat, pending[COUNTERS_NUMA_EVENTS] = {};

	if (!pointer)
		return 1;
	stat = *pointer + loop->percpu;
	if (may_cast) {
		struct per_cpu_zonestat *typed = CAST(struct per_cpu_zonestat, stat);

		for (int k = 0; k < COUNTERS_NUMA_EVENTS; k++)
			loop->to[k] += typed->vm_numa_event[k];
		return 0;
	}
	copy(pending, stat + bpf_core_field_offset(struct per_cpu_zonestat, vm_numa_event), sizeof(pending));
	for (int k = 0; k < COUNTERS_NUMA_EVENTS; k++)
		loop->to[k] += pending[k];
	return 0;
}

static long read_vm_cpu(u32 cpu, struct cpu_loop *loop)
{
	struct counters_place *place = bpf_map_lookup_elem(&places, &cpu);
	u64 *row = bpf_map_lookup_elem(&rows, &cpu);

	if (!place || !row)
		return 1;
	if (!place->online || !place->vm_events)
		return 0;
	for (int k = 0; k < COUNTERS_NUMA_EVENTS; k++)
		row[k] = 0;
	if (bpf_core_field_exists(((struct per_cpu_zonestat *)0)->vm_numa_event)) {
		struct numa_loop numa = { .percpu = place->percpu, .to = row };

		bpf_loop(loop->zones, add_zone, &numa, 0);
	}
	loop->faults += copy(row + COUNTERS_NUMA_EVENTS, place->vm_events, row_bytes - 8 * COUNTERS_NUMA_EVENTS);
	return 0;
}

static long read_block(u32 i, struct cpu_loop *loop)
{
	struct counters_block *block = bpf_map_lookup_elem(&blocks, &i);
	u32 index = possible_cpus + i;
	u64 *row = bpf_map_lookup_elem(&rows, &index);
	u32 bytes;

	if (!block || !row)
		return 1;
	bytes = block->bytes;
	if (bytes > row_bytes)
		return 1;
	loop->faults += copy(row, block->address, bytes);
	return 0;
}

#endif
