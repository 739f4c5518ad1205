/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's members that counters.bpf.c reads, and no others. libbpf relocates every access to the offset in the
 * running kernel, so only names and types matter here, not order and size.
 */
#ifndef FASTPROC_KERNEL_COUNTERS_H
#define FASTPROC_KERNEL_COUNTERS_H

#include <stdbool.h>

#include "counters.h"
#include "kernel_types.h"

#define __kernel_layout __attribute__((preserve_access_index))

/* include/linux/seqlock_types.h */
struct seqcount {
	unsigned int sequence;
} __kernel_layout;
typedef struct seqcount seqcount_t;

/* include/linux/kernel_stat.h */
enum cpu_usage_stat {
	CPUTIME_IDLE = 5,
	CPUTIME_IOWAIT = 6,
};

struct kernel_cpustat {
	u64 cpustat[COUNTERS_CPUSTATS];
} __kernel_layout;

/* From 7.0 on, idle times are kept here instead of in tick_sched. */
struct kernel_cpustat___idle {
	bool idle_elapse;
	seqcount_t idle_sleeptime_seq;
	u64 idle_entrytime;
	u64 idle_stealtime[2];
} __kernel_layout;

struct kernel_stat {
	unsigned long irqs_sum;
	unsigned int softirqs[COUNTERS_SOFTIRQS];
} __kernel_layout;

/* kernel/sched/sched.h */
typedef struct {
	int counter;
} __kernel_layout atomic_t;

struct rq {
	unsigned int nr_running;
	u64 nr_switches;
	atomic_t nr_iowait;
	int cpu;
} __kernel_layout;

struct cfs_rq {
	struct rq *rq;
} __kernel_layout;

struct sched_entity {
	struct cfs_rq *cfs_rq;
} __kernel_layout;

/* kernel/time/tick-sched.h: bit-fields until 6.8, flags after */
struct tick_sched {
	s64 idle_entrytime;
	s64 idle_sleeptime;
	s64 iowait_sleeptime;
} __kernel_layout;

struct tick_sched___flags {
	unsigned long flags;
} __kernel_layout;

struct tick_sched___seq {
	seqcount_t idle_sleeptime_seq;
} __kernel_layout;

struct tick_sched___bits {
	unsigned int inidle : 1;
	unsigned int tick_stopped : 1;
	unsigned int idle_active : 1;
} __kernel_layout;

/* kernel/cpu.c */
enum cpuhp_state {
	CPUHP_OFFLINE,
};

struct cpuhp_cpu_state {
	enum cpuhp_state state;
} __kernel_layout;

/* include/linux/irqdesc.h */
struct kobject {
	const char *name;
} __kernel_layout;

struct irq_data {
	unsigned int irq;
} __kernel_layout;

struct irq_desc {
	struct irq_data irq_data;
	void *kstat_irqs;
	unsigned int status_use_accessors;
	unsigned int core_internal_state__do_not_mess_with_it;
	unsigned int tot_count;
	struct kobject kobj;
} __kernel_layout;

/* include/linux/kernfs.h, include/linux/rbtree_types.h */
struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
} __kernel_layout;

struct rb_root {
	struct rb_node *rb_node;
} __kernel_layout;

struct kernfs_elem_dir {
	unsigned long subdirs;
	struct rb_root children;
	unsigned long rev;
} __kernel_layout;

struct kernfs_node {
	struct rb_node rb;
	struct kernfs_elem_dir dir;
	void *priv;
} __kernel_layout;

/* include/linux/fs.h, fdtable.h */
struct inode {
	void *i_private;
} __kernel_layout;

struct file {
	struct inode *f_inode;
} __kernel_layout;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __kernel_layout;

struct files_struct {
	struct fdtable *fdt;
} __kernel_layout;

/* include/linux/list.h, sched.h, kernel/kthread.c */
struct list_head {
	struct list_head *next;
} __kernel_layout;

struct task_struct {
	int pid;
	u64 start_time;
	char comm[16];
	struct task_struct *real_parent;
	struct list_head tasks;
	struct files_struct *files;
	struct sched_entity se;
	void *worker_private;
} __kernel_layout;

struct kthread {
	void *data;
} __kernel_layout;

/* include/linux/mmzone.h */
struct pglist_data {
	int node_id;
	struct task_struct *kswapd;
} __kernel_layout;

struct per_cpu_zonestat {
	unsigned long vm_numa_event[COUNTERS_NUMA_EVENTS];
} __kernel_layout;

/* include/linux/bpf.h */
struct bpf_array {
	void *pptrs[0];
} __kernel_layout;

#endif
