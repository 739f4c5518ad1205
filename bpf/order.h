/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The places of records of processes that are met in the order of their pids: see fp_position. */
#ifndef FASTPROC_ORDER_H
#define FASTPROC_ORDER_H

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_position);
} order SEC(".maps");

static __always_inline void give_back(u32 place)
{
	u32 at = run.free;
	struct fp_position *top = bpf_map_lookup_elem(&order, &at);

	if (top) {
		top->free = place;
		run.free = at + 1;
	}
}

/* Takes a free place. Returns whether there is one, then in run.old_at. */
static __always_inline int take_place(void)
{
	u32 at = run.free - 1, next = run.records;
	struct fp_position *top = bpf_map_lookup_elem(&order, &at);

	if (run.free && top) {
		run.free = at;
		run.old_at = top->free;
		return 1;
	}
	if (!bpf_map_lookup_elem(&records, &next))
		return 0;
	run.records = next + 1;
	run.old_at = next;
	return 1;
}

/* Stores the place of the process that was met. */
static __always_inline void put_next(u32 place)
{
	u32 at = run.met;
	struct fp_position *position = bpf_map_lookup_elem(&order, &at);

	if (position) {
		position->places[run.round & 1] = place;
		run.met = at + 1;
	}
}

/* The place at this position of the previous walk. */
static __always_inline struct fp_place *old_place(u32 at, u32 *index)
{
	struct fp_position *position = bpf_map_lookup_elem(&order, &at);

	if (at >= run.previous || !position)
		return 0;
	*index = position->places[~run.round & 1];
	return bpf_map_lookup_elem(&places, index);
}

/* Fetches the lines of the words of the next processes all at once, where numbers can be cast. */
int fetch_old(u32 from);
__noinline int fetch_old(u32 from)
{
	if (!CAN_CAST)
		return 0;
	for (u32 i = 0; i < BURST; i++) {
		u32 at = 0;
		struct fp_place *place = old_place(from + i, &at);
		struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &at);

		if (!place || !proof)
			return 0;
		if (place->plan == FP_PROVE)
			touch_words(place->task, proof);
	}
	return 0;
}

/*
 * Finds the record of this process, if the previous walk met it: run.has_old and run.old_at. Processes before it have ended.
 * Returns whether the search is over.
 */
int find_place(u32 tgid);
__noinline int find_place(u32 tgid)
{
	for (u32 i = 0; i < SEARCHED; i++) {
		u32 at = RELOAD(run.old_next), index = 0;
		struct fp_place *old = old_place(at, &index);

		if (!old || old->tgid > tgid)
			return 1;
		RELOAD(run.old_next) = at + 1;
		if (old->tgid == tgid) {
			run.old_at = index;
			run.has_old = 1;
			return 1;
		}
		give_back(index);
	}
	return 0;
}

#endif
