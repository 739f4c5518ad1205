/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The names that bpf_helpers.h expects, and types for the maps of all programs. See include/uapi/linux/bpf.h. */
#ifndef FASTPROC_KERNEL_TYPES_H
#define FASTPROC_KERNEL_TYPES_H

#include "types.h"

typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __u16;
typedef u8 __u8;
typedef short __s16;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef u64 __be64;
/* <stdbool.h> defines it as a macro */
#ifndef bool
typedef _Bool bool;
#endif

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};
#define BPF_F_MMAPABLE (1U << 10)

#endif
