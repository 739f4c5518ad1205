/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps records of the previous walk that tasks/proof.h proves unchanged. */
#ifndef FASTPROC_KEEP_H
#define FASTPROC_KEEP_H

/* Old places that are handled together. */
#define BURST 8

/* The bytes that a record may have of the wanted groups: those that are asked for most stand first. */
static __always_inline u32 used_bytes(void)
{
	return WANTED(~(FP_CPU | FP_MEMORY | FP_USERS | FP_SCHEDULING)) ? sizeof(struct fp_record)
									 : offsetof(struct fp_record, memory_details);
}

/* Copies an old record, and the data beside it, to its new place. */
int move_record(u32 from, u32 to);
__noinline int move_record(u32 from, u32 to)
{
	struct fp_record *old = bpf_map_lookup_elem(&records, &from), *r = bpf_map_lookup_elem(&records, &to);
	struct fp_place *old_place = bpf_map_lookup_elem(&places, &from), *place = bpf_map_lookup_elem(&places, &to);
	struct fp_proof *old_proof = bpf_map_lookup_elem(&proofs, &from), *proof = bpf_map_lookup_elem(&proofs, &to);

	if (!old || !r || !old_place || !place || !old_proof || !proof)
		return 0;
	bpf_probe_read_kernel(r, used_bytes(), old);
	bpf_probe_read_kernel(proof, sizeof(*proof), old_proof);
	*place = *old_place;
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
	u32 groups_at = 0, ids_at = 0, cpus_at = 0, mems_at = 0;
	u64 differs = 0;

	if (!kept || !r || !place)
		return 0;
	/* Values that others change and no text shows, values of the user, and those that the library derives from a
	 * worker's name. */
	kept->cpu.prev_utime_ns = r->cpu.prev_utime_ns;
	kept->cpu.prev_stime_ns = r->cpu.prev_stime_ns;
	kept->memory.mm_users = r->memory.mm_users;
	if (WANTED(FP_SIGNALS))
		kept->signals.queued = r->signals.queued;
	if (WANTED(FP_CREDENTIALS)) {
		groups_at = kept->credentials.groups_at;
		kept->credentials.groups_at = r->credentials.groups_at;
	}
	if (WANTED(FP_NAMESPACES)) {
		ids_at = kept->namespaces.ids_at;
		kept->namespaces.ids_at = r->namespaces.ids_at;
	}
	if (HAS_MASKS) {
		cpus_at = kept->scheduling_details.cpus_at;
		mems_at = kept->scheduling_details.mems_at;
		kept->scheduling_details.cpus_at = r->scheduling_details.cpus_at;
		kept->scheduling_details.mems_at = r->scheduling_details.mems_at;
	}
	if (r->identity.flags & PF_WQ_WORKER)
		kept->name = r->name;
	for (u32 i = 0; i < used_bytes() / 8; i++)
		differs |= ((u64 *)kept)[i] ^ ((u64 *)r)[i];
	run.checked++;
	if (differs) {
		run.disproven++;
		return 0;
	}
	/* its words were copied to the pool again: drop that copy */
	if (WANTED(FP_CREDENTIALS))
		r->credentials.groups_at = groups_at;
	if (WANTED(FP_NAMESPACES))
		r->namespaces.ids_at = ids_at;
	if (HAS_MASKS) {
		r->scheduling_details.cpus_at = cpus_at;
		r->scheduling_details.mems_at = mems_at;
	}
	run.pool = place->pool;
	run.groups = 0;
	return 0;
}

static __always_inline int points_into_pool(u32 old)
{
	struct fp_record *r = bpf_map_lookup_elem(&records, &old);

	return r && ((WANTED(FP_CREDENTIALS) && r->credentials.groups_at) || (WANTED(FP_NAMESPACES) && r->namespaces.ids_at) ||
		     HAS_MASKS);
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

/* Whether this walk reads the record of this place although it could be kept. */
static __always_inline int is_checked(struct fp_place *place)
{
	return (place->tgid + run.round) % CHECKED_EACH == 0;
}

/* Keeps the record at the next old place, if it is of this task (0: of any) and its words prove it unchanged. */
static __always_inline int keep_one(u64 task)
{
	u32 old = run.old_next, index = run.records;
	struct fp_place *place = bpf_map_lookup_elem(&places, &old);
	struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &old);
	u64 *entry = bpf_map_lookup_elem(&index_of_records, &index);
	u64 moved = old != index ? FP_INDEX_CHANGED : 0;

	if (!place || !proof || !entry || place->plan != FP_PROVE || (task && task != place->task))
		return 0;
	if ((run.fresh_pool && points_into_pool(old)) || !is_proven(place->task, proof))
		return 0;
	if (HAS_MASKS && !has_same_masks(old))
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
	if (is_checked(place)) {
		run.checks = 1;
		return 1;
	}
	*entry = place->tgid | moved | (set_queued(index) ? FP_INDEX_CHANGED : FP_INDEX_KEPT);
	run.kept++;
	if (WANTED(FP_SIGNALS))
		run.reused_actions++;
	return 1;
}

/*
 * Keeps the records at the next old places up to the first that cannot be kept or is to be checked, or whose lines are not
 * fetched, but about `most`. Returns their number. If the last one is to be checked, run.checks is set.
 */
int keep(u64 task, u32 most);
__noinline int keep(u64 task, u32 most)
{
	for (u32 kept = 0; kept < BURST; kept++) {
		if (!keep_one(kept ? 0 : task))
			return kept;
		if (kept + 1 >= most || run.checks || run.old_next >= run.old_end || run.old_next >= run.previous)
			return kept + 1;
	}
	return BURST;
}

#endif
