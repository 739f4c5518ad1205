/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What counters.bpf.c and the library hand each other: one layout for both sides. The Rust half is
 * crates/fastproc/src/counters/layout.rs; a test compares the two through this object's BTF.
 *
 * Addresses go in, numbers come out. A *slot* is one reader's private set of records: slots never share a writable
 * record, so readers on several threads run at once.
 */
#ifndef FASTPROC_COUNTERS_H
#define FASTPROC_COUNTERS_H

/* <linux/types.h> needs the headers of a target that BPF is not. */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;

#define COUNTERS_CPUSTATS 10 /* enum cpu_usage_stat, USER to GUEST_NICE */
#define COUNTERS_SOFTIRQS 10 /* NR_SOFTIRQS */
#define COUNTERS_ARCH_WORDS 32 /* irq_cpustat_t, in 32-bit words */
#define COUNTERS_NUMA_EVENTS 6 /* NR_VM_NUMA_EVENT_ITEMS */
#define COUNTERS_SCALARS 16
#define COUNTERS_MAX_NODES 1024 /* MAX_NUMNODES */
#define COUNTERS_IRQ_ROWS 64 /* descriptors read at a time for /proc/interrupts */

/* The per-CPU structures of one CPU; 0 where there is none. Written by the library once, and after hotplug. */
struct counters_place {
	__u64 cpustat; /* struct kernel_cpustat */
	__u64 kstat; /* struct kernel_stat */
	__u64 arch; /* irq_cpustat_t */
	__u64 mce_exception; /* unsigned int */
	__u64 mce_poll; /* unsigned int */
	__u64 rq; /* struct rq */
	__u64 tick; /* struct tick_sched */
	__u64 hotplug; /* struct cpuhp_cpu_state */
	__u64 vm_events; /* struct vm_event_state */
	__u64 percpu; /* __per_cpu_offset: add to a __percpu pointer */
	__u32 online;
	__u32 unused;
};

/* A piece of memory to be copied into a row of `rows`: global or per-zone or per-node counters. */
struct counters_block {
	__u64 address;
	__u32 bytes;
	__u32 unused;
};

/* One for the loaded object. */
struct counters_config {
	__u64 irq_dir; /* struct kernfs_node of /sys/kernel/irq */
	__u64 scalars[COUNTERS_SCALARS]; /* addresses of single 64-bit words */
	__u32 cpus; /* possible CPUs: places in use */
	__u32 blocks; /* in use */
	__u32 zones; /* entries of `zonestats` in use */
	__u32 max_irqs; /* descriptors a slot has room for */
	__u32 max_hot;
	__u32 row_count; /* rows of a slot */
	__u32 generation; /* of the places, never 0 */
	__u32 unused;
};

#define COUNTERS_WANT_COUNTS (1u << 0) /* what /proc/stat needs besides times and softirqs */
#define COUNTERS_WANT_IRQS (1u << 1) /* interrupt counts, by the short cut if `hot` explains the sum, else all */
#define COUNTERS_WANT_ALL_IRQS (1u << 2) /* with WANT_IRQS: no short cut */
#define COUNTERS_WANT_VM (1u << 3)
#define COUNTERS_WANT_TIMES (1u << 4)
#define COUNTERS_WANT_SOFTIRQS (1u << 5)
#define COUNTERS_WANT_STAT (COUNTERS_WANT_COUNTS | COUNTERS_WANT_TIMES | COUNTERS_WANT_SOFTIRQS)

/* One a slot: what to do, and what came of it as a whole. */
struct counters_run {
	/* from the library */
	__u32 want;
	__u32 irqs; /* descriptors in this slot's table */
	__u32 hot; /* entries of this slot's hot list */
	__u32 scalars_wanted; /* one bit each */
	__u64 irq_rev; /* of /sys/kernel/irq when the table was made */
	__u32 irqs_explained; /* irqs_sum less the hot counts, as long as no cold count moves */
	__u32 unused2;
	/* to the library */
	__u64 taken_ns; /* CLOCK_MONOTONIC */
	__u64 irqs_sum; /* of all CPUs, just before the counts */
	__u64 irqs_sum_after; /* just after; equal if no interrupt came in between */
	__u64 irq_rev_now;
	__u64 scalars[COUNTERS_SCALARS];
	__u32 shortcut; /* 1: only the hot counts were read, and no other moved */
	__u32 faults; /* reads that the kernel refused */
};

/* One a CPU and slot. */
struct counters_cpu {
	__u64 cpustat[COUNTERS_CPUSTATS]; /* ns */
	__u64 idle_ns; /* tick_sched's, with the running period */
	__u64 iowait_ns;
	__u64 irqs_sum;
	__u64 nr_switches;
	__u32 softirqs[COUNTERS_SOFTIRQS];
	__u32 arch[COUNTERS_ARCH_WORDS];
	__u32 nr_running;
	__u32 nr_iowait;
	__u32 mce_exception;
	__u32 mce_poll;
	__u32 hotplug_state; /* enum cpuhp_state */
	__u32 torn; /* idle_ns and iowait_ns do not belong together */
	__u32 settled; /* an offline CPU's: the generation of the places in which all of it was read */
	__u32 unused;
};

/* One an interrupt descriptor and slot. */
struct counters_irq {
	__u64 desc; /* struct irq_desc */
	__u32 irq;
	__u32 count;
};

/* What decides a row of /proc/interrupts besides the counts: if it changes, the row's words may have. */
struct counters_irq_words {
	__u64 action;
	__u64 action_name;
	__u64 action_next;
	__u64 chip;
	__u64 handler;
	__u64 hwirq;
	__u32 trigger;
	__u32 unused;
};

/* Input and output of the programs `locate` and `find_nodes`. */
struct counters_located {
	__u64 rq; /* of the CPU that ran */
	__u64 irq_dir; /* struct kernfs_node behind irq_dir_fd, or 0 */
	__u64 percpu_pointer; /* of the anchor map's element */
	__u32 rq_cpu;
	__s32 irq_dir_fd;
	__u32 nodes; /* entries of `nodes` in use */
	__u32 walk_closed; /* the task list was seen to its end */
};

struct counters_args {
	__u32 slot;
};

struct counters_rows_args {
	__u32 slot;
	__u32 first; /* index into the slot's table */
	__u32 count;
};

#endif
