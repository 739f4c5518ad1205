// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every exited process, with its final values.
 *
 * A process exits when its last thread leaves do_exit(): `process_ends` records the time and the parent. Freeing its
 * memory still takes CPU time after that, and until its parent waits for it, /proc shows a zombie. `task_freed` runs
 * after the process has left the list of tasks: by then __exit_signal() has added every thread, including the leader,
 * to signal_struct, and nothing changes any more. So a process is either in a walk or has its record here.
 * A process that executes nothing runs the program of the process that forked it: `process_forks` keeps which one that
 * is. At its end no member shows that: the parent may have executed another program, or may be another process.
 */
#include "kernel.h"
#include "exits.h"
#include "tasks/io.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "tasks/mm_flags.h"
#include "tasks/users.h"
#include "tasks/waits.h"
#include "kfunc.h"
#include "sequence.h"

/* The id of the type in this kernel: see tasks.bpf.c. */
const volatile struct {
	u32 task_struct;
} type_ids;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct exits_settings exit_settings;

/* In an outer map, so that the library can replace it by a larger ring. */
struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} first_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps") = { .values = { (void *)&first_ring } };

/* Events for which the ring had no room. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

/*
 * With exit_settings.pid_ns: exited processes of that namespace, by the address of the leader. When the kernel frees a
 * process, its numbers are gone. The address may belong to another process by then, with another start time.
 */
struct numbered {
	u64 start_ns;
	u32 tgid, reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, struct numbered);
} ended SEC(".maps");

/* The fork of a process that has executed nothing since, by its pid in the initial namespace. */
struct forked {
	u64 start_ns; /* of the process: another one may have its pid by now */
	struct exits_program program;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct forked);
} forks SEC(".maps");

#define MAX_LEVEL 32

/* The process's number in the namespace whose processes are recorded; 0 if it has none there. */
static __noinline u32 nested_tgid(struct task_struct *t)
{
	/* read as a number, because the verifier permits arithmetic with numbers only */
	u64 pid = (u64)BPF_CORE_READ(t, signal, pids[PIDTYPE_TGID]);
	u32 level, i;

	if (!pid)
		return 0;
	level = BPF_CORE_READ((struct pid *)pid, level);
	for (i = 0; i <= MAX_LEVEL; i++) {
		struct upid *at = (void *)(pid + bpf_core_field_offset(struct pid, numbers) + i * bpf_core_type_size(struct upid));

		if (i > level)
			break;
		if (BPF_CORE_READ(at, ns, ns.inum) == exit_settings.pid_ns)
			return BPF_CORE_READ(at, nr);
	}
	return 0;
}

static __always_inline u32 tgid_of(struct task_struct *t)
{
	return exit_settings.pid_ns ? nested_tgid(t) : t->tgid;
}

static __always_inline void remember(struct task_struct *leader, u32 tgid)
{
	struct numbered numbered = { .start_ns = leader->start_boottime, .tgid = tgid };
	u64 key = (u64)BPF_CORE_READ(leader, group_leader);

	bpf_map_update_elem(&ended, &key, &numbered, 0);
}

/* The number that the process had when it exited. Removes it from the map. */
static __always_inline u32 forget(struct task_struct *leader)
{
	u64 key = (u64)BPF_CORE_READ(leader, group_leader);
	struct numbered *numbered = bpf_map_lookup_elem(&ended, &key);
	u32 tgid = 0;

	if (numbered && numbered->start_ns == leader->start_boottime)
		tgid = numbered->tgid;
	bpf_map_delete_elem(&ended, &key);
	return tgid;
}

static __always_inline void *current_ring(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&rings, &zero);
}

static __always_inline void *reserve(void *ring, u64 size)
{
	u32 zero = 0;
	u64 *lost_events;
	void *event = 0;

	if (ring)
		event = bpf_ringbuf_reserve(ring, size, 0);
	if (event)
		return event;
	lost_events = bpf_map_lookup_elem(&lost, &zero);
	if (lost_events)
		__sync_fetch_and_add(lost_events, 1);
	return 0;
}

/* Waking the reader is most of the cost of an event. Unless it must be immediate, wake it when a quarter of the ring
 * is used. */
static __always_inline void submit(void *ring, void *event)
{
	u64 flags = 0;

	if (!exit_settings.at_once) {
		u64 waits = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);

		flags = waits < bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / 4 ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
	}
	bpf_ringbuf_submit(event, flags);
}

/* Makes a pointer that the verifier does not trust: for loads through a trusted one it searches the type information.
 * */
static __always_inline struct task_struct *task_of(u64 argument)
{
	struct task_struct *t = (void *)argument;

	return function_ids.bpf_rdonly_cast ? rdonly_cast(t, type_ids.task_struct) : t;
}

static __always_inline void begin(struct exits_event *event, u32 kind, u32 tgid, struct task_struct *process)
{
	event->kind = kind;
	event->tgid = tgid;
	event->start_ns = process->start_boottime;
}

static __always_inline u64 cgroup_of(struct task_struct *t)
{
	return bpf_core_field_exists(t->cgroups) ? t->cgroups->dfl_cgrp->kn->id : 0;
}

/* The sums of the exited threads in signal_struct. */
static __always_inline void gone_threads(struct exits_exit *e, struct signal_struct *signal)
{
	e->sum_exec_ns = signal->sum_sched_runtime;
	e->sampled_utime_ns = signal->utime;
	e->sampled_stime_ns = signal->stime;
	e->prev_utime_ns = signal->prev_cputime.utime;
	e->prev_stime_ns = signal->prev_cputime.stime;
	e->gtime_ns = signal->gtime;
	e->cutime_ns = signal->cutime;
	e->cstime_ns = signal->cstime;
	e->cgtime_ns = signal->cgtime;
	e->cminflt = signal->cmin_flt;
	e->cmajflt = signal->cmaj_flt;
	e->minflt = signal->min_flt;
	e->majflt = signal->maj_flt;
	e->nvcsw = signal->nvcsw;
	e->nivcsw = signal->nivcsw;
	e->peak_rss = signal->maxrss << exit_settings.page_shift;
	if (bpf_core_field_exists(signal->ioac))
		IO_SET(e, =, signal->ioac);
}

static __always_inline void add_thread(struct exits_exit *e, struct task_struct *t)
{
	e->sum_exec_ns += t->se.sum_exec_runtime;
	e->sampled_utime_ns += t->utime;
	e->sampled_stime_ns += t->stime;
	e->gtime_ns += t->gtime;
	e->minflt += t->min_flt;
	e->majflt += t->maj_flt;
	e->nvcsw += t->nvcsw;
	e->nivcsw += t->nivcsw;
	if (bpf_core_field_exists(t->ioac))
		IO_SET(e, +=, t->ioac);
}

static __always_inline void read_owner(struct exits_owner *owner, struct task_struct *t)
{
	const struct cred *cred = t->real_cred;

	collect_users(cred, &owner->users);
	COLLECT_CAPABILITIES(owner->cap_permitted, cred, cap_permitted);
	owner->user_ns = user_ns_of(cred);
}

/*
 * Which exec began the program of this process. The program stays 0 if that is not known: the process was forked before
 * recording began, or by a process of another pid namespace than the recorded one.
 */
static __noinline void program_of(struct exits_program *program, struct task_struct *leader)
{
	u32 pid = leader->pid;
	struct forked *fork;

	if (!(leader->flags & PF_FORKNOEXEC)) {
		program->exec_id = leader->self_exec_id;
		program->start_ns = leader->start_boottime;
		program->tgid = tgid_of(leader);
		return;
	}
	fork = bpf_map_lookup_elem(&forks, &pid);
	if (!fork)
		return;
	*program = fork->program;
	/* after the copy: the map may use the memory of an entry again at once, and writes the start time first */
	ordered();
	if (RELOAD(fork->start_ns) != leader->start_boottime)
		program->tgid = program->exec_id = 0;
}

SEC("tp_btf/sched_process_fork") int process_forks(u64 *arguments)
{
	struct task_struct *forker = task_of(arguments[0]), *child = task_of(arguments[1]);
	struct forked fork = { .start_ns = child->start_boottime };
	u32 pid = child->pid;

	if (child->pid != child->tgid)
		return 0;
	/* of the leader: other threads have PF_FORKNOEXEC */
	program_of(&fork.program, forker->group_leader);
	if (fork.program.tgid)
		bpf_map_update_elem(&forks, &pid, &fork, 0);
	return 0;
}

/* Not inlined, so that the type information includes the layout of the event: the library compares it with its own. */
static __noinline void identify(struct exits_exit *e, struct task_struct *t, s32 status)
{
	e->cgroup_id = cgroup_of(t);
	e->tid = exit_settings.pid_ns ? e->event.tgid : t->pid;
	read_owner(&e->owner, t);
	program_of(&e->program, t);
	e->flags = t->flags;
	e->status = status;
	__builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
}

/* Whether its user may read it, as in get_dumpable(). */
static __always_inline u32 dumpable(struct task_struct *t)
{
	struct mm_struct *mm = t->mm;
	bool is;

	if (mm)
		is = (mm_flags(t, mm) & DUMPABLE_MASK) == 1;
	else if (KEEPS_DUMPABLE(t))
		is = kept_dumpable(t);
	else
		return EXITS_DUMPABLE_UNKNOWN;
	return is ? EXITS_DUMPABLE_YES : EXITS_DUMPABLE_NO;
}

/* As in wait_task_zombie(). */
static __always_inline s32 status_of_process(struct task_struct *leader)
{
	struct signal_struct *signal = leader->signal;

	return signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code : leader->exit_code;
}

/* The most exiting threads that are searched. */
#define MOST_THREADS 64

/*
 * Adds the threads that __exit_signal() has not added to signal_struct yet: the exiting thread; a leader that exited
 * before it, which stays until all others are gone; and other exiting threads.
 */
static __noinline void add_threads(struct exits_exit *e, struct task_struct *t)
{
	struct signal_struct *signal = t->signal;
	struct task_struct *leader = t->group_leader;
	u64 head, node;
	u32 i;

	gone_threads(e, signal);
	add_thread(e, t);
	if (leader != t)
		add_thread(e, leader);
	if (!function_ids.bpf_rdonly_cast)
		return;
	head = (u64)signal + bpf_core_field_offset(struct signal_struct, thread_head);
	node = (u64)signal->thread_head.next;
	for (i = 0; i < MOST_THREADS && node != head; i++) {
		u64 task = node - bpf_core_field_offset(struct task_struct, thread_node);
		struct task_struct *other = rdonly_cast((void *)task, type_ids.task_struct);

		if (task != (u64)t && task != (u64)leader)
			add_thread(e, other);
		node = (u64)other->thread_node.next;
	}
}

/* Adds up, and returns whether no thread was moved to signal_struct meanwhile. */
static __always_inline bool try_sums(struct exits_exit *e, struct task_struct *t)
{
	u32 before = stats_sequence(t);

	add_threads(e, t);
	return !(before & 1) && stats_sequence(t) == before;
}

/* The sums of a process whose last thread exits. Not a loop: kernels before 6.2 refuse the one that compilers make of
 * it. */
static __always_inline void sums_of_ending(struct exits_exit *e, struct task_struct *t)
{
	if (!try_sums(e, t) && !try_sums(e, t))
		try_sums(e, t);
}

/*
 * Two threads that exit at once may both find no other alive; kernels before 6.16 do not say which was the last. The
 * library uses the first of the two.
 */
SEC("tp_btf/sched_process_exit") int process_ends(u64 *arguments)
{
	struct task_struct *t = task_of(arguments[0]), *leader = t->group_leader, *parent;
	struct exits_program of_parent = {};
	struct exits_exit *e;
	void *ring;
	u32 tgid, pid = leader->pid;

	if (t->signal->live.counter)
		return 0;
	tgid = tgid_of(t);
	if (!tgid)
		return 0;
	if (exit_settings.pid_ns)
		remember(leader, tgid);
	ring = current_ring();
	e = reserve(ring, sizeof(*e));
	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	begin(&e->event, EXITS_ENDED, tgid, leader);
	sums_of_ending(e, t);
	waits_of_exited(leader, &e->run_delay_ns, &e->timeslices);
	identify(e, leader, status_of_process(leader));
	e->end_ns = bpf_ktime_get_boot_ns();
	parent = leader->real_parent;
	e->ppid = tgid_of(parent);
	/* The library could not compare them: a parent that executed nothing either has no exec that it keeps. */
	if (leader->flags & PF_FORKNOEXEC)
		program_of(&of_parent, parent->group_leader);
	e->as_parent = e->program.tgid && of_parent.exec_id == e->program.exec_id &&
		       of_parent.start_ns == e->program.start_ns && of_parent.tgid == e->program.tgid;
	bpf_map_delete_elem(&forks, &pid);
	e->dumpable = dumpable(t);
	submit(ring, e);
	return 0;
}

/* A leader that was replaced by a thread in execve() has that thread's pid by now, and is no longer a leader. */
SEC("tp_btf/sched_process_free") int task_freed(u64 *arguments)
{
	struct task_struct *t = task_of(arguments[0]);
	bool is_process = t->pid == t->tgid;
	struct exits_exit *e;
	void *ring;
	u32 tgid;

	if (!is_process && !exit_settings.threads)
		return 0;
	tgid = exit_settings.pid_ns ? forget(t) : t->tgid;
	if (!tgid)
		return 0;
	ring = current_ring();
	e = reserve(ring, sizeof(*e));
	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	begin(&e->event, is_process ? EXITS_EXIT : EXITS_THREAD, tgid, t);
	if (is_process) {
		gone_threads(e, t->signal);
		waits_of_exited(t, &e->run_delay_ns, &e->timeslices);
		e->dumpable = dumpable(t);
	} else {
		add_thread(e, t);
		waits_of_thread(t, &e->run_delay_ns, &e->timeslices);
		e->prev_utime_ns = t->prev_cputime.utime;
		e->prev_stime_ns = t->prev_cputime.stime;
	}
	identify(e, t, is_process ? status_of_process(t) : t->exit_code);
	submit(ring, e);
	return 0;
}

static __noinline void identify_exec(struct exits_exec *e, struct task_struct *t)
{
	e->at_ns = bpf_ktime_get_boot_ns();
	e->cgroup_id = cgroup_of(t);
	e->exec_id = t->self_exec_id;
	read_owner(&e->owner, t);
	e->ppid = tgid_of(t->real_parent);
	e->flags = t->flags;
	__builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
}

/*
 * Writes an exec with room for so many bytes of arguments, a constant: the kernel reserves no other sizes before Linux
 * 6.1. The arguments are on the stack of the new program, where execve() has just written them: the page is present.
 */
static __always_inline int write_exec(void *ring, struct task_struct *t, struct linux_binprm *program, u32 tgid, u64 bytes,
				      const u32 room)
{
	struct exits_exec *e = reserve(ring, sizeof(*e) + room);

	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	begin(&e->event, EXITS_EXEC, tgid, t);
	identify_exec(e, t);
	e->arguments_bytes = bytes;
	/* otherwise clang bounds a copy of the value, which the verifier does not connect with it */
	barrier_var(bytes);
	if (bytes > room)
		bytes = room;
	if (!bpf_probe_read_user(e + 1, bytes, (void *)t->mm->arg_start))
		e->arguments_read = bytes;
	bpf_probe_read_kernel_str(e->path, sizeof(e->path), program->filename);
	submit(ring, e);
	return 0;
}

SEC("tp_btf/sched_process_exec") int process_execs(u64 *arguments)
{
	struct task_struct *t = task_of(arguments[0]);
	struct linux_binprm *program = (void *)arguments[2];
	u64 bytes = t->mm->arg_end - t->mm->arg_start, unread;
	void *ring = current_ring();
	u32 tgid = tgid_of(t), pid = t->pid;

	bpf_map_delete_elem(&forks, &pid);
	if (!tgid)
		return 0;
	if (!ring || bytes <= 128)
		return write_exec(ring, t, program, tgid, bytes, 128);
	if (bytes <= 256)
		return write_exec(ring, t, program, tgid, bytes, 256);
	unread = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) + EXITS_ARGUMENTS_SIZE;
	if (bytes <= EXITS_ARGUMENTS_CROWDED || unread > bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / 4)
		return write_exec(ring, t, program, tgid, bytes, EXITS_ARGUMENTS_CROWDED);
	if (bytes <= 1536)
		return write_exec(ring, t, program, tgid, bytes, 1536);
	return write_exec(ring, t, program, tgid, bytes, EXITS_ARGUMENTS_SIZE);
}
