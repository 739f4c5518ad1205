/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What counters.bpf.c and the library exchange: one layout for both sides, in the form of record.h.
 *
 * Addresses go in, numbers come out.
 */
#ifndef FASTPROC_COUNTERS_H
#define FASTPROC_COUNTERS_H

#include "types.h"

#define COUNTERS_CPUSTATS 10 /* enum cpu_usage_stat, USER to GUEST_NICE */
#define COUNTERS_SOFTIRQS 10 /* NR_SOFTIRQS */
#define COUNTERS_ARCH_WORDS 32 /* irq_cpustat_t, in 32-bit words */
#define COUNTERS_NUMA_EVENTS 6 /* NR_VM_NUMA_EVENT_ITEMS */
#define COUNTERS_SCALARS 16
#define COUNTERS_MAX_NODES 1024 /* MAX_NUMNODES */

/* The per-CPU structures of one CPU; 0 where there is none. Written by the library once, and after hotplug. */
struct counters_place {
	u64 cpustat; /* struct kernel_cpustat */
	u64 kstat; /* struct kernel_stat */
	u64 arch; /* irq_cpustat_t */
	u64 mce_exception; /* unsigned int */
	u64 mce_poll; /* unsigned int */
	u64 rq; /* struct rq */
	u64 tick; /* struct tick_sched */
	u64 hotplug; /* struct cpuhp_cpu_state */
	u64 vm_events; /* struct vm_event_state */
	u64 percpu; /* __per_cpu_offset: add to a __percpu pointer */
	u32 online;
	u32 unused;
};

/* A piece of memory to be copied into a row of `rows`: global or per-zone or per-node counters. */
struct counters_block {
	u64 address;
	u32 bytes;
	u32 unused;
};

/* One for the loaded object. */
struct counters_config {
	u64 irq_dir; /* struct kernfs_node of /sys/kernel/irq */
	u64 scalars[COUNTERS_SCALARS]; /* addresses of single 64-bit words */
	u32 cpus; /* possible CPUs: places in use */
	u32 blocks; /* in use */
	u32 zones; /* entries of `zonestats` in use */
	u32 max_irqs; /* descriptors that there is room for */
	u32 max_hot;
	u32 generation; /* of the places, never 0 */
};

#define COUNTERS_WANT_STAT (1u << 0) /* what /proc/stat needs of the CPUs */
#define COUNTERS_WANT_IRQS (1u << 1) /* interrupt counts, by the short cut if `hot` explains the sum, else all */
#define COUNTERS_WANT_ALL_IRQS (1u << 2) /* with WANT_IRQS: no short cut */
#define COUNTERS_WANT_VM (1u << 3)

/* The request, and the result as a whole. */
struct counters_run {
	/* from the library */
	u32 want;
	u32 irqs; /* descriptors in the table */
	u32 hot; /* entries of the hot list */
	u32 scalars_wanted; /* one bit each */
	u64 irq_rev; /* of /sys/kernel/irq when the table was made */
	u32 irqs_explained; /* irqs_sum less the hot counts, as long as no cold count moves */
	u32 unused2;
	/* to the library */
	u64 taken_ns; /* CLOCK_MONOTONIC */
	u64 irqs_sum; /* of all CPUs, just before the counts */
	u64 irqs_sum_after; /* just after; equal if no interrupt came in between */
	u64 irq_rev_now;
	u64 scalars[COUNTERS_SCALARS];
	u32 shortcut; /* 1: only the hot counts were read, and no other moved */
	u32 faults; /* reads that the kernel refused */
};

/* One per CPU. */
struct counters_cpu {
	u64 cpustat[COUNTERS_CPUSTATS]; /* ns */
	u64 idle_ns; /* tick_sched's, with the running period */
	u64 iowait_ns;
	u64 irqs_sum;
	u64 nr_switches;
	u32 softirqs[COUNTERS_SOFTIRQS];
	u32 arch[COUNTERS_ARCH_WORDS];
	u32 nr_running;
	u32 nr_iowait;
	u32 mce_exception;
	u32 mce_poll;
	u32 hotplug_state; /* enum cpuhp_state */
	u32 torn; /* idle_ns and iowait_ns do not belong together */
	u32 settled; /* an offline CPU's: the generation of the places in which all of it was read */
	u32 unused;
};

/* One per interrupt descriptor. */
struct counters_irq {
	u64 desc; /* struct irq_desc */
	u32 irq;
	u32 count;
};

#define COUNTERS_LATE_FORK (1ULL << 48)

/* Forks that a CPU has counted since loading. Alone in its cache line: the kernel writes to it. */
struct counters_forks {
	u64 counted; /* forks, plus COUNTERS_LATE_FORK for each that began before the mark */
	u64 mark; /* CLOCK_MONOTONIC of the machine: the library has read the text before that */
	u64 unused[6];
};

/* Input and output of the programs `locate` and `find_nodes`. */
struct counters_located {
	u64 rq; /* of the CPU that ran */
	u64 irq_dir; /* struct kernfs_node behind irq_dir_fd, or 0 */
	u64 percpu_pointer; /* of the anchor map's element */
	u32 rq_cpu;
	s32 irq_dir_fd;
	u32 nodes; /* entries of `nodes` in use */
	u32 walk_closed; /* the walk reached the end of the task list */
};

#endif
