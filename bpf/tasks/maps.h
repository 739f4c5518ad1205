/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps shared with the library, and helpers for all parts of a record. */
#ifndef FASTPROC_TASKS_MAPS_H
#define FASTPROC_TASKS_MAPS_H

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The library sets the real sizes before it loads the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_record);
} records SEC(".maps");

/* The bits of every record that the library reads at each snapshot, adjacent to each other. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} index_of_records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_thread_record);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	/* no types: the library sets the size of the value to that of the pool, and the kernel compares sizes with types */
	__uint(key_size, 4);
	__uint(value_size, 8);
} pool SEC(".maps");

/* Data kept beside each record. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_place);
} places SEC(".maps");

/* Proofs of the records; a single one if no records are kept. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fp_proof);
} proofs SEC(".maps");

/* Byte distance from a per-CPU cookie to the memory of each CPU whose part of rss counts. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} cpu_offsets SEC(".maps");

const volatile struct fp_settings settings;

/* The verifier removes the code for groups that are not wanted, but not the loads of the condition: clang may merge
 * these. */
static __always_inline const struct fp_settings *known(void)
{
	const struct fp_settings *known = (const struct fp_settings *)&settings;

	asm("" : "+r"(known));
	return known;
}

struct fp_run run SEC(".data.run");

/* The groups that this object has code for. Some objects have few, so that they load quickly. */
#ifndef GROUPS
#define GROUPS (~0)
#endif

#define WANTED(group) (known()->groups & (group) & GROUPS)
#include "../sequence.h"
/*
 * Whether a pointer differs by now from the one that was followed, so that the values may be from a freed object. All
 * earlier loads stay before this one.
 */
#define REPLACED(x, followed) ({ ordered(); RELOAD(x) != (followed); })
#define ARRAY_OF_ACTIONS 64
#define MAX_ACTION_WORDS 8
#define MAX_LEVEL 32

/* Reserves n words, n <= FP_POOL_SLACK. 0: there is no room, and the record is torn. */
static __always_inline u32 pool_take(struct fp_record *r, u32 n)
{
	u32 at = run.pool;

	if (!at)
		at = 1;
	if (at > settings.max_pool - FP_POOL_SLACK || n > FP_POOL_SLACK) {
		run.lost_pool += n;
		r->identity.torn |= FP_TORN_POOL;
		return 0;
	}
	run.pool = at + n;
	return at;
}

static __always_inline u64 *pool_at(u32 at)
{
	u32 zero = 0;
	u64 *words = bpf_map_lookup_elem(&pool, &zero);

	/* The compiler may drop the bound, which the verifier needs: keep it close to the use. */
	asm volatile("" : "+r"(at));
	if (!words || at > settings.max_pool - FP_POOL_SLACK)
		return 0;
	return words + at;
}

#endif
