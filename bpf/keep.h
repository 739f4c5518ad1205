/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which records of the previous walk are kept: those that tasks/proof.h proves unchanged (PROVES). */
#ifndef FASTPROC_KEEP_H
#define FASTPROC_KEEP_H

/* Old places that are handled together. */
#define BURST 8
/* How many old places a step searches for that of a process. */
#define SEARCHED 32

/* The bytes that a record may have of the wanted groups: those that are asked for most stand first. */
static __always_inline u32 used_bytes(void)
{
	return WANTED(~(FP_CPU | FP_MEMORY | FP_USERS | FP_SCHEDULING)) ? sizeof(struct fp_record)
									 : offsetof(struct fp_record, memory_details);
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
static __always_inline int set_queued(u32 index, u64 queued)
{
	struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &index);
	struct fp_record *r = bpf_map_lookup_elem(&records, &index);

	if (!proof || !r || queued == proof->queued)
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

/* Whether it has probably not run since: a process goes to sleep by a voluntary switch. Only its words prove it. */
static __always_inline int has_rested(struct task_struct *t, struct fp_record *old)
{
	return old && !(WANTED(FP_CPU) && old->cpu.nvcsw != t->nvcsw);
}

/* How the next walk treats the record of a sleeping process. `remembered`: its words were stored before it was read.
 * */
static __always_inline u32 judge(struct task_struct *t, struct fp_record *r, u32 index, u32 remembered)
{
	struct fp_proof *proof = bpf_map_lookup_elem(&proofs, &index);

	if (!proof || !may_rest(remembered ? proof->words[WORD_STATE] : state_of(t), r->identity.flags) || !is_alone(t, r))
		return FP_SHARED;
	if (!remembered || !PROVES(t, index))
		return FP_READ;
	if (WANTED(FP_SIGNALS))
		proof->queued = r->signals.queued;
	return FP_PROVE;
}

#endif
