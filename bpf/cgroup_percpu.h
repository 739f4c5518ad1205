/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel keeps of a cgroup for each CPU, and the CPU time among it. */
#ifndef FASTPROC_CGROUP_PERCPU_H
#define FASTPROC_CGROUP_PERCPU_H

#include "anchor.h"

/* Of each record in turn, the time on every CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} cpu_times SEC(".maps");

/* Of the cgroup that is read: its part for each CPU, and where its times begin. */
struct {
	u64 parts; /* __percpu */
	u32 at;
} by_cpu;

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

/* Whether the times are in the structure that has had them since 6.16. */
#define HAS_BASE_CPU bpf_core_field_exists(((struct cgroup *)0)->rstat_base_cpu)

static long read_time(u32 cpu, void *unused)
{
	u64 part = on_cpu(by_cpu.parts, cpu);
	u32 at = by_cpu.at + cpu;
	u64 *to = bpf_map_lookup_elem(&cpu_times, &at);

	if (!part || !to)
		return 1;
	if (HAS_BASE_CPU)
		*to = CAST(struct cgroup_rstat_base_cpu, part)->subtree_bstat.cputime.sum_exec_runtime;
	else
		*to = CAST(struct cgroup_rstat_cpu, part)->subtree_bstat.cputime.sum_exec_runtime;
	return 0;
}

int read_cpu_times(u64 cgroup, u32 index);
__noinline int read_cpu_times(u64 cgroup, u32 index)
{
	struct fp_cgroup_record *r = bpf_map_lookup_elem(&records, &index);
	struct cgroup *c = CAST(struct cgroup, cgroup);

	/* The kernel may lack the structures. */
	if (!r || !WANTED(FP_CGROUP_CPU_TIMES))
		return 0;
	if (HAS_BASE_CPU)
		by_cpu.parts = VALUE(c->rstat_base_cpu);
	else
		by_cpu.parts = VALUE(c->rstat_cpu);
	by_cpu.at = index * settings.cpus;
	bpf_loop(settings.cpus, read_time, 0, 0);
	r->cpu_times.times_at = by_cpu.at;
	r->cpu_times.cpus = settings.cpus;
	run.units += settings.cpus / 16;
	return 0;
}

#endif
