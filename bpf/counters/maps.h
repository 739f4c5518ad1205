/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef FASTPROC_COUNTERS_MAPS_H
#define FASTPROC_COUNTERS_MAPS_H

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The library sets these before loading, by trying: typed loads (from 6.2), and helpers that read any address (not
 * under lockdown). */
const volatile bool may_cast = true;
const volatile bool may_probe = true;
const volatile u32 possible_cpus = 1;
const volatile u32 row_bytes = 64; /* of `rows`: the pending numa events, then one group of counters */
const volatile u32 arch_bytes; /* of irq_cpustat_t, at most 4 * COUNTERS_ARCH_WORDS */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters_config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs */
	__type(key, u32);
	__type(value, struct counters_place);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters_block);
} blocks SEC(".maps");

/* __percpu pointers of the populated zones' struct per_cpu_zonestat */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} zonestats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters_run);
} runs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs */
	__type(key, u32);
	__type(value, struct counters_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs + blocks */
	__uint(key_size, 4);
	__uint(value_size, 64); /* row_bytes */
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* max_irqs */
	__type(key, u32);
	__type(value, struct counters_irq);
} irqs SEC(".maps");

/* indices into `irqs` of the interrupts that have moved recently */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* max_hot */
	__type(key, u32);
	__type(value, u64);
} hot SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs */
	__type(key, u32);
	__type(value, struct counters_forks);
} forks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters_located);
} located SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, COUNTERS_MAX_NODES);
	__type(key, u32);
	__type(value, u64); /* struct pglist_data */
} nodes SEC(".maps");

/* the library derives `__per_cpu_offset` from the addresses of its element */
#include "../anchor.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs */
	__type(key, u32);
	__type(value, u64);
} anchors SEC(".maps");

/*
 * The kernel's ids of the types that casts name. The library writes them here: libbpf relocates with an excerpt of the
 * kernel's type information, which has other ids.
 */
const volatile struct {
	u32 task_struct, kthread, files_struct, fdtable, file, inode, kernfs_node, rb_node, seqcount;
	u32 rq, cfs_rq, tick_sched, cpuhp_cpu_state, kernel_cpustat, kernel_cpustat___idle, kernel_stat;
	u32 irq_desc, pglist_data, per_cpu_zonestat;
} type_ids;

/* ID_OF(struct rq) is type_ids.rq */
#define ID_OF(type) ID_OF_##type
#define ID_OF_struct type_ids.
#define CAST(type, address) ((type *)rdonly_cast((const void *)(address), ID_OF(type)))

/* One member of a structure at an address that may be stale: 0 if it cannot be read. */
#define READ(type, address, member)                                                                                    \
	({                                                                                                                 \
		typeof(((type *)0)->member) read_value = 0;                                                                    \
		u64 read_address = (u64)(address);                                                                             \
		if (may_cast)                                                                                                  \
			read_value = CAST(type, read_address)->member;                                                             \
		else                                                                                                           \
			bpf_core_read(&read_value, sizeof(read_value), &((type *)read_address)->member);                           \
		read_value;                                                                                                    \
	})

/* The same for a member that a kernel may lack. The library detects that by comparing with the text. */
#define READ_IF(type, address, member)                                                                                 \
	(bpf_core_field_exists(((type *)0)->member) ? READ(type, address, member) : 0)

/* Any 64-bit word: rb_node begins with one. */
static __always_inline u64 word(u64 address)
{
	u64 value = 0;

	if (may_cast)
		return CAST(struct rb_node, address)->__rb_parent_color;
	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

/* A pointer as a number: the verifier would keep checking a typed one against its original type. */
#define POINTER(type, address, member)                                                                                 \
	(bpf_core_field_exists(((type *)0)->member)                                                                        \
		 ? word((u64)(address) + bpf_core_field_offset(((type *)0)->member))                                           \
		 : 0)

/* Any 32-bit word: seqcount consists of one. */
static __always_inline u32 half(u64 address)
{
	u32 value = 0;

	if (may_cast)
		return CAST(struct seqcount, address)->sequence;
	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

/* `bytes` is a constant to the verifier, or bounded by one. */
static __always_inline int copy(void *to, u64 from, u32 bytes)
{
	if (may_probe)
		return bpf_probe_read_kernel(to, bytes, (void *)from) != 0;
	for (u32 i = 0; i < bytes / 8; i++)
		((u64 *)to)[i] = word(from + 8 * i);
	return 0;
}

/* "kswapd", as the first bytes of task_struct.comm */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KSWAPD(word) (((word) & 0xffffffffffffULL) == 0x64706177736bULL)
#else
#define KSWAPD(word) ((word) >> 16 == 0x6b7377617064ULL)
#endif

#endif
