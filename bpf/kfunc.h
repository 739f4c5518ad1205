/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's own functions that the programs call.
 *
 * A call names its function by an id from the kernel's type information. For a function declared with __ksym, libbpf
 * reads all of that information to find the id, which takes as long as the rest of its work. The library reads it
 * anyway. So the call is written here as an instruction, with an index into function_ids instead of the id, and the
 * library replaces it.
 */
#ifndef FASTPROC_KFUNC_H
#define FASTPROC_KFUNC_H

struct bpf_iter_task;

/* The ids of the functions in this kernel, 0 if it lacks one. The library writes them here and into the calls. */
const volatile struct {
	u32 bpf_rdonly_cast, bpf_rcu_read_lock, bpf_rcu_read_unlock;
	u32 bpf_iter_task_new, bpf_iter_task_next, bpf_iter_task_destroy;
} function_ids;

/* BPF_JMP | BPF_CALL, with BPF_PSEUDO_KFUNC_CALL as the source */
#define KFUNC_CALL(name) [call] "i"(0x2085ULL | (u64)__builtin_offsetof(typeof(function_ids), name) << 32)

/* bpf_core_read.h declares it under its own name. */
static __always_inline void *rdonly_cast(const void *object, u32 type_id)
{
	register u64 r0 asm("r0"), r1 asm("r1") = (u64)object, r2 asm("r2") = type_id;

	asm(".8byte %[call]" : "=r"(r0), "+r"(r1), "+r"(r2) : KFUNC_CALL(bpf_rdonly_cast) : "r3", "r4", "r5");
	return (void *)r0;
}

static __always_inline void bpf_rcu_read_lock(void)
{
	asm volatile(".8byte %[call]" : : KFUNC_CALL(bpf_rcu_read_lock) : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
}

static __always_inline void bpf_rcu_read_unlock(void)
{
	asm volatile(".8byte %[call]"
		     :
		     : KFUNC_CALL(bpf_rcu_read_unlock)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
}

static __always_inline int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task, u32 flags)
{
	register u64 r0 asm("r0"), r1 asm("r1") = (u64)it, r2 asm("r2") = (u64)task, r3 asm("r3") = flags;

	asm volatile(".8byte %[call]"
		     : "=r"(r0), "+r"(r1), "+r"(r2), "+r"(r3)
		     : KFUNC_CALL(bpf_iter_task_new)
		     : "r4", "r5", "memory");
	return r0;
}

static __always_inline struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it)
{
	register u64 r0 asm("r0"), r1 asm("r1") = (u64)it;

	asm volatile(".8byte %[call]"
		     : "=r"(r0), "+r"(r1)
		     : KFUNC_CALL(bpf_iter_task_next)
		     : "r2", "r3", "r4", "r5", "memory");
	return (struct task_struct *)r0;
}

static __always_inline void bpf_iter_task_destroy(struct bpf_iter_task *it)
{
	register u64 r1 asm("r1") = (u64)it;

	asm volatile(".8byte %[call]"
		     : "+r"(r1)
		     : KFUNC_CALL(bpf_iter_task_destroy)
		     : "r0", "r2", "r3", "r4", "r5", "memory");
}

#endif
