// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every open file of every process, in sections (kernels from 6.7).
 *
 * As in tasks.bpf.c, a run stops when its time is over, and the next run continues there: behind the last process that
 * is still on the list, or within it, at the next descriptor. A process that exits in between has no records.
 *
 * The kernel frees a table that was outgrown, and a process's files, without waiting for RCU, and may use the memory of
 * a file or a socket for another one at once. Loads here do not fault; files/record.h says why a record is right all the
 * same.
 */
#include "kernel_files.h"
#include "files.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "kfunc.h"
#include "arch.h"

/* See tasks.bpf.c. */
const volatile struct {
	u32 task_struct, list_head, callback_head, cred, css_set, cgroup, kernfs_node, signal_struct;
	u32 files_struct, fdtable, fs_struct, mm_struct, file, inode, super_block, dentry, vfsmount, mount;
	u32 ns_common, proc_ns_operations, net, socket, sock, tcp_sock, udp_sock, unix_sock, unix_address;
	u32 inet_timewait_sock;
} type_ids;

#define ID_OF(type) ID_OF_##type
#define ID_OF_struct type_ids.
#define CAST(type, pointer) ((type *)rdonly_cast((const void *)(pointer), ID_OF(type)))
/* The word at an address. */
#define WORD(address) ((u64)RELOAD(CAST(struct callback_head, address)->next))

const volatile struct files_settings settings;
#define WANTED(group) (settings.groups & (group))

struct files_run run SEC(".data.run");
/* through memory: a global function accepts the value of a pointer, not a pointer */
u64 scratch;
#define VALUE(pointer) (RELOAD(scratch) = (u64)(pointer), RELOAD(scratch))

#define ARRAY(map, value_type, flags)             \
	struct {                                  \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(map_flags, flags);         \
		__uint(max_entries, 1);           \
		__type(key, u32);                 \
		__type(value, value_type);        \
	} map SEC(".maps")

struct piece {
	char bytes[FILES_PIECE];
};
/* Where a process is: a kernel address, which stays in the kernel. And what was in use before it. */
struct place {
	u64 task;
	u32 sockets, text, text_at, reserved;
};

ARRAY(processes, struct files_process, BPF_F_MMAPABLE);
ARRAY(rights, struct files_rights, BPF_F_MMAPABLE);
ARRAY(records, struct files_record, BPF_F_MMAPABLE);
ARRAY(sockets, struct files_socket, BPF_F_MMAPABLE);
ARRAY(texts, struct piece, BPF_F_MMAPABLE);
ARRAY(places, struct place, 0);

/*
 * How much work a section does before it checks the clock again: a component of a path is one unit, a record is four, a
 * process is all of it.
 */
#define UNITS 64
#define UNITS_OF_RECORD 4
/* How often a walk begins processes again that were replaced while they were read. Then it leaves them unread. */
#define MOST_RESTARTS 16

#include "list.h"

static __always_inline int out_of_time(u32 units)
{
	run.units += units;
	if (run.units < UNITS && run.section_ns)
		return 0;
	run.units = 0;
	return bpf_ktime_get_ns() >= run.deadline_ns;
}

#include "files/text.h"
#include "files/socket.h"
#include "files/record.h"
#include "files/rights.h"
#include "files/table.h"
#include "files/listed.h"

/* Begins a process. */
int begin(u64 task);
__noinline int begin(u64 task)
{
	u32 index = run.processes;
	struct files_process *p = bpf_map_lookup_elem(&processes, &index);
	struct place *place = bpf_map_lookup_elem(&places, &index);
	struct task_struct *t = CAST(struct task_struct, task);

	if (!p || !place)
		return 0;
	place->task = task;
	place->sockets = run.sockets;
	place->text = run.text;
	place->text_at = run.text_at;
	p->start_ns = t->start_boottime;
	p->cgroup = CAST(struct kernfs_node, t->cgroups->dfl_cgrp->kn)->id;
	p->tgid = t->tgid;
	p->uid = t->real_cred->euid.val;
	bpf_probe_read_kernel(p->comm, sizeof(p->comm), t->comm);
	p->first = run.records;
	p->records = p->open = p->state = 0;
	for (u32 i = 0; i < FILES_KINDS; i++)
		p->kinds[i] = 0;
	run.processes = index + 1;
	run.inside = 1;
	run.at = run.tries = 0;
	run.word = 0;
	RELOAD(run.task) = task;
	find_table();
	begin_rights(index, p);
	if (!run.again)
		return 0;
	run.again--;
	run.max = 0;
	p->state |= FILES_CHANGED | FILES_UNCOUNTED;
	return 0;
}

static __always_inline int step_process(void)
{
	u64 task = RELOAD(run.next);
	u32 index = run.processes;
	struct task_struct *t;

	if (!task || task == run.first) {
		run.done = 1;
		return 1;
	}
	if (!bpf_map_lookup_elem(&places, &index)) {
		run.lost_processes++;
		run.done = 1;
		return 1;
	}
	t = CAST(struct task_struct, task);
	/* another thread has replaced it since the list was read, by execve(2) */
	if (RELOAD(t->pid) != t->tgid)
		task = (u64)t->group_leader;
	RELOAD(run.task) = task;
	RELOAD(run.next) = (u64)next_of(CAST(struct task_struct, RELOAD(run.task)));
	begin(RELOAD(run.task));
	return out_of_time(UNITS);
}

static int step(u32 i, void *unused)
{
	return run.inside ? step_table() : step_process();
}

static __always_inline u64 met_at(u32 at, u32 *pid, u64 *start_ns)
{
	struct files_process *p = bpf_map_lookup_elem(&processes, &at);
	struct place *place = bpf_map_lookup_elem(&places, &at);

	if (!p || !place)
		return 0;
	*pid = p->tgid;
	*start_ns = p->start_ns;
	return place->task;
}

/*
 * Drops the processes from this place on: they have ended, or another thread leads them, and the walk meets them again.
 * Whoever replaces its leading thread all the time must not keep the walk at its place.
 */
static __always_inline void drop_from(u32 index)
{
	struct files_process *p = bpf_map_lookup_elem(&processes, &index);
	struct place *place = bpf_map_lookup_elem(&places, &index);

	if (!p || !place)
		return;
	if (run.inside && ++run.restarts > MOST_RESTARTS)
		run.again = run.processes - index;
	run.inside = 0;
	run.records = p->first;
	run.sockets = place->sockets;
	run.text = place->text;
	run.text_at = place->text_at;
	run.dropped += run.processes - index;
	run.processes = index;
}

/* Continues where the previous run stopped. Returns whether it is known where that is. */
static __always_inline int resume(void)
{
	search_back(run.processes);
	if (run.back != run.processes)
		drop_from(run.back);
	if (RELOAD(run.searches))
		return 0;
	if (run.inside) {
		continue_table();
		prove_rights();
	}
	return 1;
}

SEC("syscall") int walk(void *ctx)
{
	struct bpf_iter_task it;
	struct task_struct *me;
	u64 began = bpf_ktime_get_ns(), took;

	run.deadline_ns = began + run.section_ns;
	bpf_rcu_read_lock();
	/* Where the list begins and ends, and the first process that the kernel does not hide: see tasks.bpf.c. */
	bpf_iter_task_new(&it, 0, BPF_TASK_ITER_ALL_PROCS);
	run.first = (u64)bpf_iter_task_next(&it);
	run.next = (u64)bpf_iter_task_next(&it);
	bpf_iter_task_destroy(&it);
	me = CAST(struct task_struct, bpf_get_current_task());
	run.root_dentry = (u64)me->fs->root.dentry;
	run.root_mount = (u64)me->fs->root.mnt;
	if (resume())
		bpf_loop(MAX_STEPS, step, 0, 0);
	if (run.inside)
		prove_rights();
	bpf_rcu_read_unlock();
	took = bpf_ktime_get_ns() - began;
	if (took > run.longest_ns)
		run.longest_ns = took;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
