// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses of the kernel's symbols by their names (kernels from 5.16): reading all of them as text takes a hundred
 * times as long. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NAME_SIZE 64

/* The names to look up, each with a NUL at its end. The library sets their number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, NAME_SIZE);
} names SEC(".maps");

/* The address of each name; 0 if it does not exist. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} addresses SEC(".maps");

#define MAX_NAMES 32

SEC("syscall") int find_symbols(void *unused)
{
	for (u32 i = 0; i < MAX_NAMES; i++) {
		u32 key = i;
		char *name = bpf_map_lookup_elem(&names, &key);
		u64 *address = bpf_map_lookup_elem(&addresses, &key), found = 0;

		if (!name || !address)
			break;
		*address = bpf_kallsyms_lookup_name(name, NAME_SIZE, 0, &found) ? 0 : found;
	}
	return 0;
}
