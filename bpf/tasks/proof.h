/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What proves that a record is still right, so that the walk need not read the process again.
 *
 * A process of one thread that sleeps changes few values: others change them. Everything else (times, faults, names,
 * credentials, sizes of memory) changes only while it runs, and a run ends in a counted switch. So the walk remembers for each
 * record the task and the words of the table below, and keeps the record while all of them are the same.
 *
 * A word is read before the record, and compared behind it: see prove(). It is a hint where to look, never a value, so a
 * remembered pointer to freed memory does no harm: loads cannot fault, and the words of another task differ.
 */
#ifndef FASTPROC_TASKS_PROOF_H
#define FASTPROC_TASKS_PROOF_H

/*
 * The groups that can be proven, and why. A record with another group is read at each walk.
 *
 * - Identity: the words without a group. PF_FORKNOEXEC: setpgid(2) changes the group of a child before it executes a program,
 *   never after. What waits or dies without a run is not kept: see may_rest().
 * - FP_CPU: no run, no time, no fault. What the kernel last showed to a reader may move, but what it shows then does not.
 * - FP_MEMORY: others reclaim, truncate, merge and pin: the counters are words. Its sizes it changes itself.
 * - FP_USERS: commit_creds() replaces only the credentials of the running task.
 * - FP_THREADS: of a process of one thread nothing is listed, or it is not kept.
 * - FP_SCHEDULING: others set it: words. The scheduler may move a sleeping task that is still on a queue to another CPU.
 */
#define PROVEN (FP_CPU | FP_MEMORY | FP_USERS | FP_SCHEDULING | FP_THREADS)

#define ALWAYS 0
#define NEEDED(group) (!(group) || WANTED(group))

/*
 * The words: LINE is the first that the walk meets in a cache line, which is fetched ahead, WORD one behind it in the same
 * line. t is the task, mm its memory. VALUE is not one member. As many as FP_WORDS of run.h.
 */
#define WORDS(LINE, WORD, VALUE)                                  \
	VALUE(ALWAYS, STATE, state_of(t))                         \
	WORD(ALWAYS, FLAGS, t->flags)                             \
	LINE(ALWAYS, PTRACE, t->ptrace)                           \
	LINE(ALWAYS, NVCSW, t->nvcsw)                             \
	WORD(ALWAYS, NIVCSW, t->nivcsw)                           \
	WORD(ALWAYS, START, t->start_boottime)                    \
	VALUE(ALWAYS, PARENT, parent_of(t))                       \
	VALUE(ALWAYS, PGRP, group_before_exec(t))                 \
	LINE(FP_MEMORY, HIWATER_RSS, mm->hiwater_rss)             \
	WORD(FP_MEMORY, TOTAL_VM, mm->total_vm)                   \
	WORD(FP_MEMORY, LOCKED_VM, mm->locked_vm)                 \
	WORD(FP_MEMORY, PINNED_VM, mm->pinned_vm.counter)         \
	LINE(FP_MEMORY, RSS_FILE, mm->rss_stat[MM_FILEPAGES].count) \
	WORD(FP_MEMORY, RSS_ANON, mm->rss_stat[MM_ANONPAGES].count) \
	LINE(FP_MEMORY, RSS_SWAP, mm->rss_stat[MM_SWAPENTS].count) \
	LINE(FP_MEMORY, RSS_SHMEM, mm->rss_stat[MM_SHMEMPAGES].count) \
	VALUE(FP_MEMORY, RSS_PARTS, rss_parts(mm))                \
	VALUE(FP_MEMORY, RSS_PARTS_2, rss_parts_2())              \
	LINE(FP_SCHEDULING, PRIO, t->prio)                        \
	WORD(FP_SCHEDULING, STATIC_PRIO, t->static_prio)          \
	WORD(FP_SCHEDULING, RT_PRIORITY, t->rt_priority)          \
	LINE(FP_SCHEDULING, POLICY, t->policy)                    \
	VALUE(FP_SCHEDULING, PROCESSOR, cpu_of(t))

#define NUMBER(group, name, value) WORD_##name,
enum { WORDS(NUMBER, NUMBER, NUMBER) WORDS_USED };
_Static_assert(WORDS_USED <= FP_WORDS, "run.h has no room for so many words");

/* Through memory: the verifier allows no arithmetic on a pointer. */
static __always_inline u64 parent_of(struct task_struct *t)
{
	volatile u64 *slot = &run.task;

	*slot = (u64)t->real_parent;
	return *slot;
}

static __always_inline u64 group_before_exec(struct task_struct *t)
{
	if (t->flags & PF_KTHREAD || !(t->flags & PF_FORKNOEXEC))
		return 0;
	return pid_nr(t->signal->pids[PIDTYPE_PGID]);
}

/* What the CPUs have not yet folded in, as collect_rss() adds it up: a part of a counter has few bits. */
static __always_inline u64 rss_parts(struct mm_struct *mm)
{
	volatile u64 *slot = &run.task;

	rss_sum[MM_FILEPAGES] = rss_sum[MM_ANONPAGES] = rss_sum[MM_SWAPENTS] = rss_sum[MM_SHMEMPAGES] = 0;
	if (!HAS_RSS_PARTS(mm) || !run.cpus)
		return 0;
	/* through memory: a global function accepts the value of a kernel pointer, not the pointer */
	*slot = RSS_PARTS(mm);
	if (*slot)
		collect_rss(*slot);
	return (u32)rss_sum[MM_FILEPAGES] | (u64)rss_sum[MM_ANONPAGES] << 32;
}

static __always_inline u64 rss_parts_2(void)
{
	return (u32)rss_sum[MM_SWAPENTS] | (u64)rss_sum[MM_SHMEMPAGES] << 32;
}

/* Whether this kernel's type information has every word. */
static __always_inline int has_words(void)
{
	struct task_struct *t = 0;
	struct mm_struct *mm = 0;
	int has = bpf_core_field_exists(t->on_cpu) && bpf_core_field_exists(t->__state);

#define HAS(group, name, member)                                        \
	if (NEEDED(group) && !bpf_core_field_exists(member))            \
		has = 0;
#define NOTHING(group, name, value)
	WORDS(HAS, HAS, NOTHING)
	return has && (!WANTED(FP_MEMORY) || HAS_RSS_PARTS(mm));
}

/*
 * Whether records are kept: not if the library does not want it, if a group has no proof, or if each process has a record of
 * its thread as well. And only where the processor keeps loads in order, as x86 does.
 */
#define HAS_PROOF (!WANTED(~PROVEN) && !(WANTED(FP_THREADS) && settings.lone_threads))
#ifdef __TARGET_ARCH_x86
#define KEEPS (settings.keeps && HAS_PROOF && has_words())
#else
#define KEEPS 0
#endif

/*
 * Whether a state is one in which nothing changes without a word: a sleep that a signal ends, or the idle sleep of a kernel
 * thread. Not a stopped process, whose exit status wait4(2) of its parent takes; not an uninterruptible one, which SIGKILL
 * marks without waking it, or whose new thread gets its name from another; not a frozen or a dead one.
 */
static __always_inline int may_rest(u32 state, u32 flags)
{
	if (state & (TASK_FROZEN | TASK_RTLOCK_WAIT))
		return 0;
	return state & TASK_INTERRUPTIBLE || (flags & PF_KTHREAD && (state & TASK_IDLE) == TASK_IDLE);
}

/* Whether nobody else changes this process, as it was just read. */
static __always_inline int is_alone(struct task_struct *t, struct fp_record *r)
{
	struct signal_struct *signal = t->signal;
	struct mm_struct *mm = t->mm;

	if (r->identity.torn || r->identity.on_cpu || t->exit_state || t->ptrace || signal->tty || signal->nr_threads != 1)
		return 0;
	if (!t->sighand || t->sighand->count.refs.counter != 1)
		return 0;
	/* a kernel thread may borrow the memory of a process, which its record does not show */
	if (t->flags & PF_KTHREAD)
		return 1;
	return mm && mm->mm_users.counter == 1 && (!WANTED(FP_MEMORY) || r->memory.mm_users == 1);
}

/*
 * Whether all words of this place are as they were. First whether it runs: every run ends in a counted switch before on_cpu
 * becomes zero.
 */
int proves(u32 at);
__noinline int proves(u32 at)
{
	struct fp_place *place = bpf_map_lookup_elem(&places, &at);
	struct task_struct *t;
	struct mm_struct *mm;
	u64 differs;

	if (!place || !KEEPS)
		return 0;
	t = CAST(struct task_struct, place->task);
	mm = CAST(struct mm_struct, place->mm);
	differs = RELOAD(t->on_cpu);
	barrier();
#define COMPARE(group, name, value)                                   \
	if (NEEDED(group))                                            \
		differs |= place->words[WORD_##name] ^ (u64)(value);
	WORDS(COMPARE, COMPARE, COMPARE)
	return !differs;
}

/* Remembers the words of a task that is about to be read into this place. Returns whether they are others than in `was`. */
int remember(u64 task, u32 at, u32 was);
__noinline int remember(u64 task, u32 at, u32 was)
{
	struct fp_place *place = bpf_map_lookup_elem(&places, &at), *before = bpf_map_lookup_elem(&places, &was);
	struct task_struct *t = CAST(struct task_struct, task);
	struct mm_struct *mm;
	u64 differs = 0, word;

	if (!place || !before || !KEEPS)
		return 1;
	differs = before->task ^ task;
	place->task = task;
	place->mm = t->flags & PF_KTHREAD ? 0 : (u64)RELOAD(t->mm);
	mm = CAST(struct mm_struct, place->mm);
	place->counters = WANTED(FP_MEMORY) && place->mm ? RSS_PARTS(mm) : 0;
#define REMEMBER(group, name, value)                                  \
	if (NEEDED(group)) {                                          \
		word = (u64)(value);                                  \
		differs |= before->words[WORD_##name] ^ word;         \
		place->words[WORD_##name] = word;                     \
	}
	WORDS(REMEMBER, REMEMBER, REMEMBER)
	return differs != 0;
}

/* The lines of the words of a process that may have stayed as it was. */
static __always_inline void touch_words(struct fp_place *place)
{
	struct task_struct *t = CAST(struct task_struct, place->task);
	struct mm_struct *mm = CAST(struct mm_struct, place->mm);

#define TOUCH_LINE(group, name, member) \
	if (NEEDED(group))              \
		TOUCH(member);
	TOUCH(t->__state);
	TOUCH(t->real_parent);
	WORDS(TOUCH_LINE, NOTHING, NOTHING)
	if (WANTED(FP_MEMORY) && place->mm)
		touch_rss_parts(place->counters);
}

#endif
