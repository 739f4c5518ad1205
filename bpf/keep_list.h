/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps records of the previous walk over the kernel's list, which move to earlier places if processes have ended. */
#ifndef FASTPROC_KEEP_LIST_H
#define FASTPROC_KEEP_LIST_H

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

/* Whether this task does not run, and all its words are unchanged. */
static __always_inline int is_proven(u64 task, struct fp_proof *proof)
{
	struct task_struct *t = CAST(struct task_struct, task);
	struct signal_struct *s = CAST(struct signal_struct, proof->signal);
	struct mm_struct *mm = CAST(struct mm_struct, proof->mm);

	return has_same_words(t, s, mm, proof);
}

/* Whether this is so for the task at this place. */
__noinline int proves(u32 at)
{
	struct fp_place *place = bpf_map_lookup_elem(&places, &at);
	struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &at);

	return place && proof && is_proven(place->task, proof);
}

/* Stores the words of a task into this place. Returns whether they differ from those at `old`. */
int remember(u64 task, u32 at, u32 old);
__noinline int remember(u64 task, u32 at, u32 old)
{
	struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &at), *old_proof = bpf_map_lookup_elem(&proofs, &old);

	return !proof || !old_proof || store_words(CAST(struct task_struct, task), proof, old_proof);
}

static __always_inline int set_queue_of(u32 index)
{
	struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &index);

	if (!WANTED(FP_SIGNALS) || !has_queue() || !proof)
		return 0;
	return set_queued(index, FIELD(struct ucounts, proof->ucounts, rlimit[UCOUNT_RLIMIT_SIGPENDING].counter));
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
	*entry = place->tgid | moved | (set_queue_of(index) ? FP_INDEX_CHANGED : FP_INDEX_KEPT);
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
