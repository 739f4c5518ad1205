/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's structures, reduced to the members that tasks.bpf.c reads. libbpf finds the real offsets in the running
 * kernel's BTF. A name with three underscores is a flavour: the same structure in other kernels.
 */
#ifndef FASTPROC_KERNEL_H
#define FASTPROC_KERNEL_H

#include "kernel_types.h"
#include "record.h"
#include "run.h"

/* bpf_ringbuf_submit() and bpf_ringbuf_query() */
#define BPF_RB_NO_WAKEUP 1
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0
#define BPF_RB_RING_SIZE 1

#define PF_EXITING 0x4
#define PF_POSTCOREDUMP 0x8
#define PF_WQ_WORKER 0x20
#define PF_FORKNOEXEC 0x40
#define PF_DUMPCORE 0x200
#define PF_KTHREAD 0x200000

#define TASK_REPORT 0x7f
#define TASK_IDLE 0x402	      /* TASK_UNINTERRUPTIBLE | TASK_NOLOAD */
#define TASK_REPORT_IDLE 0x80
#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_RTLOCK_WAIT 0x1000
#define TASK_FROZEN 0x8000
#define SIGNAL_STOP_STOPPED 0x1
#define SIGNAL_GROUP_EXIT 0x4

enum pid_type { PIDTYPE_PID, PIDTYPE_TGID, PIDTYPE_PGID, PIDTYPE_SID };
enum { MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES };
enum { RLIMIT_RSS = 5, RLIMIT_SIGPENDING = 11 };
enum { BPF_TASK_ITER_ALL_PROCS, BPF_TASK_ITER_ALL_THREADS };
/* UCOUNT_RLIMIT_SIGPENDING; the enumerators before it have changed, so its value is relocated */
enum rlimit_type { UCOUNT_RLIMIT_SIGPENDING = 2 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
typedef struct { atomic_t refs; } refcount_t;
typedef struct { u64 sig[1]; } sigset_t;
typedef struct { u32 val; } kuid_t;
typedef struct { u32 val; } kgid_t;
typedef struct { u64 val; } kernel_cap_t;
struct cpumask { u64 bits[1]; };
typedef struct cpumask cpumask_t;
typedef struct { u64 bits[1]; } nodemask_t;

struct list_head { struct list_head *next, *prev; };
/* Four adjacent words, a type of every kernel with networking: used to read the per-CPU parts of rss. */
struct in6_addr { union { u32 u6_addr32[4]; } in6_u; };
struct ns_common { u32 inum; };
struct user_namespace { struct ns_common ns; };
struct pid_namespace { struct ns_common ns; };
struct upid { int nr; struct pid_namespace *ns; };
struct pid { u32 level; struct upid numbers[1]; };

struct sigaction { void *sa_handler; };
struct k_sigaction { struct sigaction sa; };
struct sighand_struct { refcount_t count; struct k_sigaction action[64]; };
struct sigpending { sigset_t signal; };
struct rlimit { u64 rlim_cur; };
struct prev_cputime { u64 utime, stime; };
struct task_io_accounting { u64 rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes; };

struct tty_driver { int major, minor_start; };
struct tty_struct {
	int index;
	struct tty_driver *driver;
	struct { struct pid *pgrp; } ctrl;
};
struct tty_struct___5_15 { struct pid *pgrp; };

typedef struct seqcount { u32 sequence; } seqcount_t;
typedef struct seqcount_spinlock { seqcount_t seqcount; } seqcount_spinlock_t;
typedef struct { seqcount_spinlock_t seqcount; } seqlock_t;
typedef struct { seqcount_t seqcount; } seqlock_t___5_9;

struct taskstats {
	u64 cpu_count, cpu_delay_total, blkio_count, blkio_delay_total, swapin_count, swapin_delay_total;
	u64 freepages_count, freepages_delay_total, thrashing_count, thrashing_delay_total, compact_count, compact_delay_total;
};
struct core_state;
struct signal_struct___5_16 { struct task_struct *group_exit_task; };
struct signal_struct___5_9 { seqlock_t___5_9 stats_lock; };
struct signal_struct {
	atomic_t live;
	int nr_threads;
	struct list_head thread_head;
	seqlock_t stats_lock;
	struct sigpending shared_pending;
	int group_exit_code;
	u32 flags;
	struct core_state *core_state;
	struct task_struct *group_exec_task;
	struct pid *pids[4];
	struct tty_struct *tty;
	u64 utime, stime, cutime, cstime, gtime, cgtime;
	struct prev_cputime prev_cputime;
	u64 nvcsw, nivcsw, min_flt, maj_flt, cmin_flt, cmaj_flt, maxrss;
	struct task_io_accounting ioac;
	u64 sum_sched_runtime;
	struct rlimit rlim[16];
	struct taskstats *stats;
};

struct percpu_counter { s64 count; s32 *counters; };
typedef struct { u64 __mm_flags[1]; } mm_flags_t;
typedef struct { u64 untag_mask; } mm_context_t;
struct mm_struct {
	atomic_t mm_users;
	atomic64_t pgtables_bytes;
	u64 hiwater_rss, hiwater_vm, total_vm, locked_vm, data_vm, exec_vm, stack_vm;
	atomic64_t pinned_vm;
	u64 start_code, end_code, start_data, end_data, start_brk, start_stack;
	u64 arg_start, arg_end, env_start, env_end;
	struct percpu_counter rss_stat[4];
	mm_context_t context;
	mm_flags_t flags;
	atomic64_t hugetlb_usage;
};
struct mm_rss_stat___6_1 { atomic64_t count[4]; };
struct mm_struct___6_1 { struct mm_rss_stat___6_1 rss_stat; u64 flags; };
struct mm_struct___5_15 { struct core_state *core_state; };

struct ucounts { atomic64_t rlimit[4]; };
struct ucounts___6_0 { atomic64_t ucount[16]; };
enum ucount_type___6_0 { UCOUNT_RLIMIT_SIGPENDING___6_0 = 12 };
struct user_struct___5_13 { atomic_t sigpending; };
struct group_info { int ngroups; kgid_t gid[1]; };
struct cred {
	kuid_t uid, suid, euid, fsuid;
	kgid_t gid, sgid, egid, fsgid;
	kernel_cap_t cap_inheritable, cap_permitted, cap_effective, cap_bset, cap_ambient;
	struct user_namespace *user_ns;
	struct ucounts *ucounts;
	struct group_info *group_info;
};
typedef struct { u32 cap[2]; } kernel_cap_t___6_2;
struct cred___6_2 { kernel_cap_t___6_2 cap_inheritable, cap_permitted, cap_effective, cap_bset, cap_ambient; };
struct cred___5_13 { struct user_struct___5_13 *user; };

struct fs_struct { int users, umask; };
struct fdtable { u32 max_fds; };
struct files_struct { atomic_t count; struct fdtable *fdt; };
struct numa_group { int gid; };
struct task_delay_info {
	u64 blkio_delay, swapin_start, swapin_delay, freepages_delay, thrashing_delay, compact_delay;
	u32 blkio_count, swapin_count, freepages_count, thrashing_count, compact_count;
};
struct kernfs_node { u64 id; };
struct cgroup { struct kernfs_node *kn; };
struct css_set { struct cgroup *dfl_cgrp; };
struct seccomp { int mode; atomic_t filter_count; };

struct workqueue_attrs { int nice; };
struct worker_pool { int cpu, id; struct workqueue_attrs *attrs; };
struct workqueue_struct { char name[32]; };
struct work_struct;
struct worker {
	struct work_struct *current_work;
	struct worker_pool *pool;
	int id;
	char desc[32];
	struct workqueue_struct *rescue_wq;
};
struct kthread { void *data; char *full_name; };

struct thread_info { u32 cpu; };
enum task_dumpable { TASK_DUMPABLE_OFF };
struct task_exec_state { enum task_dumpable dumpable; };
struct sched_entity { u64 sum_exec_runtime; };
struct sched_info { u64 pcount, run_delay; };
struct task_struct {
	struct thread_info thread_info;
	/* on_cpu is a byte in newer kernels: libbpf adapts the size of a load only if the member is unsigned */
	u32 __state, flags, ptrace, policy, rt_priority, on_cpu;
	u32 user_dumpable : 1;
	struct task_exec_state *exec_state;
	int prio, static_prio, exit_state, exit_code, exit_signal;
	int on_rq;
	struct sched_entity se;
	struct sched_info sched_info;
	cpumask_t cpus_mask;
	struct list_head tasks, thread_node;
	struct mm_struct *mm;
	u64 atomic_flags;
	int pid, tgid;
	struct task_struct *real_parent, *parent, *group_leader;
	struct pid *thread_pid;
	void *worker_private;
	u64 utime, stime, gtime;
	struct prev_cputime prev_cputime;
	u64 nvcsw, nivcsw, start_boottime, min_flt, maj_flt;
	u64 self_exec_id;
	const struct cred *real_cred;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	sigset_t blocked;
	struct sigpending pending;
	struct seccomp seccomp;
	struct task_io_accounting ioac;
	nodemask_t mems_allowed;
	struct css_set *cgroups;
	struct numa_group *numa_group;
	struct task_delay_info *delays;
};
struct task_struct___5_13 { s64 state; };
struct task_struct___5_15 { u32 cpu; };
struct task_struct___5_16 { void *set_child_tid; };
struct thread_struct { u64 sp; };
struct inactive_task_frame { u64 bp; };
struct task_struct___stack { void *stack; struct thread_struct thread; };
/* x86 from 6.6 on, where users have shadow stacks */
struct thread_struct___6_6 { u64 features, features_locked; };
struct task_struct___6_6 { struct thread_struct___6_6 thread; };

struct linux_binprm { const char *filename; };

struct bpf_array { void *pptrs[1]; };
struct bpf_iter_meta;
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; };

#pragma clang attribute pop

/* Not relocated: the verifier knows this size. */
struct bpf_iter_task { u64 opaque[3]; };

#endif
