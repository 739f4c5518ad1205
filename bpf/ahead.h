/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prefetching. A walk over thousands of tasks mostly waits for memory: it reads about thirty cache lines per task, and
 * the processor cannot look far enough ahead in a BPF program's code to fetch those of the next task in time. So the
 * walk loads a word of each line before it needs the line, and drops the word: first from the task struct two tasks
 * ahead, then, when that has arrived, from the objects that the next task points to. These loads depend on nothing, and
 * nothing depends on them.
 */
#ifndef FASTPROC_AHEAD_H
#define FASTPROC_AHEAD_H

#define TOUCH(member)                                        \
	do {                                                 \
		u64 touched = (u64)RELOAD(member);           \
		asm volatile("" : : "r"(touched));           \
	} while (0)

/* The first CPUs of cpu_offsets, where no map must be searched. */
#define NEAR_CPUS 4
u64 near_offsets[NEAR_CPUS];

static __always_inline void set_near_offsets(void)
{
	for (u32 i = 0; i < NEAR_CPUS; i++) {
		u32 key = i;
		u64 *offset = bpf_map_lookup_elem(&cpu_offsets, &key);

		if (offset)
			near_offsets[i] = *offset;
	}
}

/* The parts of the resident set. With more CPUs, only the processor's own prefetching may fetch the others. */
static __always_inline void touch_rss_parts(u64 counters)
{
	for (u32 i = 0; i < NEAR_CPUS; i++)
		if (i < settings.max_cpus && i < run.cpus)
			TOUCH(CAST(struct in6_addr, counters + near_offsets[i])->in6_u.u6_addr32[0]);
}

/* The cache lines of a task struct itself. */
static __always_inline void touch_task(struct task_struct *t)
{
	TOUCH(t->tasks.next);
	TOUCH(t->__state);
	TOUCH(t->se.sum_exec_runtime);
	TOUCH(t->mm);
	TOUCH(t->exit_signal);
	TOUCH(t->tgid);
	TOUCH(t->real_parent);
	TOUCH(t->utime);
	TOUCH(t->start_boottime);
	TOUCH(t->comm[0]);
	TOUCH(t->signal);
	if (WANTED(FP_SIGNALS)) {
		TOUCH(t->blocked.sig[0]);
		TOUCH(t->pending.signal.sig[0]);
	}
	if (WANTED(FP_CREDENTIALS)) {
		TOUCH(t->atomic_flags);
		if (bpf_core_field_exists(t->seccomp.mode))
			TOUCH(t->seccomp.mode);
	}
	if (WANTED(FP_NAMESPACES))
		TOUCH(t->thread_pid);
	if (WANTED(FP_IO) && bpf_core_field_exists(t->ioac)) {
		TOUCH(t->ioac.rchar);
		TOUCH(t->ioac.cancelled_write_bytes);
	}
	if (WANTED(FP_SCHEDULING)) {
		TOUCH(t->prio);
		TOUCH(t->rt_priority);
		TOUCH(t->policy);
	}
	if (WANTED(FP_SCHEDULING_DETAILS)) {
		TOUCH(t->cpus_mask.bits[0]);
		if (bpf_core_field_exists(t->mems_allowed))
			TOUCH(t->mems_allowed.bits[0]);
		if (bpf_core_field_exists(t->numa_group))
			TOUCH(t->numa_group);
		if (bpf_core_field_exists(t->delays))
			TOUCH(t->delays);
	}
}

/* Objects two pointers away from the current task; nearer ones have arrived already. */
static __always_inline void touch_far(struct task_struct *t)
{
	if (WANTED(FP_LIMITS))
		TOUCH(t->files->fdt->max_fds);
	if (WANTED(FP_CREDENTIALS)) {
		TOUCH(t->real_cred->user_ns->ns.inum);
		TOUCH(t->real_cred->group_info->ngroups);
	}
	if (WANTED(FP_MEMORY) && HAS_RSS_PARTS(t->mm) && t->mm)
		touch_rss_parts(RSS_PARTS(t->mm));
}

/* The cache lines of the next record: the processor reads a line before it writes to it. */
static __always_inline void touch_record(u32 index)
{
	u32 key = index + 1;
	struct fp_record *r = bpf_map_lookup_elem(&records, &key);

	if (!r)
		return;
	TOUCH(r->identity.start_ns);
	TOUCH(r->identity.masked);
	if (WANTED(FP_CPU)) {
		TOUCH(r->cpu.cstime_ns);
		TOUCH(r->cpu.prev_stime_ns);
	}
	if (WANTED(FP_MEMORY)) {
		TOUCH(r->memory.rss_shmem);
		TOUCH(r->memory.mm_users);
	}
	if (WANTED(FP_MEMORY_DETAILS | FP_LAYOUT)) {
		TOUCH(r->memory_details.untag_mask);
		TOUCH(r->layout.start_data);
		TOUCH(r->layout.env_end);
	}
	if (WANTED(FP_USERS))
		TOUCH(r->users.fsgid);
	if (WANTED(FP_CREDENTIALS)) {
		TOUCH(r->credentials.cap_effective);
		TOUCH(r->credentials.groups_at);
	}
	if (WANTED(FP_SIGNALS))
		TOUCH(r->signals.queue_limit);
	if (WANTED(FP_SCHEDULING))
		TOUCH(r->scheduling.processor);
	if (WANTED(FP_SCHEDULING_DETAILS))
		TOUCH(r->scheduling_details.blkio_ns);
	if (WANTED(FP_IO))
		TOUCH(r->io.cancelled_write_bytes);
	TOUCH(r->name.kind);
}

/* The cache lines of the objects that a task points to. */
static __always_inline void touch_around(struct task_struct *t)
{
	struct signal_struct *signal = t->signal;

	TOUCH(signal->nr_threads);
	TOUCH(signal->shared_pending.signal.sig[0]);
	TOUCH(signal->pids[PIDTYPE_SID]);
	if (WANTED(FP_CPU)) {
		TOUCH(signal->utime);
		TOUCH(signal->prev_cputime.stime);
		TOUCH(signal->cmaj_flt);
		TOUCH(signal->sum_sched_runtime);
	}
	if (WANTED(FP_IO) && bpf_core_field_exists(t->ioac))
		TOUCH(signal->ioac.rchar);
	if (WANTED(FP_LIMITS | FP_SIGNALS))
		TOUCH(signal->rlim[RLIMIT_SIGPENDING].rlim_cur);
	if (WANTED(FP_MEMORY)) {
		struct mm_struct *mm = t->mm;

		TOUCH(mm->mm_users.counter);
		TOUCH(mm->hiwater_rss);
		TOUCH(mm->stack_vm);
		TOUCH(mm->start_code);
		TOUCH_RSS(mm);
		if (WANTED(FP_MEMORY_DETAILS)) {
			TOUCH(mm->pgtables_bytes.counter);
			if (bpf_core_field_exists(mm->hugetlb_usage))
				TOUCH(mm->hugetlb_usage.counter);
			if (bpf_core_field_exists(mm->flags.__mm_flags))
				TOUCH(mm->flags.__mm_flags[0]);
		}
		if (WANTED(FP_LAYOUT))
			TOUCH(mm->env_end);
	}
	if (WANTED(FP_USERS))
		TOUCH(t->real_cred->uid.val);
	if (WANTED(FP_CREDENTIALS)) {
		TOUCH(t->real_cred->cap_effective.val);
		TOUCH(t->real_cred->group_info);
		TOUCH(t->fs->umask);
	}
	if (WANTED(FP_NAMESPACES))
		TOUCH(t->thread_pid->level);
	if (WANTED(FP_SIGNALS))
		TOUCH(t->sighand->count.refs.counter);
	if (WANTED(FP_LIMITS))
		TOUCH(t->files->fdt);
}

#endif
