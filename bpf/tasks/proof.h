/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Proves that a record is still right, so that the walk need not read the process again.
 *
 * Other processes change only few values of a sleeping process of one thread. Everything else (times, faults, names,
 * credentials, sizes of memory) changes only while it runs, and a run ends in a counted switch. So the walk remembers
 * for each record the task and the words of words.h, and keeps the record while all of them are the same.
 *
 * A word is read before the record, and compared after it: see judge().
 *
 * Addresses prove nothing: the kernel gives freed memory to another object of the kind, and a remembered one may be of
 * any age. Loads from it cannot fault, but may find every value that a user can bring about. Two words together never
 * come back: the start time of a task and its count of execve(2). A thread that calls execve(2) takes over the start
 * time of its leader, and a later one may get the leader's memory; but the count, which threads inherit, is higher by
 * then. So while both are the same, this is the same task; it has not run, so its memory and signal_struct are not
 * freed either. The parent, the group and the cgroup are compared by the number that is shown.
 */
#ifndef FASTPROC_TASKS_PROOF_H
#define FASTPROC_TASKS_PROOF_H

/*
 * The groups that can be proven, and why. "Others" are other processes; "words" are in words.h. A record with
 * another group is read at each walk.
 *
 * - Identity: the words that are always compared. PF_FORKNOEXEC: setpgid(2) changes the group of a child before it executes a
 *   program, never after. A process that can be reaped or die without a run is not kept: see may_rest().
 * - FP_CPU: without a run no time passes, and no faults occur. The times that the kernel last showed to a reader may
 *   move, but not what it shows then. What a task waited (sched_info) changes when it gets a CPU, which is a run, and when
 *   it leaves a run queue. From 6.12 on a sleeping task may stay on one until its turn comes; if it is moved twice by then, it
 *   leaves one as if it had waited. So a record is kept only if the task was on none after its words were stored: it comes
 *   back onto one only by being woken, which changes its state until it has run.
 * - FP_MEMORY: others reclaim, truncate, merge and pin: the counters are words. The process itself changes its sizes.
 * - FP_MEMORY_DETAILS: page tables, huge pages and flags: words.
 * - FP_LAYOUT: the process itself changes it.
 * - FP_USERS, FP_CREDENTIALS: commit_creds() replaces only the credentials of the running task; seccomp(2) affects
 *   other threads of its process only. Another process with the same fs may change the umask: not kept; for kernel
 *   threads, a word.
 * - FP_SIGNALS: pending ones and the limit: words. The process itself changes its signal actions and blocked signals.
 *   The queue belongs to the user, and its length is set in kept records.
 * - FP_NAMESPACES: the pids of a process never change, and its group in each namespace follows from the word PGRP.
 * - FP_SCHEDULING, FP_SCHEDULING_DETAILS: others set it: words, and with more than 64 CPUs or memory nodes the bitmaps of the
 *   record, which are compared with those of the task. The scheduler may move a sleeping task that is still on a queue to
 *   another CPU. The delays by I/O are its own.
 * - FP_LIMITS: prlimit(2): a word. Another process with the same files may enlarge the table: not kept; for kernel
 *   threads, a word.
 * - FP_IO: the process counts its own I/O.
 * - FP_DELAYS: the process itself adds to them when it goes on, or who wakes it from a wait for I/O.
 * - FP_CGROUP: others move the process: a word.
 * - FP_THREADS: a process of one thread is not listed, or not kept.
 */
#define PROVEN                                                                                                          \
	(FP_CPU | FP_MEMORY | FP_MEMORY_DETAILS | FP_LAYOUT | FP_USERS | FP_CREDENTIALS | FP_SIGNALS | FP_NAMESPACES |  \
	 FP_SCHEDULING | FP_SCHEDULING_DETAILS | FP_LIMITS | FP_IO | FP_CGROUP | FP_DELAYS | FP_THREADS)

/* Whether it has executed no program yet: its parent may change its group. */
static __always_inline int may_be_grouped(u32 flags)
{
	return (flags & (PF_KTHREAD | PF_FORKNOEXEC)) == PF_FORKNOEXEC;
}

static __always_inline u64 group_before_exec(struct task_struct *t, struct signal_struct *s)
{
	return may_be_grouped(t->flags) ? pid_nr(s->pids[PIDTYPE_PGID]) : 0;
}

static __always_inline u64 huge_pages(struct mm_struct *mm)
{
	return bpf_core_field_exists(mm->hugetlb_usage) ? mm->hugetlb_usage.counter : 0;
}

/* Kernel threads share fs and files with each other, and fs with the first process. */
static __always_inline u64 shared_umask(struct task_struct *t)
{
	return t->flags & PF_KTHREAD ? t->fs->umask : 0;
}

static __always_inline u64 shared_fd_size(struct task_struct *t)
{
	return t->flags & PF_KTHREAD ? t->files->fdt->max_fds : 0;
}

static __always_inline u64 memory_nodes(struct task_struct *t)
{
	return bpf_core_field_exists(t->mems_allowed) ? t->mems_allowed.bits[0] : 0;
}

/* The id itself: the address may be that of another cgroup by now. */
static __always_inline u64 cgroup_of(struct task_struct *t)
{
	return bpf_core_field_exists(t->cgroups) ? t->cgroups->dfl_cgrp->kn->id : 0;
}

/* Whether queued_signals() can read the number of queued signals directly. */
static __always_inline int has_queue(void)
{
	struct cred *cred = 0;

	return bpf_core_field_exists(cred->ucounts) && bpf_core_field_exists(cred->ucounts->rlimit) &&
	       bpf_core_enum_value(enum rlimit_type, UCOUNT_RLIMIT_SIGPENDING) == UCOUNT_RLIMIT_SIGPENDING;
}

static __always_inline u64 word_at(u64 address)
{
	u64 word = 0;

	if (CAN_CAST)
		return *(u64 *)CAST(struct in6_addr, address);
	bpf_probe_read_kernel(&word, sizeof(word), (void *)address);
	return word;
}

/*
 * The parts that CPUs have not yet added to the four counters, see collect_rss(), added up by pairs. A part is a small
 * signed number. The lower one of a pair is made positive, so that the carry into the upper one follows from their sum.
 */
u64 rss_pairs[2];

static __always_inline void add_pairs(u64 part, u64 *first, u64 *second)
{
	*first += word_at(part) ^ 1ULL << 31;
	*second += word_at(part + 8) ^ 1ULL << 31;
}

/* Those of the CPUs after the first NEAR_CPUS. */
int add_rss_pairs(u64 counters);
__noinline int add_rss_pairs(u64 counters)
{
	u64 first = 0, second = 0;

	for (u32 i = NEAR_CPUS; i < settings.max_cpus && i < run.cpus; i++) {
		u32 key = i;
		u64 *offset = bpf_map_lookup_elem(&cpu_offsets, &key);

		if (offset)
			add_pairs(counters + *offset, &first, &second);
	}
	rss_pairs[0] = first;
	rss_pairs[1] = second;
	return 0;
}

static __always_inline u64 rss_parts(u64 counters, u64 *second)
{
	volatile u64 *slot = rss_pairs;
	u64 first = 0;

	*second = 0;
	if (!counters)
		return 0;
	for (u32 i = 0; i < NEAR_CPUS; i++)
		if (i < settings.max_cpus && i < run.cpus)
			add_pairs(counters + near_offsets[i], &first, second);
	if (settings.max_cpus > NEAR_CPUS && run.cpus > NEAR_CPUS) {
		/* Through memory: for the verifier of Linux 7.3 this is a pointer, and a global function takes a number. */
		*slot = counters;
		add_rss_pairs(*slot);
		first += rss_pairs[0];
		*second += rss_pairs[1];
	}
	return first;
}

#include "word_functions.h"
_Static_assert(WORDS_USED <= FP_WORDS, "run.h has no room for so many words");

/* Whether this kernel's type information has all words. */
static __always_inline int has_words(void)
{
	struct task_struct *t = 0;
	struct signal_struct *s = 0;
	struct mm_struct *mm = 0;
	int has = bpf_core_field_exists(t->on_cpu) && bpf_core_field_exists(t->on_rq);

	if (WANTED(FP_CREDENTIALS) && !bpf_core_field_exists(t->fs->users))
		has = 0;
	if (WANTED(FP_LIMITS) && !bpf_core_field_exists(t->files->count))
		has = 0;
	if (!has_members_of_words(t, s, mm))
		has = 0;
	return has;
}

/*
 * Whether records can be kept: not if a group has no proof, or if each process has a record of its thread as well; and
 * only if the processor keeps loads in order, as x86 does.
 */
#define HAS_PROOF (!WANTED(~PROVEN) && !(WANTED(FP_THREADS) && settings.lone_threads))
#ifdef __TARGET_ARCH_x86
#define CAN_KEEP (settings.keeps && HAS_PROOF)
#else
#define CAN_KEEP 0
#endif

/* Whether this walk keeps records. Evaluated once: even a condition that the verifier knows takes some instructions.
 * */
#define KEEPS (settings.keeps && run.keeps)

/*
 * Whether in this state nothing changes without a word: a sleep that a signal ends, or the idle sleep of a kernel
 * thread. Not a stopped process, whose exit status its parent's wait4(2) takes; not an uninterruptible one, which
 * SIGKILL marks without waking it, or whose new thread gets its name from another; not a frozen or a dead one.
 */
static __always_inline int may_rest(u32 state, u32 flags)
{
	if (state & (TASK_FROZEN | TASK_RTLOCK_WAIT))
		return 0;
	return state & TASK_INTERRUPTIBLE || (flags & PF_KTHREAD && (state & TASK_IDLE) == TASK_IDLE);
}

/* Whether no other process changes this one, as it was just read. */
static __always_inline int is_alone(struct task_struct *t, struct fp_record *r)
{
	struct signal_struct *signal = t->signal;
	struct mm_struct *mm = t->mm;

	/* the record must agree: a thread or a terminal may have gone since it was read */
	if (r->identity.num_threads != 1 || r->identity.tty_nr)
		return 0;
	if (r->identity.torn || r->identity.on_cpu || t->exit_state || t->ptrace || signal->tty || signal->nr_threads != 1)
		return 0;
	if (!t->sighand || t->sighand->count.refs.counter != 1)
		return 0;
	/* a kernel thread may borrow the memory of a process, which its record does not show */
	if (t->flags & PF_KTHREAD)
		return 1;
	if (WANTED(FP_CREDENTIALS) && bpf_core_field_exists(t->fs->users) && (!t->fs || t->fs->users != 1))
		return 0;
	if (WANTED(FP_LIMITS) && bpf_core_field_exists(t->files->count) && (!t->files || t->files->count.counter != 1))
		return 0;
	return mm && mm->mm_users.counter == 1 && (!WANTED(FP_MEMORY) || r->memory.mm_users == 1);
}

static __always_inline int is_same_mask(u32 at, u32 n, u64 address)
{
	u64 *words = pool_at(at);

	if (!at || !words || n > FP_POOL_SLACK)
		return 0;
	for (u32 i = 0; i < n; i++)
		if (words[i] != word_at(address + i * 8))
			return 0;
	return 1;
}

/* Whether the bitmaps of this record in the pool are those of its task by now. */
int has_same_masks(u32 at);
__noinline int has_same_masks(u32 at)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &at);
	struct fp_place *place = bpf_map_lookup_elem(&places, &at);

	if (!r || !place)
		return 0;
	if (settings.cpu_words > 1 && !is_same_mask(r->scheduling_details.cpus_at, settings.cpu_words, CPUS_OF(place->task)))
		return 0;
	if (settings.mem_words > 1 && !is_same_mask(r->scheduling_details.mems_at, settings.mem_words, MEMS_OF(place->task)))
		return 0;
	return 1;
}

/* Stores the words of a task that is about to be read. Returns whether they differ from older ones. */
static __always_inline int store_words(struct task_struct *t, struct fp_proof *proof, struct fp_proof *old_proof)
{
	struct signal_struct *s = t->signal;
	struct mm_struct *mm = t->flags & PF_KTHREAD ? 0 : RELOAD(t->mm);

	proof->mm = (u64)mm;
	proof->signal = (u64)s;
	proof->pgrp = (u64)s->pids[PIDTYPE_PGID];
	if (WANTED(FP_SIGNALS) && has_queue())
		proof->ucounts = (u64)t->real_cred->ucounts;
	proof->counters = 0;
	if (WANTED(FP_MEMORY) && HAS_RSS_PARTS(mm) && mm)
		proof->counters = RSS_PARTS(mm);
	return !!remember_words(t, s, mm, proof, old_proof);
}

/* Fetches the lines of the words of a process that may be unchanged. */
static __always_inline void touch_words(u64 task, struct fp_proof *proof)
{
	struct task_struct *t = CAST(struct task_struct, task);
	struct signal_struct *s = CAST(struct signal_struct, proof->signal);
	struct mm_struct *mm = CAST(struct mm_struct, proof->mm);

	TOUCH(t->__state);
	TOUCH(t->real_parent);
	if (may_be_grouped(proof->words[WORD_FLAGS])) {
		TOUCH(s->pids[PIDTYPE_PGID]);
		TOUCH(CAST(struct pid, proof->pgrp)->numbers[0].nr);
	}
	fetch_lines_of_words(t, s, mm);
	if (WANTED(FP_MEMORY_DETAILS)) {
		if (bpf_core_field_exists(mm->hugetlb_usage))
			TOUCH(mm->hugetlb_usage.counter);
		if (bpf_core_field_exists(mm->flags.__mm_flags))
			TOUCH(mm->flags.__mm_flags[0]);
	}
	if (WANTED(FP_SCHEDULING_DETAILS) && bpf_core_field_exists(t->mems_allowed))
		TOUCH(t->mems_allowed.bits[0]);
	if (WANTED(FP_CGROUP) && bpf_core_field_exists(t->cgroups))
		TOUCH(t->cgroups);
	if (WANTED(FP_MEMORY) && proof->mm) {
		if (HAS_RSS_PARTS(mm))
			TOUCH_RSS(mm);
		if (proof->counters)
			touch_rss_parts(proof->counters);
	}
}

#endif
