/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads one process into its record, and finishes the record once its threads have been added. */
#ifndef FASTPROC_VISIT_H
#define FASTPROC_VISIT_H

/* A process with few threads, some of which exit while they are summed up, is met again up to this many times; with
 * many it is torn. */
#define MAX_TRIES 3
#define FEW_THREADS 64

#define FOLDS WANTED(FP_CPU | FP_IO | FP_DELAYS | FP_THREADS)

/* Fetches all lines of a process that nothing has fetched ahead. */
int touch_process(u64 task);
__noinline int touch_process(u64 task)
{
	touch_task(CAST(struct task_struct, task));
	touch_around(CAST(struct task_struct, task));
	return 0;
}

/* Its record of the previous walk. Another process may have its pid by now. */
static __always_inline struct fp_record *old_record(struct task_struct *t)
{
	u32 at = run.old_at;
	struct fp_record *old = bpf_map_lookup_elem(&records, &at);

	if (!old || old->identity.start_ns != t->start_boottime)
		run.has_old = 0;
	return run.has_old ? old : 0;
}

/* Reads the record of a process without its other threads. */
int visit_leader(u64 task, u32 index);
__noinline int visit_leader(u64 task, u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index), *old;
	struct fp_place *place = bpf_map_lookup_elem(&places, &index), *after, *old_place;
	struct task_struct *t = CAST(struct task_struct, task), *next;
	u32 following = run.old_next, at = run.old_at, plan = FP_READ, keeps = KEEPS;
	u32 rested = 0, remembered = 0, moves = 0;

	if (!r || !place)
		return 0;
	if (keeps) {
		remembered = run.checks;
		old_place = bpf_map_lookup_elem(&places, &at);
		plan = old_place ? old_place->plan : FP_READ;
		if (remembered || (run.has_old && plan == FP_PROVE))
			touch_process(task);
	}
	old = old_record(t);
	if (keeps) {
		rested = remembered || has_rested(t, old);
		if (rested && !remembered && plan != FP_SHARED) {
			moves = remember(task, index, at) && plan != FP_READ;
			remembered = 1;
		}
		/* Until it has left the run queue the scheduler may still add to what it waited: see proof.h. */
		if (bpf_core_field_exists(t->on_rq))
			rested = rested && !RELOAD(t->on_rq);
	}
	place->task = task;
	touch_far(t);
	after = bpf_map_lookup_elem(&places, &following);
	if (!keeps || !after || following >= run.previous || after->plan != FP_PROVE)
		touch_record(index);
	if (!keeps || following >= run.previous || !after) {
		next = next_of(t);
		touch_task(next_of(next));
		touch_around(next);
	} else if (after->plan != FP_PROVE) {
		touch_around(CAST(struct task_struct, after->task));
	}
	collect_leader(t, r, index);
	if (LISTS_LEADER(r))
		list_thread(t);
	if (!keeps)
		return 0;
	plan = rested ? judge(t, r, index, remembered) : FP_READ;
	place->plan = moves && plan == FP_PROVE ? FP_MOVES : plan;
	return 0;
}

/* Adds a thread to its process. */
int visit_thread(u64 task, u32 index);
__noinline int visit_thread(u64 task, u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	struct task_struct *t = CAST(struct task_struct, task);

	if (!r)
		return 0;
	if (WANTED(FP_THREADS))
		list_thread(t);
	if (WANTED(FP_CPU))
		fold_cpu(t, &r->cpu);
	if (WANTED(FP_IO) && bpf_core_field_exists(t->ioac))
		IO_SET(&r->io, +=, t->ioac);
	if (WANTED(FP_DELAYS))
		fold_delays(t, &r->delays);
	r->identity.seen_threads++;
	return 0;
}

/* Drops this record and all after it. */
static __always_inline void drop_from(u32 index)
{
	struct fp_place *place = bpf_map_lookup_elem(&places, &index);

	if (run.dropped < run.records)
		run.dropped = run.records;
	run.records = index;
	run.node = 0;
	run.groups = 0;
	if (place) {
		run.pool = place->pool;
		run.threads = place->threads;
	}
}

/* Finishes the last process: it is complete, torn, or will be met again. */
int finish(u32 index);
__noinline int finish(u32 index)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);
	struct fp_place *place = bpf_map_lookup_elem(&places, &index);

	run.node = 0;
	if (!r || !entry)
		return 0;
	/* Its text is no substitute: the kernel looks up the credentials for each part of it. */
	if (r->identity.torn & FP_TORN_CREDENTIALS && ++run.tries < MAX_TRIES) {
		run.next = run.leader;
		drop_from(index);
		return 0;
	}
	/*
	 * The kernel's own readers of these sums do the same: an exiting thread moves its share into the signal struct.
	 * Also, a thread that calls execve(2) takes the leader's pid, which is then listed twice, before the leader is
	 * gone.
	 */
	if (FOLDS && (run.sequence & 1 || run.sequence != stats_sequence(CAST(struct task_struct, run.leader)) ||
		      RELOAD(CAST(struct task_struct, run.leader)->pid) != (int)r->identity.tgid)) {
		if (++run.tries < MAX_TRIES && r->identity.num_threads <= FEW_THREADS) {
			run.next = run.leader;
			drop_from(index);
			return 0;
		}
		r->identity.torn |= FP_TORN_THREADS;
	}
	run.tries = 0;
	if (r->identity.torn) {
		*entry |= FP_INDEX_TORN;
		if (place)
			place->plan = FP_READ;
	}
	return 0;
}

/* Starts to sum up the other threads of this process, if it has any, in the next steps; otherwise its record is
 * complete. */
static __always_inline void fold_threads(struct task_struct *t, u32 index)
{
	if (FOLDS && t->signal->nr_threads > 1)
		run.node = run.head = (u64)t->signal + bpf_core_field_offset(struct signal_struct, thread_head);
	else
		finish(index);
}

/* Reads the process of the last record, which could be kept, and checks that its record is the same. */
static __always_inline void read_and_check(void)
{
	u32 zero = 0, index = run.records - 1;
	struct fp_record *r = bpf_map_lookup_elem(&records, &index), *kept = bpf_map_lookup_elem(&kept_record, &zero);
	struct fp_place *place = bpf_map_lookup_elem(&places, &index);
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);
	struct task_struct *t;

	if (r && kept && place && entry) {
		bpf_probe_read_kernel(kept, used_bytes(), r);
		/* Read the signal actions, too. */
		run.has_old = 0;
		run.leader = place->task;
		t = CAST(struct task_struct, place->task);
		if (FOLDS)
			run.sequence = stats_sequence(t);
		visit_leader(place->task, index);
		if (place->plan == FP_PROVE)
			check(index);
		fold_threads(t, index);
		/* not at its old place */
		if (run.old_next != run.records)
			*entry |= FP_INDEX_CHANGED;
	}
	run.checks = 0;
}

#endif
