/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pointers to the kernel's structures from numbers, by bpf_rdonly_cast() (kernels from 6.2). */
#ifndef FASTPROC_CASTS_H
#define FASTPROC_CASTS_H

#include "kfunc.h"

/*
 * The kernel's ids of the types that casts name. The library writes them here: libbpf relocates with an excerpt of the
 * kernel's type information, which has other ids.
 */
const volatile struct {
	u32 task_struct, signal_struct, mm_struct, pid, upid, cred, group_info, ucounts, in6_addr;
	u32 kthread, worker, worker_pool, workqueue_attrs, list_head;
} type_ids;

/* ID_OF(struct pid) is type_ids.pid */
#define ID_OF(type) ID_OF_##type
#define ID_OF_struct type_ids.
#define CAST(type, pointer) ((type *)rdonly_cast((const void *)(pointer), ID_OF(type)))

#endif
