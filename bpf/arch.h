/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Differences between architectures. */
#ifndef FASTPROC_ARCH_H
#define FASTPROC_ARCH_H

/*
 * Loads before ordered() stay before the loads after it. x86 and s390 keep loads in order, so a barrier for the
 * compiler is enough. Other processors need an instruction, and BPF has no barrier; but an exchange is a full barrier,
 * like the kernel's own xchg(). On arm64 its instruction acquires and releases, or a barrier follows it (from Linux
 * 5.18). An atomic whose result is not used would not be a barrier. The word is on the stack, so no two CPUs share it.
 */
#if defined(__TARGET_ARCH_x86) || defined(__TARGET_ARCH_s390)
#define ordered() barrier()
#else
static __always_inline void ordered(void)
{
	u64 word = 0, was = __sync_lock_test_and_set(&word, 0);

	asm volatile("" : : "r"(was) : "memory");
}
#endif

/* A load that the compiler may neither merge with another nor move. */
#define RELOAD(x) (*(volatile typeof(x) *)&(x))

/* mm_untag_mask() for a mm_context_t without a member for it: the top byte of an address is a tag on arm64. */
#ifdef __TARGET_ARCH_arm64
#define UNTAG_MASK (~0ULL >> 8)
#else
#define UNTAG_MASK (~0ULL)
#endif

#endif
