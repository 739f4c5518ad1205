/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory: counters, resident set, layout. */
#ifndef FASTPROC_TASKS_MEMORY_H
#define FASTPROC_TASKS_MEMORY_H

#include "mm_flags.h"

/* The parts of these counters that memory.h reads, for ahead.h. */
#define HAS_RSS_PARTS(mm) bpf_core_field_exists((mm)->rss_stat[0].count)
#define RSS_PARTS(mm) ((u64)(mm)->rss_stat[0].counters)
#define TOUCH_RSS(mm)                           \
	do {                                    \
		TOUCH((mm)->rss_stat[0].count); \
		TOUCH((mm)->rss_stat[2].count); \
		TOUCH((mm)->rss_stat[3].count); \
	} while (0)

/*
 * The exact resident set: count plus the parts that CPUs have not yet added to it. percpu_counter_init_many() places
 * the four counters of a process side by side, so a CPU's four parts are 16 adjacent bytes.
 */
s64 rss_sum[4];

int collect_rss(u64 counters);
__noinline int collect_rss(u64 counters)
{
	s64 file = 0, anon = 0, swap = 0, shmem = 0;

	for (u32 i = 0; i < settings.max_cpus && i < run.cpus; i++) {
		u32 key = i;
		u64 *offset = bpf_map_lookup_elem(&cpu_offsets, &key);
		u64 part;

		if (!offset)
			continue;
		part = counters + *offset;
		file += (s32)FIELD(struct in6_addr, part, in6_u.u6_addr32[MM_FILEPAGES]);
		anon += (s32)FIELD(struct in6_addr, part, in6_u.u6_addr32[MM_ANONPAGES]);
		swap += (s32)FIELD(struct in6_addr, part, in6_u.u6_addr32[MM_SWAPENTS]);
		shmem += (s32)FIELD(struct in6_addr, part, in6_u.u6_addr32[MM_SHMEMPAGES]);
	}
	rss_sum[MM_FILEPAGES] = file;
	rss_sum[MM_ANONPAGES] = anon;
	rss_sum[MM_SWAPENTS] = swap;
	rss_sum[MM_SHMEMPAGES] = shmem;
	return 0;
}

static __always_inline u64 positive(s64 v)
{
	return v > 0 ? v : 0;
}

/*
 * One of the four counters. A kernel that lacks both forms cannot load this. The verifier of older kernels knows no members of an
 * array of atomic_long_t. No function: an index that is no constant is not relocated.
 */
#define RSS_COUNT(mm, which)                                       \
	(HAS_RSS_PARTS(mm) ? (mm)->rss_stat[which].count :         \
			     (s64)BPF_CORE_READ((struct mm_struct___6_1 *)(mm), rss_stat.count[which].counter))

static __always_inline void collect_rss_counters(struct mm_struct *mm, struct fp_memory *m)
{
	s64 file = RSS_COUNT(mm, MM_FILEPAGES), anon = RSS_COUNT(mm, MM_ANONPAGES);
	s64 swap = RSS_COUNT(mm, MM_SWAPENTS), shmem = RSS_COUNT(mm, MM_SHMEMPAGES);
	u32 shift = settings.page_shift;

	m->rss_approx = (positive(file) + positive(anon) + positive(shmem)) << shift;
	if (HAS_RSS_PARTS(mm) && run.cpus) {
		volatile u64 *slot = &run.task;
		u64 task = *slot;

		/* through memory: a global function accepts the value of a kernel pointer, not the pointer */
		*slot = RSS_PARTS(mm);
		collect_rss(*slot);
		*slot = task;
		file += rss_sum[MM_FILEPAGES];
		anon += rss_sum[MM_ANONPAGES];
		swap += rss_sum[MM_SWAPENTS];
		shmem += rss_sum[MM_SHMEMPAGES];
	}
	m->rss_file = positive(file) << shift;
	m->rss_anon = positive(anon) << shift;
	m->swap = positive(swap) << shift;
	m->rss_shmem = positive(shmem) << shift;
}

static __always_inline void collect_memory(struct mm_struct *mm, struct fp_memory *m)
{
	u32 shift = settings.page_shift;
	u64 page = 1ULL << shift;
	u64 total = mm->total_vm << shift, peak = mm->hiwater_vm << shift, exec = mm->exec_vm << shift;
	u64 text = ((mm->end_code + page - 1) & -page) - (mm->start_code & -page);
	u64 rss, hiwater;

	collect_rss_counters(mm, m);
	rss = m->rss_anon + m->rss_file + m->rss_shmem;
	hiwater = mm->hiwater_rss << shift;
	m->vsize = total;
	m->peak_vsize = peak > total ? peak : total;
	m->peak_rss = hiwater > rss ? hiwater : rss;
	m->locked = mm->locked_vm << shift;
	m->pinned = mm->pinned_vm.counter << shift;
	m->data = mm->data_vm << shift;
	m->stack = mm->stack_vm << shift;
	m->text = text;
	m->exe = text < exec ? text : exec;
	m->lib = exec - m->exe;
	m->mm_users = mm->mm_users.counter;
}

static __always_inline void collect_memory_details(struct task_struct *t, struct mm_struct *mm,
						   struct fp_memory_details *m)
{
	u32 shift = settings.page_shift;

	m->page_tables = mm->pgtables_bytes.counter;
	m->hugetlb = 0;
	if (bpf_core_field_exists(mm->hugetlb_usage))
		m->hugetlb = (u64)mm->hugetlb_usage.counter << shift;
	m->mm_flags = mm_flags(t, mm);
	m->untag_mask = UNTAG_MASK;
	if (bpf_core_field_exists(mm->context.untag_mask))
		m->untag_mask = mm->context.untag_mask;
}

static __always_inline void collect_layout(struct mm_struct *mm, struct fp_layout *l)
{
	l->start_code = mm->start_code;
	l->end_code = mm->end_code;
	l->start_stack = mm->start_stack;
	l->kstkesp = l->kstkeip = 0;
	l->start_data = mm->start_data;
	l->end_data = mm->end_data;
	l->start_brk = mm->start_brk;
	l->arg_start = mm->arg_start;
	l->arg_end = mm->arg_end;
	l->env_start = mm->env_start;
	l->env_end = mm->env_end;
}

static __always_inline void collect_mm(struct task_struct *t, struct fp_record *r, u32 flags)
{
	/* A kernel thread may borrow a user's mm (kthread_use_mm); get_task_mm() does not count it. */
	struct mm_struct *mm = flags & PF_KTHREAD ? 0 : RELOAD(t->mm);

	if (!mm) {
		r->identity.has_mm = 0;
		if (WANTED(FP_MEMORY))
			__builtin_memset(&r->memory, 0, sizeof(r->memory));
		if (WANTED(FP_MEMORY_DETAILS)) {
			__builtin_memset(&r->memory_details, 0, sizeof(r->memory_details));
			/* older kernels do not check it then */
			r->memory_details.mm_flags = !KEEPS_DUMPABLE(t) || kept_dumpable(t);
		}
		if (WANTED(FP_LAYOUT))
			__builtin_memset(&r->layout, 0, sizeof(r->layout));
		return;
	}
	r->identity.has_mm = 1;
	if (WANTED(FP_MEMORY))
		collect_memory(mm, &r->memory);
	if (WANTED(FP_MEMORY_DETAILS))
		collect_memory_details(t, mm, &r->memory_details);
	if (WANTED(FP_LAYOUT))
		collect_layout(mm, &r->layout);
	/*
	 * RCU does not free an mm: if it was replaced meanwhile, the values may be from a freed one. The position of
	 * the user registers of a dying task depends on the architecture, so its record comes from /proc.
	 */
	if (REPLACED(t->mm, mm) ||
	    (WANTED(FP_LAYOUT) && (flags & (PF_EXITING | PF_DUMPCORE | PF_POSTCOREDUMP))))
		r->identity.torn |= FP_TORN_MM;
}

#endif
