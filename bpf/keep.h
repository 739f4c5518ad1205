/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps records of the previous walk that tasks/proof.h proves unchanged. */
#ifndef FASTPROC_KEEP_H
#define FASTPROC_KEEP_H

int visit_leader(u64 task, u32 index);
int finish(u32 index);

/* Copies an old record, and the data beside it, to its new place. */
int move_record(u32 from, u32 to);
__noinline int move_record(u32 from, u32 to)
{
	struct fp_record *old = bpf_map_lookup_elem(&records, &from), *r = bpf_map_lookup_elem(&records, &to);
	struct fp_place *was = bpf_map_lookup_elem(&places, &from), *place = bpf_map_lookup_elem(&places, &to);
	struct fp_proof *before = bpf_map_lookup_elem(&proofs, &from), *proof = bpf_map_lookup_elem(&proofs, &to);

	if (!old || !r || !was || !place || !before || !proof)
		return 0;
	bpf_probe_read_kernel(r, sizeof(*r), old);
	bpf_probe_read_kernel(proof, sizeof(*proof), before);
	*place = *was;
	return 0;
}

/*
 * One in this many records that could be kept is read anyway, and compared with the kept one. So a change that a proof
 * does not detect stays for at most this many walks.
 */
#define CHECKED_EACH 16

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_record);
} kept_record SEC(".maps");

/* Counts the record if it differs from the kept one. */
int check(u32 index);
__noinline int check(u32 index)
{
	u32 zero = 0;
	struct fp_record *kept = bpf_map_lookup_elem(&kept_record, &zero), *r = bpf_map_lookup_elem(&records, &index);
	struct fp_place *place = bpf_map_lookup_elem(&places, &index);
	u32 groups_at, ids_at;
	u64 differs = 0;

	if (!kept || !r || !place)
		return 0;
	/* Values that others change and no text shows, values of the user, and those that the library derives from a
	 * worker's name. */
	kept->cpu.prev_utime_ns = r->cpu.prev_utime_ns;
	kept->cpu.prev_stime_ns = r->cpu.prev_stime_ns;
	kept->memory.mm_users = r->memory.mm_users;
	kept->signals.queued = r->signals.queued;
	groups_at = kept->credentials.groups_at;
	ids_at = kept->namespaces.ids_at;
	kept->credentials.groups_at = r->credentials.groups_at;
	kept->namespaces.ids_at = r->namespaces.ids_at;
	if (r->identity.flags & PF_WQ_WORKER)
		kept->name = r->name;
	for (u32 i = 0; i < sizeof(*r) / 8; i++)
		differs |= ((u64 *)kept)[i] ^ ((u64 *)r)[i];
	run.checked++;
	if (differs) {
		run.disproven++;
		return 0;
	}
	/* its words were copied to the pool again: drop that copy */
	r->credentials.groups_at = groups_at;
	r->namespaces.ids_at = ids_at;
	run.pool = place->pool;
	run.groups = 0;
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

/* Reads the process whose record could be kept, and checks that the record is the same. */
static __always_inline void collect_all_the_same(u64 task, u32 index)
{
	struct task_struct *t = CAST(struct task_struct, task);
	u32 zero = 0;
	struct fp_record *r = bpf_map_lookup_elem(&records, &index), *kept = bpf_map_lookup_elem(&kept_record, &zero);
	struct fp_place *place = bpf_map_lookup_elem(&places, &index);

	if (!r || !kept || !place)
		return;
	bpf_probe_read_kernel(kept, sizeof(*kept), r);
	/* Read the signal actions, too. */
	run.has_old = 0;
	run.leader = task;
	if (FOLDS)
		run.sequence = stats_sequence(t);
	run.checks = 1;
	visit_leader(task, index);
	run.checks = 0;
	if (place->outlook == FP_PROVE)
		check(index);
	fold_threads(t, index);
}

static __always_inline int points_into_pool(u32 old)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &old);

	return (WANTED(FP_CREDENTIALS) && r && r->credentials.groups_at) || (WANTED(FP_NAMESPACES) && r && r->namespaces.ids_at);
}

/* The number of queued signals belongs to the user: set it in a kept record, too. Returns whether it has changed. */
static __always_inline int set_queued(u32 index)
{
	struct fp_proof *proof;
	struct fp_record *r;
	u64 queued;

	if (!WANTED(FP_SIGNALS) || !has_queue())
		return 0;
	proof = bpf_map_lookup_elem(&proofs, &index);
	r = bpf_map_lookup_elem(&records, &index);
	if (!proof || !r)
		return 0;
	queued = FIELD(struct ucounts, proof->ucounts, rlimit[UCOUNT_RLIMIT_SIGPENDING].counter);
	if (queued == proof->queued)
		return 0;
	r->signals.queued = queued;
	proof->queued = queued;
	return 1;
}

/* Keeps the record at this old place, if its words prove it unchanged. */
int keep(u32 old, u32 index);
__noinline int keep(u32 old, u32 index)
{
	struct fp_place *place = bpf_map_lookup_elem(&places, &old);
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);
	u64 moved = old != index ? FP_INDEX_CHANGED : 0;

	if (!place || !entry || place->outlook != FP_PROVE || (run.fresh_pool && points_into_pool(old)) || !proves(old))
		return 0;
	if (moved) {
		move_record(old, index);
		place = bpf_map_lookup_elem(&places, &index);
		if (!place)
			return 0;
	}
	place->pool = run.pool;
	place->threads = run.threads;
	run.next = 0;
	run.tries = 0;
	run.records = index + 1;
	run.old_next = old + 1;
	if ((place->tgid + run.round) % CHECKED_EACH == 0) {
		collect_all_the_same(place->task, index);
		*entry |= moved;
		return 1;
	}
	*entry = place->tgid | moved | (set_queued(index) ? FP_INDEX_CHANGED : FP_INDEX_KEPT);
	run.kept++;
	if (WANTED(FP_SIGNALS))
		run.reused_actions++;
	return 1;
}

#endif
