/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's list of processes, and where a walk that was interrupted continues: behind the last process that it met
 * and that is still on the list. See tasks.bpf.c.
 */
#ifndef FASTPROC_LIST_H
#define FASTPROC_LIST_H

#define MAX_STEPS (1 << 23)

/* Defined by the program: the task that was met at this place, its pid and its start, or 0 if there is no such place. */
static __always_inline u64 met_at(u32 at, u32 *pid, u64 *start_ns);
/* Whether this section is over. It has handled so many units more. */
static __always_inline int out_of_time(u32 units);

static __always_inline struct task_struct *next_of(struct task_struct *t)
{
	u64 next = (u64)t->tasks.next - bpf_core_field_offset(struct task_struct, tasks);

	return CAST(struct task_struct, next);
}

static __always_inline u64 next_node(u64 node)
{
	return (u64)RELOAD(CAST(struct list_head, node)->next);
}

/*
 * Whether this is still the same task and on its list, so that RCU keeps its successors. No node's `prev` points to a
 * removed one. Check that first: memory that belongs to another task by now has another start time. Or it belongs to a
 * thread that leads the process since it called execve(2), in the same place of the list.
 */
static __always_inline int is_here(u64 task, u64 node, u32 pid, u64 start_ns)
{
	struct task_struct *t = CAST(struct task_struct, task);

	if ((u64)RELOAD(CAST(struct list_head, next_node(node))->prev) != node)
		return 0;
	ordered();
	return RELOAD(t->pid) == (int)pid && RELOAD(t->start_boottime) == start_ns;
}

/* Finds the last place whose task is still on the list. */
static int go_back(u32 i, void *unused)
{
	u32 at = run.back - 1, pid = 0;
	u64 start_ns = 0, task = met_at(at, &pid, &start_ns);

	if (!task) {
		run.searches = 0;
		return 1;
	}
	if (is_here(task, task + bpf_core_field_offset(struct task_struct, tasks), pid, start_ns)) {
		run.next = (u64)next_of(CAST(struct task_struct, task));
		run.searches = 0;
		return 1;
	}
	run.back = at;
	/* many may have exited since: no section is longer for that */
	return out_of_time(1);
}

/*
 * Sets run.next to the process after the last one of so many that is still on the list, and run.back to how many there
 * are up to that. The program drops the others. Until run.searches is 0, the next run searches on.
 */
static __always_inline void search_back(u32 count)
{
	run.back = count;
	run.searches = 1;
	bpf_loop(MAX_STEPS, go_back, 0, 0);
}

#endif
