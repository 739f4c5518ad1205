/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's structures, reduced to the members that cgroups.bpf.c reads. See kernel.h. */
#ifndef FASTPROC_KERNEL_CGROUP_H
#define FASTPROC_KERNEL_CGROUP_H

#include "kernel_types.h"

#define CSS_ONLINE 2
#define CSS_RELEASED 4
#define CSS_VISIBLE 8

/* Their values depend on the configuration, so they are relocated. */
enum cgroup_subsys_id { cpu_cgrp_id = 1, memory_cgrp_id = 2, pids_cgrp_id = 3, io_cgrp_id = 4 };
/* the states before it depend on the configuration */
enum psi_states { PSI_NONIDLE = 6 };
/* the last one, from 7.0 on */
enum memcg_memory_event { MEMCG_SOCK_THROTTLED = 9 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct { s64 counter; } atomic64_t;
struct list_head { struct list_head *next, *prev; };
struct hlist_node { struct hlist_node *next; };
struct hlist_head { struct hlist_node *first; };

struct kernfs_node { u64 id; };
struct cgroup_subsys_state {
	struct list_head sibling, children;
	u64 serial_nr;
	u32 flags;
	struct cgroup_subsys_state *parent;
};
/* where it is by 7.3 */
struct cgroup_subsys_state___7_3 { int nr_populated_csets; };

struct task_cputime { u64 stime, utime, sum_exec_runtime; };
struct cgroup_base_stat { struct task_cputime cputime; u64 forceidle_sum, ntime; };
struct prev_cputime { u64 utime, stime; };
struct psi_group;
struct cgroup_root;
struct cgroup {
	struct cgroup_subsys_state self;
	u64 flags;
	int level, nr_descendants, nr_dying_descendants;
	int nr_populated_csets, nr_populated_domain_children, nr_populated_threaded_children;
	struct kernfs_node *kn;
	struct cgroup_subsys_state *subsys[1];
	struct cgroup_root *root;
	struct cgroup *dom_cgrp;
	struct cgroup_base_stat bstat;
	struct prev_cputime prev_cputime;
	struct psi_group *psi;
};
struct cgroup_root { struct cgroup cgrp; };
struct css_set { struct cgroup *dfl_cgrp; };
struct rq { u64 clock; };
struct cfs_rq { struct rq *rq; };
struct sched_entity { struct cfs_rq *cfs_rq; };
struct task_struct {
	struct css_set *cgroups;
	struct sched_entity se;
};

struct cfs_bandwidth {
	s64 period;
	u64 quota;
	int nr_periods, nr_throttled, nr_burst;
	u64 throttled_time, burst_time;
};
struct task_group { u64 shares; struct cfs_bandwidth cfs_bandwidth; };

struct page_counter { atomic64_t usage; u64 min, low, high, max, watermark; };
struct memcg_vmstats;
struct mem_cgroup {
	struct page_counter memory, swap;
	bool oom_group;
	atomic64_t memory_events[10], memory_events_local[10];
	struct memcg_vmstats *vmstats;
};

struct pids_cgroup { atomic64_t counter, limit; s64 watermark; };

struct blkg_iostat { u64 bytes[3], ios[3]; };
struct blkg_iostat_set { struct blkg_iostat cur; };
struct gendisk { int major, first_minor; };
struct request_queue { struct gendisk *disk; };
struct blkcg_gq {
	struct request_queue *q;
	struct hlist_node blkcg_node;
	struct blkg_iostat_set iostat;
	bool online;
};
struct blkcg { struct hlist_head blkg_list; };

struct bpf_array { void *pptrs[1]; };
/* The type information describes arrays of arrays as one array. */
struct psi_group_cpu {
	u32 state_mask;
	u32 times[8];
	u64 state_start;
	u32 times_prev[8];
};
struct mutex { atomic64_t owner; };
struct psi_group {
	bool enabled;
	struct mutex avgs_lock;
	struct psi_group_cpu *pcpu;
	u64 avg_last_update;
	u64 total[6];
};

#pragma clang attribute pop

#endif
