/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The processes and cgroups of a Linux machine, from the kernel's own structures. fastproc(3) begins with an example.
 *
 * Generated from the library's functions and from the descriptions of its records: do not edit.
 *
 * Functions return FASTPROC_OK; FASTPROC_UNKNOWN where a value is not known; or a negative FASTPROC_ERROR_*. Then what they
 * should write is empty, and fastproc_error() is a sentence that says what went wrong and what to do.
 *
 * index is the place of a process in the snapshot, of a thread among all threads, or of a cgroup. It begins at 0.
 *
 * A record is a copy, which stays as it is. It has the groups of fields that identity.groups names: those that the handle was
 * opened with, if the source knows them of this process. A value that is not known has every bit set (FASTPROC_UNKNOWN_*), and
 * is never shown as zero. [unknown]: it may be unknown although its group is there. [guarded]: the kernel shows it only to the
 * owner of the process and to readers with CAP_SYS_PTRACE; to others it is unknown, and identity.masked is 1.
 * [internal]: it is for the library alone.
 * [FASTPROC_X]: the handle must have been opened with that among its fields.
 *
 * A handle may be used by one thread at a time, different ones by different threads at once. After fork(2) the child opens
 * its own. Times are nanoseconds and sizes are bytes.
 */

#ifndef FASTPROC_H
#define FASTPROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A member marked [unknown] or [guarded], and every member of a group that a record lacks, has these values if it is not known. */
#define FASTPROC_UNKNOWN_U64 UINT64_MAX
#define FASTPROC_UNKNOWN_U32 UINT32_MAX
#define FASTPROC_UNKNOWN_S32 (-1)
#define FASTPROC_UNKNOWN_U8 UINT8_MAX

/* A limit of a cgroup that is not set. */
#define FASTPROC_NO_LIMIT (UINT64_MAX - 1)

/* The flag of kernel threads in identity.flags. */
#define FASTPROC_KERNEL_THREAD 0x00200000

#define FASTPROC_CPU 0x001 /* CPU time, faults, context switches. */
#define FASTPROC_MEMORY 0x002 /* Sizes of memory. All 0 for a process without memory of its own (a kernel thread, a zombie). */
#define FASTPROC_LAYOUT 0x004 /* Addresses. */
#define FASTPROC_CREDENTIALS 0x008 /* Capabilities, seccomp, umask, and how many supplementary groups there are. */
#define FASTPROC_SIGNALS 0x010 /* Signal sets. */
#define FASTPROC_NAMESPACES 0x020 /* Pid namespaces. */
#define FASTPROC_SCHEDULING 0x040 /* Priority, policy, processor. */
#define FASTPROC_LIMITS 0x080 /* Limits. */
#define FASTPROC_IO 0x100 /* I/O counters. */
#define FASTPROC_CGROUP 0x200 /* Cgroup of the default hierarchy. */
#define FASTPROC_THREADS 0x400 /* Every thread on its own. */
#define FASTPROC_MEMORY_DETAILS 0x800 /* What else is known of its memory. All 0 for a process without memory of its own. */
#define FASTPROC_USERS 0x1000 /* Users and groups. */
#define FASTPROC_SCHEDULING_DETAILS 0x2000 /* What else is known of its scheduling. */
#define FASTPROC_DELAYS 0x4000 /* Delay accounting. */

#define FASTPROC_TOP 0x3
#define FASTPROC_THREE_FILES 0x38ff
#define FASTPROC_CGROUPS_CPU 0x01 /* CPU time, throttling and weight. */
#define FASTPROC_CGROUPS_MEMORY 0x02 /* Memory in use, limits and events. */
#define FASTPROC_CGROUPS_MEMORY_STAT 0x04 /* The lines of memory.stat. */
#define FASTPROC_CGROUPS_PIDS 0x08 /* Processes and threads. */
#define FASTPROC_CGROUPS_IO 0x10 /* I/O. */
#define FASTPROC_CGROUPS_PRESSURE 0x20 /* Time in which tasks waited. */
#define FASTPROC_CGROUPS_PRESSURE_AVERAGES 0x40 /* Averages of pressure. */

/* Who a process is and what it is doing. Always present. */
typedef struct fastproc_identity {
	uint64_t start_ns; /* Start time after boot (task->start_boottime); starttime of /proc/PID/stat. Exact, or on a whole tick of 10 ms if text or the service has rounded it: see is_same_start() of the library for Rust. Nanoseconds. */
	uint32_t tgid; /* Process id, in the pid namespace of /proc (task->tgid). */
	uint32_t ppid; /* Parent's process id (real_parent->tgid). */
	uint32_t pgrp; /* Process group. */
	uint32_t session; /* Session. */
	uint32_t tracer_pid; /* Process that traces this one by ptrace(2), or 0. */
	uint32_t flags; /* Kernel flags, PF_* (task->flags). */
	int32_t tty_nr; /* Controlling terminal as a device number (new_encode_dev()), or 0. */
	int32_t tpgid; /* Foreground process group of that terminal, or -1. */
	uint32_t num_threads; /* Threads (signal->nr_threads). */
	int32_t exit_signal; /* Signal sent to the parent on exit (task->exit_signal). */
	int32_t exit_code; /* Exit status as waitpid(2) shows it. [guarded] */
	uint32_t state_bits; /* Report bits of the state; only the highest counts, as in __task_state_index(): 0 R, 1 S, 2 D, 4 T, 8 t, 16 X and so on. */
	uint32_t groups; /* The groups that this record holds, as the bits of Fields. */
	uint32_t torn; /* What was replaced while it was being read; a torn record is never shown, but read again from /proc. [internal] */
	uint32_t seen_threads; /* Threads whose times are folded in, the leader included. */
	uint32_t threads_state; /* Another after a thread has begun or ended, where the source compares that. */
	uint8_t wchan; /* 1 if the process has one thread and that is not running: the kernel's answer to "is there a wait channel". [guarded] */
	uint8_t has_mm; /* 1 if the process has memory of its own; kernel threads and zombies have none. */
	uint8_t core_dumping; /* 1 while the process writes a core dump. */
	uint8_t masked; /* 1 if the kernel hid from this reader what only ptrace access shows (a record parsed from /proc). */
	uint32_t on_cpu; /* 1 while the leading thread is on a CPU (task->on_cpu). [guarded] [unknown] [internal] */
	char comm[16]; /* Command name, NUL padded (task->comm). */
} fastproc_identity;

/* CPU time and faults, of all threads together, dead ones included, as the kernel folds them. */
typedef struct fastproc_cpu {
	uint64_t utime_ns; /* Time in user mode, scaled to the precise run time as the kernel does (cputime_adjust()), by the library. Nanoseconds. */
	uint64_t stime_ns; /* Time in kernel mode, scaled likewise. Nanoseconds. */
	uint64_t gtime_ns; /* Guest time: time spent running a virtual CPU; also part of utime_ns. Nanoseconds. */
	uint64_t cutime_ns; /* User time of children that were waited for. Nanoseconds. */
	uint64_t cstime_ns; /* System time of children that were waited for. Nanoseconds. */
	uint64_t cgtime_ns; /* Guest time of children that were waited for. Nanoseconds. */
	uint64_t minflt; /* Page faults that needed no I/O. */
	uint64_t majflt; /* Page faults that needed I/O. */
	uint64_t cminflt; /* Minor faults of children that were waited for. */
	uint64_t cmajflt; /* Major faults of children that were waited for. */
	uint64_t nvcsw; /* Voluntary context switches of the leading thread, as in /proc/PID/status. */
	uint64_t nivcsw; /* Involuntary context switches of the leading thread. */
	uint64_t sum_exec_ns; /* Precise run time (se.sum_exec_runtime); /proc does not tell. Nanoseconds. [unknown] */
	uint64_t run_delay_ns; /* Time that threads waited for a CPU while they could run (sched_info.run_delay): the second number of schedstat. The time of exited threads is included where the kernel keeps it (signal->stats: CONFIG_TASKSTATS and CONFIG_TASK_DELAY_ACCT) and the source can read it; /proc shows living threads only. Nanoseconds. [unknown] */
	uint64_t timeslices; /* How often a thread got a CPU (sched_info.pcount): the third number of schedstat. Exited threads: as for run_delay_ns. [unknown] */
	uint64_t sampled_utime_ns; /* User time as sampled by ticks, before scaling. Nanoseconds. [internal] */
	uint64_t sampled_stime_ns; /* System time as sampled by ticks, before scaling. Nanoseconds. [internal] */
	uint64_t prev_utime_ns; /* User time that the kernel last showed to anybody (signal->prev_cputime). Nanoseconds. [internal] */
	uint64_t prev_stime_ns; /* System time that the kernel last showed to anybody. Nanoseconds. [internal] */
} fastproc_cpu;

/* Memory, as in /proc/PID/statm and the Vm lines of /proc/PID/status. All in bytes. */
typedef struct fastproc_memory {
	uint64_t vsize; /* Virtual size (mm->total_vm): VmSize, vsize of stat, size of statm. Bytes. */
	uint64_t rss_approx; /* Resident set as stat shows it: without what the CPUs have not yet folded in, so up to some MiB off. Bytes. */
	uint64_t rss_anon; /* Resident anonymous memory: RssAnon. Bytes. */
	uint64_t rss_file; /* Resident file mappings: RssFile. Bytes. */
	uint64_t rss_shmem; /* Resident shared memory (tmpfs, System V, shared anonymous): RssShmem. Bytes. */
	uint64_t swap; /* Swapped out: VmSwap. Bytes. */
	uint64_t peak_vsize; /* Largest virtual size so far: VmPeak. Bytes. */
	uint64_t peak_rss; /* Largest resident set so far: VmHWM. Bytes. */
	uint64_t locked; /* Locked by mlock(2): VmLck. Bytes. */
	uint64_t pinned; /* Pinned, so that it cannot be moved: VmPin. Bytes. */
	uint64_t data; /* Data: VmData. Bytes. */
	uint64_t stack; /* Stack: VmStk. Bytes. */
	uint64_t exe; /* Text, no more than there is executable memory: VmExe. Bytes. */
	uint64_t lib; /* The rest of the executable memory: VmLib. Bytes. */
	uint64_t text; /* Text, from first to last page: trs of statm. Bytes. */
	uint64_t mm_users; /* Users of the address space: 1 if nobody shares it (mm->mm_users). [guarded] [unknown] [internal] */
} fastproc_memory;

/* What else is known of the memory of a process, and a top does not show. It lies far from the rest in mm_struct: each costs a line of the cache. */
typedef struct fastproc_memory_details {
	uint64_t page_tables; /* Page tables: VmPTE. Bytes. */
	uint64_t hugetlb; /* Huge pages of hugetlbfs: HugetlbPages. Bytes. */
	uint64_t mm_flags; /* mm->flags; without memory, 1 if the user may still trace the process. [guarded] */
	uint64_t untag_mask; /* Mask that removes an address's tag (mm->context.untag_mask, x86): untag_mask. */
} fastproc_memory_details;

/* Where things lie in the address space. The kernel shows these only to readers with ptrace access. */
typedef struct fastproc_layout {
	uint64_t start_code; /* Where the text starts. [guarded] */
	uint64_t end_code; /* Where the text ends. [guarded] */
	uint64_t start_stack; /* Where the stack starts. [guarded] */
	uint64_t kstkesp; /* Stack pointer of a dying or dumping process, else 0. [guarded] */
	uint64_t kstkeip; /* Instruction pointer of a dying or dumping process, else 0. [guarded] */
	uint64_t start_data; /* Where the data starts. [guarded] */
	uint64_t end_data; /* Where the data ends. [guarded] */
	uint64_t start_brk; /* Where the heap starts. [guarded] */
	uint64_t arg_start; /* Where the arguments start. [guarded] */
	uint64_t arg_end; /* Where the arguments end. [guarded] */
	uint64_t env_start; /* Where the environment starts. [guarded] */
	uint64_t env_end; /* Where the environment ends. [guarded] */
} fastproc_layout;

/* Users and groups, of the objective credentials (task->real_cred). */
typedef struct fastproc_users {
	uint32_t uid; /* Real user. */
	uint32_t euid; /* Effective user. */
	uint32_t suid; /* Saved user. */
	uint32_t fsuid; /* User for access to files. */
	uint32_t gid; /* Real group. */
	uint32_t egid; /* Effective group. */
	uint32_t sgid; /* Saved group. */
	uint32_t fsgid; /* Group for access to files. */
} fastproc_users;

/* What else the objective credentials say, and what else bounds what the process may do. */
typedef struct fastproc_credentials {
	uint64_t cap_inheritable; /* Inheritable capabilities: CapInh. */
	uint64_t cap_permitted; /* Permitted capabilities: CapPrm. */
	uint64_t cap_effective; /* Effective capabilities: CapEff. */
	uint64_t cap_bounding; /* Bounding set of capabilities: CapBnd. */
	uint64_t cap_ambient; /* Ambient capabilities: CapAmb. */
	uint64_t atomic_flags; /* task->atomic_flags: bit 0 no_new_privs, bits 3 to 7 speculation control. */
	uint32_t user_ns; /* Inode number of the user namespace. [guarded] [unknown] */
	uint32_t seccomp_mode; /* 0 off, 1 strict, 2 filter. */
	uint32_t seccomp_filters; /* Number of seccomp filters. */
	int32_t umask; /* File mode creation mask; a process that ends has none any more. [unknown] */
	uint32_t ngroups; /* Number of supplementary groups. */
	uint32_t groups_at; /* Where they stand in the pool, two a word. [internal] */
	uint64_t thread_features; /* ARCH_SHSTK_* bits of the leading thread (task->thread.features, x86 with user shadow stacks, else 0): bit 0 it has a shadow stack, bit 1 it may write to it. x86_Thread_features. */
	uint64_t thread_features_locked; /* Those that are locked: x86_Thread_features_locked. */
} fastproc_credentials;

/* Signal sets; bit n-1 stands for signal n. */
typedef struct fastproc_signals {
	uint64_t pending; /* Pending for the leading thread: SigPnd. */
	uint64_t shared_pending; /* Pending for the process: ShdPnd. */
	uint64_t blocked; /* Blocked by the leading thread: SigBlk. */
	uint64_t ignored; /* Ignored: SigIgn. */
	uint64_t caught; /* Caught: SigCgt. */
	uint64_t queued; /* Signals queued by the process's user, over all its processes: SigQ, the first number. */
	uint64_t queue_limit; /* Their limit (RLIMIT_SIGPENDING): SigQ, the second number. */
	uint64_t switches; /* Context switches of the process, or UINT64_MAX: it ran, has other threads, or shares its memory. While they and run_ns are the same it has not run, so ignored and caught are the same. [internal] */
	uint64_t run_ns; /* Its precise run time then: a thread that executes a program takes the leader's place, with switches of its own. Nanoseconds. [internal] */
} fastproc_signals;

/* Pid namespaces. */
typedef struct fastproc_namespaces {
	uint32_t level; /* How many pid namespaces the process is below that of /proc. */
	uint32_t ids_at; /* Where its ids in them stand in the pool, two words for each: tgid, pid; pgrp, session. [internal] */
} fastproc_namespaces;

/* Scheduling, of the leading thread. */
typedef struct fastproc_scheduling {
	int32_t priority; /* Kernel priority as stat shows it: 20 plus nice, or minus one minus the real-time priority. */
	int32_t nice; /* Nice value, -20 to 19. */
	uint32_t rt_priority; /* Real-time priority, 1 to 99, or 0. */
	uint32_t policy; /* SCHED_*. */
	uint32_t processor; /* CPU that it last ran on. */
	uint32_t reserved; /* Not used. [internal] */
} fastproc_scheduling;

/* What a top does not show of it. */
typedef struct fastproc_scheduling_details {
	uint64_t cpus_allowed; /* CPUs 0 to 63 of the allowed ones. */
	uint64_t mems_allowed; /* Memory nodes 0 to 63 of the allowed ones. */
	uint64_t blkio_ns; /* Time waited for block I/O (delays->blkio_delay; counts only with delay accounting on). Nanoseconds. */
	uint32_t cpus_at; /* Where all of the first stand in the pool, on a machine with more than 64. [internal] */
	uint32_t mems_at; /* Where all of the second stand in the pool, on a machine with more than 64. [internal] */
	uint32_t ngid; /* NUMA group, or 0. */
	uint32_t reserved; /* Not used. [internal] */
} fastproc_scheduling_details;

/* Limits that /proc/PID/stat and status show. */
typedef struct fastproc_limits {
	uint64_t rss_limit; /* RLIMIT_RSS, UINT64_MAX for none: rsslim. Bytes. */
	uint32_t fd_size; /* Descriptor slots allocated: FDSize. */
	uint32_t reserved; /* Not used. [internal] */
} fastproc_limits;

/* I/O counters, of all threads together, as in /proc/PID/io. */
typedef struct fastproc_io {
	uint64_t rchar; /* Bytes that read(2) and the like returned. Bytes. [guarded] */
	uint64_t wchar; /* Bytes that write(2) and the like took. Bytes. [guarded] */
	uint64_t syscr; /* Read calls. [guarded] */
	uint64_t syscw; /* Write calls. [guarded] */
	uint64_t read_bytes; /* Bytes fetched from storage. Bytes. [guarded] */
	uint64_t write_bytes; /* Bytes sent to storage. Bytes. [guarded] */
	uint64_t cancelled_write_bytes; /* Bytes that were not written after all, because the file was truncated. Bytes. [guarded] */
} fastproc_io;

/* Times that threads waited for the kernel, by delay accounting (task->delays, signal->stats). Not known of a process that began while it was switched off: its default since Linux 5.14 (sysctl kernel.task_delayacct). */
typedef struct fastproc_delays {
	uint64_t blkio_delay_ns; /* For block I/O; before Linux 5.17 without that of swapping in. Nanoseconds. [guarded] [unknown] */
	uint64_t swapin_delay_ns; /* For pages that are swapped in. Nanoseconds. [guarded] [unknown] */
	uint64_t reclaim_delay_ns; /* For memory that it reclaimed itself (freepages_delay). Nanoseconds. [guarded] [unknown] */
	uint64_t thrashing_delay_ns; /* For pages of files that were dropped shortly before. Nanoseconds. [guarded] [unknown] */
	uint64_t compaction_delay_ns; /* For memory that it compacted itself, from Linux 5.17 on. Nanoseconds. [guarded] [unknown] */
} fastproc_delays;

/* Cgroup of the default hierarchy. */
typedef struct fastproc_cgroup {
	uint64_t id; /* kernfs_node.id, which is the inode number of its folder. [unknown] */
} fastproc_cgroup;

/* How the name of a process is known. Not meant to be read as it is: see Process::name. */
typedef struct fastproc_name_parts {
	uint32_t kind; /* FP_NAME_*: 0, comm is the name; 1, text is; 2, a workqueue worker, put together from the parts. [internal] */
	uint32_t worker_flags; /* FP_WORKER_*. [internal] */
	int32_t worker_id; /* worker->id. [internal] */
	int32_t pool_id; /* worker_pool->id. [internal] */
	int32_t pool_cpu; /* worker_pool->cpu, -1 for an unbound pool. [internal] */
	uint32_t reserved; /* Not used. [internal] */
	char text[64]; /* The full name, NUL terminated; or for a worker its description, and from byte 32 the queue it rescues. [internal] */
} fastproc_name_parts;

/* One process. Only the groups that identity.groups names hold anything. What is asked for most stands together. */
typedef struct fastproc_record {
	fastproc_identity identity; /* Who it is and what it is doing. */
	fastproc_cpu cpu; /* CPU time, faults, context switches. */
	fastproc_memory memory; /* Sizes of memory. All 0 for a process without memory of its own (a kernel thread, a zombie). */
	fastproc_users users; /* Users and groups. */
	fastproc_scheduling scheduling; /* Priority, policy, processor. */
	fastproc_name_parts name; /* Name; always present. */
	fastproc_memory_details memory_details; /* What else is known of its memory. All 0 for a process without memory of its own. */
	fastproc_layout layout; /* Addresses. */
	fastproc_credentials credentials; /* Capabilities, seccomp, umask, and how many supplementary groups there are. */
	fastproc_signals signals; /* Signal sets. */
	fastproc_namespaces namespaces; /* Pid namespaces. */
	fastproc_scheduling_details scheduling_details; /* What else is known of its scheduling. */
	fastproc_limits limits; /* Limits. */
	fastproc_io io; /* I/O counters. */
	fastproc_cgroup cgroup; /* Cgroup of the default hierarchy. */
	fastproc_delays delays; /* Delay accounting. */
} fastproc_record;

/* One thread, where threads are listed or cannot be folded on the spot. */
typedef struct fastproc_thread_record {
	uint64_t start_ns; /* Start time after boot. Nanoseconds. */
	uint64_t utime_ns; /* Time in user mode, scaled as the kernel does. Nanoseconds. */
	uint64_t stime_ns; /* Time in kernel mode, scaled as the kernel does. Nanoseconds. */
	uint64_t gtime_ns; /* Guest time. Nanoseconds. */
	uint64_t minflt; /* Page faults that needed no I/O. */
	uint64_t majflt; /* Page faults that needed I/O. */
	uint64_t nvcsw; /* Voluntary context switches. */
	uint64_t nivcsw; /* Involuntary context switches. */
	uint64_t sum_exec_ns; /* Precise run time; /proc does not tell. Nanoseconds. [unknown] */
	uint64_t run_delay_ns; /* Time that it waited for a CPU while it could run (sched_info.run_delay). Nanoseconds. [unknown] */
	uint64_t timeslices; /* How often it got a CPU (sched_info.pcount). [unknown] */
	uint64_t sampled_utime_ns; /* User time as sampled by ticks. Nanoseconds. [internal] */
	uint64_t sampled_stime_ns; /* System time as sampled by ticks. Nanoseconds. [internal] */
	uint64_t prev_utime_ns; /* User time that the kernel last showed. Nanoseconds. [internal] */
	uint64_t prev_stime_ns; /* System time that the kernel last showed. Nanoseconds. [internal] */
	fastproc_io io; /* I/O counters of this thread. */
	fastproc_delays delays; /* Delay accounting of this thread. */
	uint32_t tid; /* Thread id. */
	uint32_t tgid; /* Process that the thread belongs to. */
	uint32_t state_bits; /* Report bits of the state. */
	uint32_t flags; /* Kernel flags, PF_*. */
	int32_t priority; /* Kernel priority. */
	int32_t nice; /* Nice value. */
	uint32_t rt_priority; /* Real-time priority. */
	uint32_t policy; /* SCHED_*. */
	uint32_t processor; /* CPU that it last ran on. */
	uint32_t threads_state; /* Identity::threads_state of its process when it was read. [internal] */
	char comm[16]; /* Name of the thread, NUL padded. */
} fastproc_thread_record;

/* What a cgroup is. Always present. */
typedef struct fastproc_cgroup_identity {
	uint64_t id; /* The inode number of its directory (cgrp->kn->id). */
	uint64_t parent; /* Id of its parent; 0 for the root. */
	uint32_t groups; /* The groups that this record holds, as the bits of Fields. */
	uint32_t level; /* Levels below the root of the hierarchy. */
	uint32_t populated; /* 1 if it or a descendant has a process: populated of cgroup.events. */
	uint32_t frozen; /* 1 if it is frozen: frozen of cgroup.events. */
	uint32_t descendants; /* Living descendants: nr_descendants of cgroup.stat. */
	uint32_t dying_descendants; /* Removed descendants that the kernel still keeps: nr_dying_descendants. */
	uint32_t threaded; /* 1 if its type is threaded. */
	uint32_t stat_by_line; /* 1 if the values of memory.stat were read from the text, line by line. [internal] */
} fastproc_cgroup_identity;

/* CPU time, throttling and weight: cpu.stat, cpu.max, cpu.weight. */
typedef struct fastproc_cgroup_cpu {
	uint64_t usage_ns; /* CPU time of the cgroup and its descendants: usage_usec. Nanoseconds. */
	uint64_t user_ns; /* Time in user mode, scaled to the precise time as the kernel does. Nanoseconds. */
	uint64_t system_ns; /* Time in kernel mode, scaled likewise. Nanoseconds. */
	uint64_t nice_ns; /* Time of processes with a positive nice value: nice_usec. Nanoseconds. [unknown] */
	uint64_t forced_idle_ns; /* Time that core scheduling kept siblings idle: core_sched.force_idle_usec. Nanoseconds. [unknown] */
	uint64_t periods; /* Periods in which the limit of CPU time was enforced: nr_periods. [unknown] */
	uint64_t throttled; /* Periods in which the cgroup was throttled: nr_throttled. [unknown] */
	uint64_t throttled_ns; /* Time that it was throttled, of all CPUs together: throttled_usec. Nanoseconds. [unknown] */
	uint64_t bursts; /* Periods with a burst: nr_bursts. [unknown] */
	uint64_t burst_ns; /* Time used above the quota in bursts: burst_usec. Nanoseconds. [unknown] */
	uint64_t quota_ns; /* CPU time allowed in a period, or no limit: cpu.max. Nanoseconds. [unknown] */
	uint64_t period_ns; /* The period: cpu.max. Nanoseconds. [unknown] */
	uint64_t weight; /* Share of CPU time among siblings: cpu.weight. [unknown] */
	uint64_t sampled_utime_ns; /* User time as sampled by ticks, before scaling. Nanoseconds. [internal] */
	uint64_t sampled_stime_ns; /* System time as sampled by ticks, before scaling. Nanoseconds. [internal] */
	uint64_t prev_utime_ns; /* User time that the kernel last showed to anybody. Nanoseconds. [internal] */
	uint64_t prev_stime_ns; /* System time that the kernel last showed to anybody. Nanoseconds. [internal] */
} fastproc_cgroup_cpu;

/* Memory in use, limits and events: the files memory.* but for memory.stat. */
typedef struct fastproc_cgroup_memory {
	uint64_t current; /* Memory in use: memory.current. Bytes. [unknown] */
	uint64_t peak; /* The most that was ever in use: memory.peak. Bytes. [unknown] */
	uint64_t min; /* Memory that is never reclaimed: memory.min. Bytes. [unknown] */
	uint64_t low; /* Memory that is reclaimed last: memory.low. Bytes. [unknown] */
	uint64_t high; /* Above this, allocations are slowed down: memory.high. Bytes. [unknown] */
	uint64_t max; /* The limit: memory.max. Bytes. [unknown] */
	uint64_t swap_current; /* Swap in use: memory.swap.current. Bytes. [unknown] */
	uint64_t swap_peak; /* The most swap that was ever in use: memory.swap.peak. Bytes. [unknown] */
	uint64_t swap_high; /* Above this much swap, allocations are slowed down: memory.swap.high. Bytes. [unknown] */
	uint64_t swap_max; /* The limit of swap: memory.swap.max. Bytes. [unknown] */
	uint64_t events_low; /* Times that memory below low was reclaimed: low of memory.events. [unknown] */
	uint64_t events_high; /* Times that high was exceeded. [unknown] */
	uint64_t events_max; /* Times that use was about to exceed max. [unknown] */
	uint64_t events_oom; /* Times that the limit was reached and an allocation was about to fail. [unknown] */
	uint64_t oom_kills; /* Processes killed by an OOM killer: oom_kill. [unknown] */
	uint64_t oom_group_kills; /* Times that the whole cgroup was killed: oom_group_kill. [unknown] */
	uint64_t local_low; /* The same of the cgroup without its descendants: memory.events.local. [unknown] */
	uint64_t local_high; /* high of memory.events.local. [unknown] */
	uint64_t local_max; /* max of memory.events.local. [unknown] */
	uint64_t local_oom; /* oom of memory.events.local. [unknown] */
	uint64_t local_oom_kills; /* oom_kill of memory.events.local. [unknown] */
	uint64_t local_oom_group_kills; /* oom_group_kill of memory.events.local. [unknown] */
	uint64_t sock_throttled; /* Times that a socket's memory was held back: sock_throttled of memory.events. [unknown] */
	uint64_t local_sock_throttled; /* sock_throttled of memory.events.local. [unknown] */
	uint64_t swap_events_high; /* Times that swap exceeded swap_high: high of memory.swap.events. [unknown] */
	uint64_t swap_events_max; /* Times that swap was about to exceed swap_max. [unknown] */
	uint64_t swap_events_fail; /* Times that an allocation of swap failed. [unknown] */
	uint64_t oom_group; /* 1 if an OOM killer kills the whole cgroup: memory.oom.group. [unknown] */
} fastproc_cgroup_memory;

/* The lines of memory.stat, in the order and the units of whoever read them. Cgroup::memory_stat finds a line by its name. */
typedef struct fastproc_cgroup_memory_stat {
	uint64_t slots[96]; /* The stored values. [internal] */
} fastproc_cgroup_memory_stat;

/* Processes and threads: pids.current and its limit. */
typedef struct fastproc_cgroup_pids {
	uint64_t current; /* Processes and threads in the cgroup and its descendants: pids.current. */
	uint64_t max; /* The limit: pids.max. */
	uint64_t peak; /* The most that there ever were: pids.peak. [unknown] */
} fastproc_cgroup_pids;

/* I/O of all block devices together: the sums of the lines of io.stat. */
typedef struct fastproc_cgroup_io {
	uint64_t rbytes; /* Bytes read. Bytes. */
	uint64_t wbytes; /* Bytes written. Bytes. */
	uint64_t dbytes; /* Bytes discarded. Bytes. */
	uint64_t rios; /* Reads. */
	uint64_t wios; /* Writes. */
	uint64_t dios; /* Discards. */
	uint32_t devices_at; /* Where its devices begin. [internal] */
	uint32_t devices; /* How many it has. [internal] */
} fastproc_cgroup_io;

/* Time in which tasks waited for a resource: the files *.pressure. */
typedef struct fastproc_cgroup_pressure {
	uint64_t cpu_some_ns; /* Some task waited for a CPU. Nanoseconds. */
	uint64_t cpu_full_ns; /* All tasks waited for a CPU. Nanoseconds. */
	uint64_t memory_some_ns; /* Some task waited for memory. Nanoseconds. */
	uint64_t memory_full_ns; /* All tasks waited for memory. Nanoseconds. */
	uint64_t io_some_ns; /* Some task waited for I/O. Nanoseconds. */
	uint64_t io_full_ns; /* All tasks waited for I/O. Nanoseconds. */
	uint64_t torn; /* 1 if the kernel added to the totals meanwhile: the library reads the files. [internal] */
} fastproc_cgroup_pressure;

/* The averages of the files *.pressure, which the library reads only if this group is asked for. */
typedef struct fastproc_cgroup_pressure_averages {
	uint32_t averages[18]; /* Shares of the last 10, 60 and 300 seconds in hundredths of a percent, in the order of the times of pressure. */
} fastproc_cgroup_pressure_averages;

/* One cgroup. */
typedef struct fastproc_cgroup_record {
	fastproc_cgroup_identity identity; /* What it is. */
	fastproc_cgroup_cpu cpu; /* CPU time, throttling and weight. */
	fastproc_cgroup_memory memory; /* Memory in use, limits and events. */
	fastproc_cgroup_memory_stat memory_stat; /* The lines of memory.stat. */
	fastproc_cgroup_pids pids; /* Processes and threads. */
	fastproc_cgroup_io io; /* I/O. */
	fastproc_cgroup_pressure pressure; /* Time in which tasks waited. */
	fastproc_cgroup_pressure_averages pressure_averages; /* Averages of pressure. */
} fastproc_cgroup_record;

/* I/O of a cgroup with one block device: a line of io.stat. */
typedef struct fastproc_cgroup_device {
	uint32_t major; /* Major number of the device. */
	uint32_t minor; /* Minor number of the device. */
	uint64_t rbytes; /* Bytes read. Bytes. */
	uint64_t wbytes; /* Bytes written. Bytes. */
	uint64_t dbytes; /* Bytes discarded. Bytes. */
	uint64_t rios; /* Reads. */
	uint64_t wios; /* Writes. */
	uint64_t dios; /* Discards. */
} fastproc_cgroup_device;

/* The sizes of the structures that the program is compiled with. */
#define FASTPROC_SIZES \
	((uint64_t)sizeof(fastproc_record) | (uint64_t)sizeof(fastproc_thread_record) << 16 | \
	 (uint64_t)sizeof(fastproc_cgroup_record) << 32 | \
	 (uint64_t)(sizeof(fastproc_cgroup_device) + sizeof(fastproc_snapshot_info) + sizeof(fastproc_change) + \
		     sizeof(fastproc_file)) << 48)


/**
 * Success.
 */
#define FASTPROC_OK 0

/**
 * The value is unknown, or not shown to this reader. It is not zero.
 */
#define FASTPROC_UNKNOWN 1

/**
 * A pointer is NULL, a place does not exist, or another argument is invalid.
 */
#define FASTPROC_ERROR_ARGUMENT -1

/**
 * The handle has been closed.
 */
#define FASTPROC_ERROR_CLOSED -2

/**
 * The handle was opened before fork(2), in the parent.
 */
#define FASTPROC_ERROR_FORKED -3

/**
 * There is no snapshot, or it has not been compared.
 */
#define FASTPROC_ERROR_NO_SNAPSHOT -4

/**
 * The snapshot has nothing with this id.
 */
#define FASTPROC_ERROR_NO_PROCESS -5

/**
 * The handle was opened without the fields that this value belongs to.
 */
#define FASTPROC_ERROR_NOT_ASKED -6

/**
 * No source can be used, or it failed: fastproc_error() says why.
 */
#define FASTPROC_ERROR_SOURCE -7

/**
 * A defect of the library. The handle can only be closed.
 */
#define FASTPROC_ERROR_INTERNAL -8

/**
 * The program was compiled with the header of another version, and its structures have other sizes.
 */
#define FASTPROC_ERROR_SIZES -9

/**
 * Request command lines from the service. fastproc_text() reads the others from /proc.
 */
#define FASTPROC_CMDLINE 65536

/**
 * Request paths of programs from the service, for fastproc_text().
 */
#define FASTPROC_EXE 131072

/**
 * Name, as stat and status show it; for a kernel worker with its current work. Any bytes but NUL.
 */
#define FASTPROC_TEXT_NAME 0

/**
 * Command line: arguments, each followed by a NUL; no more than 128 KiB. Empty for a kernel thread or a zombie.
 */
#define FASTPROC_TEXT_CMDLINE 1

/**
 * Path of the program; it ends in " (deleted)" if the file was removed. [guarded]
 */
#define FASTPROC_TEXT_EXE 2

/**
 * Path of the cgroup of version 2; the root is "/". Of a process it is read from /proc; with FASTPROC_CGROUP among the
 * fields, once per cgroup.
 */
#define FASTPROC_TEXT_CGROUP 3

/**
 * The text of /proc/PID/stat, as the kernel would print it for this reader. [FASTPROC_THREE_FILES]
 */
#define FASTPROC_TEXT_STAT 4

/**
 * The text of /proc/PID/statm. [FASTPROC_THREE_FILES]
 */
#define FASTPROC_TEXT_STATM 5

/**
 * The text of /proc/PID/status. [FASTPROC_THREE_FILES]
 */
#define FASTPROC_TEXT_STATUS 6

/**
 * Name of an open file, as readlink(2) of /proc/PID/fd/N says it. [FASTPROC_FILES_PATHS]
 */
#define FASTPROC_TEXT_FILE_NAME 16

/**
 * What it is, as in "file" or "socket": the kinds of fastproc files.
 */
#define FASTPROC_TEXT_FILE_KIND 17

/**
 * What ss(8) calls the socket, as in "tcp". [FASTPROC_FILES_SOCKETS]
 */
#define FASTPROC_TEXT_SOCKET_NETID 18

/**
 * The state of the socket in the words of ss(8), as in "LISTEN". [FASTPROC_FILES_SOCKETS]
 */
#define FASTPROC_TEXT_SOCKET_STATE 19

/**
 * Its own address, as in "127.0.0.1:80"; the path or @name of a unix socket. [FASTPROC_FILES_SOCKETS]
 */
#define FASTPROC_TEXT_SOCKET_LOCAL 20

/**
 * The address of the other end. [FASTPROC_FILES_SOCKETS]
 */
#define FASTPROC_TEXT_SOCKET_PEER 21

/**
 * Every descriptor, with the current directory, the root directory and the program of every process.
 */
#define FASTPROC_FILES_FILES 1

/**
 * The addresses, states and queues of sockets; without FASTPROC_FILES_FILES, only sockets are listed.
 */
#define FASTPROC_FILES_SOCKETS 2

/**
 * Names of files.
 */
#define FASTPROC_FILES_PATHS 4

/**
 * Device, inode and size where stat(2) shows others than the kernel keeps; they are asked for file by file.
 */
#define FASTPROC_FILES_STAT 16

/**
 * In place of a descriptor: the current directory of the process.
 */
#define FASTPROC_FD_CWD 4294967293

/**
 * In place of a descriptor: its root directory.
 */
#define FASTPROC_FD_ROOT 4294967294

/**
 * In place of a descriptor: its program.
 */
#define FASTPROC_FD_PROGRAM 4294967295

/**
 * Supplementary groups, in the kernel's order; credentials.ngroups is their number. [FASTPROC_CREDENTIALS]
 */
#define FASTPROC_LIST_GROUPS 0

/**
 * The CPUs that the leading thread may run on: bit b of value n stands for CPU 64 n + b. [FASTPROC_SCHEDULING_DETAILS]
 */
#define FASTPROC_LIST_CPUS 1

/**
 * The memory nodes that it may allocate from, likewise. [FASTPROC_SCHEDULING_DETAILS]
 */
#define FASTPROC_LIST_NODES 2

/**
 * Ids in the pid namespaces below that of /proc, from the outermost one: of each the process id, the thread id of the
 * leading thread, the process group and the session; 0 if the namespace does not see it. namespaces.level is the number of
 * namespaces. [FASTPROC_NAMESPACES]
 */
#define FASTPROC_LIST_IDS 3

/**
 * A source of snapshots of processes, cgroups or open files, and the last one.
 */
typedef struct fastproc fastproc;

/**
 * A snapshot.
 */
typedef struct fastproc_snapshot_info {
    /**
     * Processes, cgroups or open files. Their places are 0 to count - 1: processes in the order of their ids, cgroups with
     * parents before their children, open files process after process.
     */
    size_t count;
    /**
     * Threads of all processes; 0 without FASTPROC_THREADS. Their places are 0 to threads - 1.
     */
    size_t threads;
    /**
     * Cgroups that were left out because their paths are too long: of more than 4,000 bytes, or 1,024 or 64 parts from a
     * service. What is below them is left out too, but not counted.
     */
    size_t left_out;
    /**
     * Time since boot when reading began, on the clock of start times. Nanoseconds.
     */
    uint64_t began_ns;
    /**
     * How long reading took; 0 for cgroups and open files. Nanoseconds.
     */
    uint64_t took_ns;
    /**
     * The source in use: one of the names that the function takes that opened the handle.
     */
    const char *source;
} fastproc_snapshot_info;

/**
 * An open file of a process. What is not known is FASTPROC_UNKNOWN_U64, FASTPROC_UNKNOWN_U32 or false.
 */
typedef struct fastproc_file {
    /**
     * Inode number, as stat(2) shows it. [FASTPROC_FILES_FILES]
     */
    uint64_t inode;
    /**
     * Size of a regular file. Bytes. [FASTPROC_FILES_FILES]
     */
    uint64_t size;
    /**
     * Where the next read or write begins. Bytes. [FASTPROC_FILES_FILES]
     */
    uint64_t position;
    /**
     * Process id.
     */
    uint32_t pid;
    /**
     * Number of the descriptor, or FASTPROC_FD_*.
     */
    uint32_t fd;
    /**
     * Effective user id of the process.
     */
    uint32_t uid;
    /**
     * Flags of open(2), with O_CLOEXEC of this descriptor. [FASTPROC_FILES_FILES]
     */
    uint32_t flags;
    /**
     * Device of its file system. [FASTPROC_FILES_FILES]
     */
    uint32_t device_major;
    /**
     * The same: which device of the driver. [FASTPROC_FILES_FILES]
     */
    uint32_t device_minor;
    /**
     * Port of its own address. [FASTPROC_FILES_SOCKETS]
     */
    uint32_t local_port;
    /**
     * Port of the other end. [FASTPROC_FILES_SOCKETS]
     */
    uint32_t peer_port;
    /**
     * Bytes that were not read yet; of a listening TCP socket, connections to be accepted. [FASTPROC_FILES_SOCKETS]
     */
    uint32_t receive_queue;
    /**
     * Bytes that were not sent or not acknowledged yet. [FASTPROC_FILES_SOCKETS]
     */
    uint32_t send_queue;
    /**
     * Inode number of the network namespace of the socket. [FASTPROC_FILES_SOCKETS]
     */
    uint32_t netns;
    /**
     * Whether it was opened to read. [FASTPROC_FILES_FILES]
     */
    bool reads;
    /**
     * Whether it was opened to write. [FASTPROC_FILES_FILES]
     */
    bool writes;
    /**
     * Whether its path was removed. [FASTPROC_FILES_PATHS]
     */
    bool deleted;
    /**
     * Whether the socket waits for connections. [FASTPROC_FILES_SOCKETS]
     */
    bool listens;
} fastproc_file;

/**
 * What a process or thread did between two snapshots. What is not known is FASTPROC_UNKNOWN_U64 or NaN.
 */
typedef struct fastproc_change {
    /**
     * CPU time used since the earlier snapshot, or since its start. Nanoseconds. [FASTPROC_CPU]
     */
    uint64_t cpu_ns;
    /**
     * CPU time used per time passed: 1.0 is one whole CPU. [FASTPROC_CPU]
     */
    double cpu_share;
    /**
     * The part of it in user mode. [FASTPROC_CPU]
     */
    double user_share;
    /**
     * The part of it in kernel mode. [FASTPROC_CPU]
     */
    double system_share;
    /**
     * Page faults that needed no I/O, per second. [FASTPROC_CPU]
     */
    double minflt_per_second;
    /**
     * Page faults that needed I/O, per second. [FASTPROC_CPU]
     */
    double majflt_per_second;
    /**
     * Bytes fetched from storage, per second. [FASTPROC_IO] [guarded]
     */
    double read_bytes_per_second;
    /**
     * Bytes sent to storage, per second. [FASTPROC_IO] [guarded]
     */
    double write_bytes_per_second;
    /**
     * Whether the earlier snapshot did not have it. Its shares and rates are then counted from its start.
     */
    bool born;
} fastproc_change;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, as in "0.1.0".
 */
const char *fastproc_version(void);

/**
 * The message of the last function in this thread that did not return FASTPROC_OK: what went wrong, and what to do.
 * Valid until the next such function.
 */
const char *fastproc_error(void);

/**
 * The field with this name, as in "memory-details" or "MEMORY_DETAILS", for programs that read names.
 */
int fastproc_field(const char *name, uint32_t *field);

/**
 * The letter of identity.state_bits of a process, or of state_bits of a thread, as in proc(5): R, S, D, T, t, X, Z, P or I.
 */
char fastproc_state(uint32_t state_bits);

/**
 * Opens a source of snapshots of all processes.
 *
 * fields: the contents of records, FASTPROC_* combined by |; 0 for ids, names and states, which are always present.
 * source: "service", "bpf", "bpf-iter" or "procfs"; NULL or "auto" for the first of them that works.
 * max_age_ns: how old a snapshot of the service may be, in nanoseconds; 0 for one that begins after the request.
 * sizes: FASTPROC_SIZES. A program that was compiled with the header of another version gets FASTPROC_ERROR_SIZES.
 *
 * *handle is NULL if it fails.
 */
int fastproc_open(struct fastproc **handle, uint32_t fields, const char *source, uint64_t max_age_ns, uint64_t sizes);

/**
 * Opens a source of snapshots of all cgroups of version 2 that this process can reach.
 *
 * fields: the contents of records, FASTPROC_CGROUPS_* combined by |; 0 for ids and states, which are always present.
 * source: "bpf", "service" or "files"; NULL or "auto" for the first of them that works.
 * max_age_ns: how old CPU time, memory.stat and I/O may be, in nanoseconds; 0: they are updated for every snapshot.
 * sizes: FASTPROC_SIZES.
 *
 * *handle is NULL if it fails.
 */
int fastproc_open_cgroups(struct fastproc **handle,
                          uint32_t fields,
                          const char *source,
                          uint64_t max_age_ns,
                          uint64_t sizes);

/**
 * Opens a source of snapshots of the open files of all processes, or of one.
 *
 * fields: what is read, FASTPROC_FILES_* combined by |.
 * pid: the only process to read; 0 for all.
 * source: "bpf", "service" or "procfs"; NULL or "auto" for the first of them that works, for one process "procfs".
 * sizes: FASTPROC_SIZES.
 *
 * *handle is NULL if it fails.
 */
int fastproc_open_files(struct fastproc **handle, uint32_t fields, uint32_t pid, const char *source, uint64_t sizes);

/**
 * Closes a handle, and invalidates all its texts. NULL does nothing.
 */
int fastproc_close(struct fastproc *handle);

/**
 * Makes a snapshot of all processes, cgroups or open files. The places of the last snapshot, its texts and its differences become
 * invalid.
 *
 * After a failure there is no snapshot; the next call may succeed.
 */
int fastproc_snapshot(struct fastproc *handle,
                      struct fastproc_snapshot_info *snapshot);

/**
 * The place of the process, or of the cgroup, with this id.
 */
int fastproc_find(struct fastproc *handle, uint64_t id, size_t *index);

/**
 * Copies the record of a process.
 */
int fastproc_get(struct fastproc *handle, size_t index, fastproc_record *record);

/**
 * Copies the record of a thread. [FASTPROC_THREADS]
 */
int fastproc_get_thread(struct fastproc *handle, size_t index, fastproc_thread_record *record);

/**
 * Copies the record of a cgroup.
 */
int fastproc_get_cgroup(struct fastproc *handle, size_t index, fastproc_cgroup_record *record);

/**
 * Copies I/O of a cgroup with one block device: line n of io.stat, from 0 to io.devices - 1. [FASTPROC_CGROUPS_IO]
 */
int fastproc_get_device(struct fastproc *handle, size_t index, size_t n, fastproc_cgroup_device *device);

/**
 * Copies what is known of an open file.
 */
int fastproc_get_file(struct fastproc *handle, size_t index, struct fastproc_file *file);

/**
 * The value of a line of memory.stat, as in "anon": bytes, or events. [FASTPROC_CGROUPS_MEMORY_STAT]
 */
int fastproc_memory_stat(struct fastproc *handle, size_t index, const char *line, uint64_t *value);

/**
 * A text of a process (FASTPROC_TEXT_*), the path of a cgroup (FASTPROC_TEXT_CGROUP), or a text of an open file
 * (FASTPROC_TEXT_FILE_*, FASTPROC_TEXT_SOCKET_*).
 *
 * It ends in a NUL, which *length does not count; length may be NULL. It is valid until this function is called again for
 * the same kind of text, the next snapshot is made or the handle is closed.
 */
int fastproc_text(struct fastproc *handle,
                  size_t index,
                  uint32_t kind,
                  const char **text,
                  size_t *length);

/**
 * Value n, from 0, of a list of a process (FASTPROC_LIST_*). FASTPROC_ERROR_ARGUMENT after the last one.
 */
int fastproc_list(struct fastproc *handle, size_t index, uint32_t list, size_t n, uint64_t *value);

/**
 * Compares the snapshot of processes with the one that was compared before, and keeps it for the next time.
 *
 * Call it after fastproc_snapshot(). *gone is the number of processes that the earlier snapshot had and this one lacks.
 * The first time there is nothing to compare with, and the next three functions return FASTPROC_UNKNOWN.
 */
int fastproc_difference(struct fastproc *handle, size_t *gone);

/**
 * What a process did since the earlier snapshot.
 */
int fastproc_get_change(struct fastproc *handle, size_t index, struct fastproc_change *change);

/**
 * What a thread did since the earlier snapshot. [FASTPROC_THREADS]
 */
int fastproc_get_thread_change(struct fastproc *handle, size_t index, struct fastproc_change *change);

/**
 * The process id and the start time after boot, in nanoseconds, of a process that is gone: number n, from 0, in the order
 * of the ids. start_ns may be NULL.
 */
int fastproc_get_gone(struct fastproc *handle,
                      size_t n,
                      uint32_t *pid,
                      uint64_t *start_ns);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FASTPROC_H */
