/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef FASTPROC_COUNTERS_LOCATE_H
#define FASTPROC_COUNTERS_LOCATE_H

/* ---- once, and after a change: addresses ---- */

static long anchor_of(u32 cpu, void *unused)
{
	u32 zero = 0;
	u64 *to = bpf_map_lookup_elem(&anchors, &cpu);
	void *element = bpf_map_lookup_percpu_elem(&anchor, &zero, cpu);

	if (!to)
		return 1;
	*to = (u64)element;
	return 0;
}

/*
 * The addresses from structures alone: this CPU's run queue is reachable from the running task, and BTF says where
 * every other per-CPU variable is relative to it. The nodes of /sys/kernel/irq are reachable from a file descriptor of
 * the caller, and each is embedded in its interrupt's descriptor.
 */
SEC("syscall")
int locate(void *unused)
{
	u32 zero = 0;
	struct counters_located *to = bpf_map_lookup_elem(&located, &zero);
	u64 task = (u64)bpf_get_current_task();
	u64 map, queue, files, table, file, inode;
	s32 fd;

	if (!to)
		return 1;
	bpf_loop(possible_cpus, anchor_of, 0, 0);
	/* through memory: the verifier does not allow loads from a map pointer */
	*(volatile u64 *)&to->percpu_pointer = (u64)&anchor;
	map = *(volatile u64 *)&to->percpu_pointer;
	to->percpu_pointer = word(map + bpf_core_field_offset(struct bpf_array, pptrs));

	queue = POINTER(struct task_struct, task, se.cfs_rq);
	queue = queue ? POINTER(struct cfs_rq, queue, rq) : 0;
	to->rq = queue;
	to->rq_cpu = queue ? READ_IF(struct rq, queue, cpu) : 0;

	to->irq_dir = 0;
	fd = to->irq_dir_fd;
	if (fd < 0)
		return 0;
	files = POINTER(struct task_struct, task, files);
	table = POINTER(struct files_struct, files, fdt);
	if ((u32)fd >= READ(struct fdtable, table, max_fds))
		return 0;
	file = word(POINTER(struct fdtable, table, fd) + 8 * (u64)fd);
	inode = file ? POINTER(struct file, file, f_inode) : 0;
	to->irq_dir = inode ? POINTER(struct inode, inode, i_private) : 0;
	return 0;
}

struct node_search {
	u64 first;
	u64 task;
	u32 found;
};

static long next_task(u32 i, struct node_search *search)
{
	u64 task = search->task, data, kthread;
	u64 name;
	u32 slot = search->found;
	u64 *to;

	/* "kswapd" and the node's number; the reliable check is pgdat->kswapd, which points back */
	name = word(task + bpf_core_field_offset(struct task_struct, comm));
	if (KSWAPD(name)) {
		kthread = POINTER(struct task_struct, task, worker_private);
		data = kthread ? POINTER(struct kthread, kthread, data) : 0;
		if (data && POINTER(struct pglist_data, data, kswapd) == task) {
			to = bpf_map_lookup_elem(&nodes, &slot);
			if (!to)
				return 1;
			*to = data;
			search->found = slot + 1;
		}
	}
	task = POINTER(struct task_struct, task, tasks.next);
	if (!task)
		return 1;
	task -= bpf_core_field_offset(struct task_struct, tasks);
	search->task = task;
	return task == search->first;
}

static long parent(u32 i, struct node_search *search)
{
	u64 up = POINTER(struct task_struct, search->task, real_parent);

	if (!up || up == search->task)
		return 1;
	search->task = up;
	return 0;
}

/*
 * Memory nodes: each has a kernel thread kswapdN whose data is its struct pglist_data. The program walks the list of
 * tasks from the idle task, without RCU: a task that exits meanwhile can end the walk early, and the library then tries
 * again.
 */
SEC("syscall")
int find_nodes(void *unused)
{
	u32 zero = 0;
	struct counters_located *to = bpf_map_lookup_elem(&located, &zero);
	struct node_search search = { .task = (u64)bpf_get_current_task() };

	if (!to)
		return 1;
	bpf_loop(1 << 10, parent, &search, 0);
	search.first = search.task;
	bpf_loop(1 << 20, next_task, &search, 0);
	to->nodes = search.found;
	to->walk_closed = search.task == search.first;
	return 0;
}

#endif
