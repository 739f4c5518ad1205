/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scheduling: priorities, policy, affinity, delays. */
#ifndef FASTPROC_TASKS_SCHEDULING_H
#define FASTPROC_TASKS_SCHEDULING_H

/* Whether records have their bitmaps in the pool: with more than 64 CPUs or memory nodes. */
#define HAS_MASKS (WANTED(FP_SCHEDULING_DETAILS) && (settings.cpu_words > 1 || settings.mem_words > 1))
#define CPUS_OF(task) ((task) + bpf_core_field_offset(struct task_struct, cpus_mask))
#define MEMS_OF(task) ((task) + bpf_core_field_offset(struct task_struct, mems_allowed))

/* Copies the bitmap of n words into the pool. Returns where; 0 if there is no room. */
static __always_inline u32 collect_mask(struct fp_record *r, u32 n, u64 address)
{
	u32 at = n <= FP_POOL_SLACK ? pool_take(r, n) : 0;
	u64 *words = pool_at(at);

	if (!at || !words)
		return 0;
	bpf_probe_read_kernel(words, n * 8, (void *)address);
	return at;
}

int collect_masks(u32 index);
#if GROUPS & FP_SCHEDULING_DETAILS
__noinline int collect_masks(u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	u64 task = (u64)run.task;

	if (!r)
		return 0;
	if (settings.cpu_words > 1)
		r->scheduling_details.cpus_at = collect_mask(r, settings.cpu_words, CPUS_OF(task));
	if (settings.mem_words > 1)
		r->scheduling_details.mems_at = collect_mask(r, settings.mem_words, MEMS_OF(task));
	return 0;
}
#endif

static __always_inline void collect_scheduling(struct task_struct *t, struct fp_scheduling *s)
{
	s->priority = t->prio - 100; /* MAX_RT_PRIO */
	s->nice = t->static_prio - 120;
	s->rt_priority = t->rt_priority;
	s->policy = t->policy;
	s->processor = cpu_of(t);
}

static __always_inline void collect_scheduling_details(struct task_struct *t, struct fp_record *r, u32 index)
{
	struct fp_scheduling_details *s = &r->scheduling_details;
	struct task_delay_info *delays;
	struct numa_group *group = 0;

	s->ngid = 0;
	if (bpf_core_field_exists(t->numa_group)) {
		group = t->numa_group;
		if (group)
			s->ngid = group->gid;
	}
	s->blkio_ns = 0;
	if (bpf_core_field_exists(t->delays)) {
		delays = t->delays;
		if (delays) {
			s->blkio_ns = delays->blkio_delay;
			/* kernels that do not time swap-ins separately count them as block I/O */
			if (!bpf_core_field_exists(delays->swapin_start))
				s->blkio_ns += delays->swapin_delay;
		}
	}
	s->cpus_at = s->mems_at = 0;
	s->cpus_allowed = t->cpus_mask.bits[0];
	s->mems_allowed = 1;
	if (bpf_core_field_exists(t->mems_allowed))
		s->mems_allowed = t->mems_allowed.bits[0];
	if (HAS_MASKS)
		collect_masks(index);
}

#endif
