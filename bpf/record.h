/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records: what the kernel side writes and readers borrow, in place. This is their one description: the library's
 * build makes its structures, their documentation and the table `fastproc::schema` from this file.
 *
 * So it is a part of C: structures of u8 to u64, s32, s64, fp_ns, fp_bytes, char[N] and of each other; constants. The
 * comment before an item, or behind it on its line, is its documentation. Every structure starts on eight bytes and
 * has no padding. A member of fp_record is there if the group of the same name was asked for.
 *
 * Times are nanoseconds and sizes are bytes, whatever unit the kernel counts in.
 *
 * Behind its name each member has a tag: who may see it. What the service takes away from records is made of the tags. A
 * member without one is shown to nobody: it is not public in Rust and Go, has no accessor in C, and the service clears it.
 */
#ifndef FASTPROC_RECORD_H
#define FASTPROC_RECORD_H

#include "types.h"

/* The tags. */
#define FP_PUBLIC     /* everybody */
#define FP_TICKS      /* everybody, rounded down to clock ticks: a time that was spent */
#define FP_BOOT_TICKS /* everybody, rounded down to clock ticks of the time since boot */
#define FP_TRACERS    /* who could trace the process, by the kernel's ptrace access check; to others it is 0 */

/* Field groups, as bits: asked for in settings.groups, and filled where identity.groups says so. */
#define FP_CPU 0x001
#define FP_MEMORY 0x002
#define FP_LAYOUT 0x004
#define FP_CREDENTIALS 0x008
#define FP_SIGNALS 0x010
#define FP_NAMESPACES 0x020
#define FP_SCHEDULING 0x040
#define FP_LIMITS 0x080
#define FP_IO 0x100
#define FP_CGROUP 0x200
#define FP_THREADS 0x400
#define FP_MEMORY_DETAILS 0x800
#define FP_USERS 0x1000
#define FP_SCHEDULING_DETAILS 0x2000

/* identity.torn: what was replaced while it was being read. The record is read again from /proc. */
#define FP_TORN_MM 0x01
#define FP_TORN_FILES 0x02
#define FP_TORN_FS 0x04
#define FP_TORN_TTY 0x08
#define FP_TORN_SIGHAND 0x10
#define FP_TORN_POOL 0x20
#define FP_TORN_STACK 0x40    /* could not be unwound for its wait channel */
#define FP_TORN_RELEASED 0x80 /* its parent has waited for it meanwhile: /proc does not show it any more */
#define FP_TORN_GROUPS 0x100
#define FP_TORN_THREADS 0x200 /* one ended while they were added up */
#define FP_TORN_NAME 0x400
#define FP_TORN_NAMESPACES 0x800
#define FP_TORN_CREDENTIALS 0x1000

/* name.kind */
#define FP_NAME_COMM 0	 /* comm is the whole name */
#define FP_NAME_FULL 1	 /* text holds the whole name */
#define FP_NAME_WORKER 2 /* a workqueue worker: the name is put together from the parts */

/* name.worker_flags */
#define FP_WORKER_POOL 1    /* has a pool, so pool_id and pool_cpu are known */
#define FP_WORKER_BUSY 2    /* current_work is set: '+' before the description, else '-' */
#define FP_WORKER_HIGH 4    /* pool nice below zero: the suffix 'H' */
#define FP_WORKER_RESCUER 8 /* text + 32 holds the name of the workqueue it rescues */

/* exit.known: what is known of it, and may be shown */
#define FP_EXIT_FINAL 1	 /* the values are those with which it left /proc */
#define FP_EXIT_PPID 2	 /* ppid */
#define FP_EXIT_STATUS 4 /* status */
#define FP_EXIT_IO 8	 /* io */
#define FP_EXIT_CUT 16	 /* the command line is longer than what is here */

/* Highest number of bytes in a process name (`proc_task_name()` formats into 64 bytes, the last of them a NUL). */
#define FP_NAME_SIZE 64

/* Who a process is and what it is doing. Always present. */
struct fp_identity {
	/* Start time after boot (`task->start_boottime`); `starttime` of `/proc/PID/stat`. */
	fp_ns start_ns  FP_BOOT_TICKS;
	u32 tgid        FP_PUBLIC;     /* Process id, in the initial pid namespace (`task->tgid`). */
	u32 ppid        FP_PUBLIC;     /* Parent's process id (`real_parent->tgid`). */
	u32 pgrp        FP_PUBLIC;     /* Process group. */
	u32 session     FP_PUBLIC;     /* Session. */
	u32 tracer_pid  FP_PUBLIC;     /* Process that traces this one by ptrace(2), or 0. */
	u32 flags       FP_PUBLIC;     /* Kernel flags, `PF_*` (`task->flags`). */
	s32 tty_nr      FP_PUBLIC;     /* Controlling terminal as a device number (`new_encode_dev()`), or 0. */
	s32 tpgid       FP_PUBLIC;     /* Foreground process group of that terminal, or -1. */
	u32 num_threads FP_PUBLIC;     /* Threads (`signal->nr_threads`). */
	s32 exit_signal FP_PUBLIC;     /* Signal sent to the parent on exit (`task->exit_signal`). */
	/* Exit status as waitpid(2) shows it. See `Process::exit_code` for whether the reader may know. */
	s32 exit_code FP_TRACERS;
	/*
	 * Report bits of the state; only the highest counts, as in `__task_state_index()`: 0 R, 1 S, 2 D, 4 T, 8 t, 16 X
	 * and so on. See `Identity::state`.
	 */
	u32 state_bits FP_PUBLIC;
	u32 groups     FP_PUBLIC; /* The groups that this record holds, as the bits of `Fields`. */
	/* What was replaced while it was being read; such a record is never shown, but read again from `/proc`. */
	u32 torn          FP_PUBLIC;
	u32 seen_threads  FP_PUBLIC; /* Threads whose times are folded in, the leader included. */
	u32 threads_state FP_PUBLIC; /* Another after a thread has begun or ended, where the source compares that. */
	/* 1 if the process has one thread and that is not running: the kernel's answer to "is there a wait channel". */
	u8 wchan        FP_TRACERS;
	u8 has_mm       FP_PUBLIC;  /* 1 if the process has memory of its own; kernel threads and zombies have none. */
	u8 core_dumping FP_PUBLIC;  /* 1 while the process writes a core dump. */
	/* 1 if the kernel hid from this reader what only ptrace access shows (a record parsed from `/proc`). */
	u8 masked     FP_PUBLIC;
	u32 on_cpu    FP_TRACERS; /* 1 while the leading thread is on a CPU (`task->on_cpu`); 0 in a record parsed from `/proc`. */
	char comm[16] FP_PUBLIC;  /* Command name, NUL padded (`task->comm`). */
};

/* CPU time and faults, of all threads together, dead ones included, as the kernel folds them. */
struct fp_cpu {
	/* Time in user mode, scaled to the precise run time as the kernel does (`cputime_adjust()`), by the library. */
	fp_ns utime_ns         FP_TICKS;
	fp_ns stime_ns         FP_TICKS;  /* Time in kernel mode, scaled likewise. */
	fp_ns gtime_ns         FP_TICKS;  /* Guest time: time spent running a virtual CPU; also part of `utime_ns`. */
	fp_ns cutime_ns        FP_TICKS;  /* User time of children that were waited for. */
	fp_ns cstime_ns        FP_TICKS;  /* System time of children that were waited for. */
	fp_ns cgtime_ns        FP_TICKS;  /* Guest time of children that were waited for. */
	u64 minflt             FP_PUBLIC; /* Page faults that needed no I/O. */
	u64 majflt             FP_PUBLIC; /* Page faults that needed I/O. */
	u64 cminflt            FP_PUBLIC; /* Minor faults of children that were waited for. */
	u64 cmajflt            FP_PUBLIC; /* Major faults of children that were waited for. */
	u64 nvcsw              FP_PUBLIC; /* Voluntary context switches of the leading thread, as in `/proc/PID/status`. */
	u64 nivcsw             FP_PUBLIC; /* Involuntary context switches of the leading thread. */
	fp_ns sum_exec_ns      FP_PUBLIC; /* Precise run time (`se.sum_exec_runtime`); 0 in a record parsed from `/proc`. */
	fp_ns sampled_utime_ns FP_TICKS;  /* User time as sampled by ticks, before scaling. */
	fp_ns sampled_stime_ns FP_TICKS;  /* System time as sampled by ticks, before scaling. */
	fp_ns prev_utime_ns    FP_TICKS;  /* User time that the kernel last showed to anybody (`signal->prev_cputime`). */
	fp_ns prev_stime_ns    FP_TICKS;  /* System time that the kernel last showed to anybody. */
};

/* Memory, as in `/proc/PID/statm` and the `Vm` lines of `/proc/PID/status`. All in bytes. */
struct fp_memory {
	fp_bytes vsize FP_PUBLIC; /* Virtual size (`mm->total_vm`): `VmSize`, `vsize` of stat, `size` of statm. */
	/* Resident set as stat shows it: without what the CPUs have not yet folded in, so up to some MiB off. */
	fp_bytes rss_approx FP_PUBLIC;
	fp_bytes rss_anon   FP_PUBLIC;  /* Resident anonymous memory: `RssAnon`. */
	fp_bytes rss_file   FP_PUBLIC;  /* Resident file mappings: `RssFile`. */
	fp_bytes rss_shmem  FP_PUBLIC;  /* Resident shared memory (tmpfs, System V, shared anonymous): `RssShmem`. */
	fp_bytes swap       FP_PUBLIC;  /* Swapped out: `VmSwap`. */
	fp_bytes peak_vsize FP_PUBLIC;  /* Largest virtual size so far: `VmPeak`. */
	fp_bytes peak_rss   FP_PUBLIC;  /* Largest resident set so far: `VmHWM`. */
	fp_bytes locked     FP_PUBLIC;  /* Locked by mlock(2): `VmLck`. */
	fp_bytes pinned     FP_PUBLIC;  /* Pinned, so that it cannot be moved: `VmPin`. */
	fp_bytes data       FP_PUBLIC;  /* Data: `VmData`. */
	fp_bytes stack      FP_PUBLIC;  /* Stack: `VmStk`. */
	fp_bytes exe        FP_PUBLIC;  /* Text, no more than there is executable memory: `VmExe`. */
	fp_bytes lib        FP_PUBLIC;  /* The rest of the executable memory: `VmLib`. */
	fp_bytes text       FP_PUBLIC;  /* Text, from first to last page: `trs` of statm. */
	u64 mm_users        FP_TRACERS; /* Users of the address space: 1 if nobody shares it (`mm->mm_users`); 0 where that is not known. */
};

/*
 * What else is known of the memory of a process, and a `top` does not show. It lies far from the rest in `mm_struct`:
 * each costs a line of the cache.
 */
struct fp_memory_details {
	fp_bytes page_tables FP_PUBLIC;  /* Page tables: `VmPTE`. */
	fp_bytes hugetlb     FP_PUBLIC;  /* Huge pages of hugetlbfs: `HugetlbPages`. */
	u64 mm_flags         FP_TRACERS; /* `mm->flags`; without memory, 1 if the user may still trace the process. */
	u64 untag_mask       FP_PUBLIC;  /* Mask that removes an address's tag (`mm->context.untag_mask`, x86): `untag_mask`. */
};

/* Where things lie in the address space. The kernel shows these only to readers with ptrace access. */
struct fp_layout {
	u64 start_code  FP_TRACERS; /* Where the text starts. */
	u64 end_code    FP_TRACERS; /* Where the text ends. */
	u64 start_stack FP_TRACERS; /* Where the stack starts. */
	u64 kstkesp     FP_TRACERS; /* Stack pointer of a dying or dumping process, else 0. */
	u64 kstkeip     FP_TRACERS; /* Instruction pointer of a dying or dumping process, else 0. */
	u64 start_data  FP_TRACERS; /* Where the data starts. */
	u64 end_data    FP_TRACERS; /* Where the data ends. */
	u64 start_brk   FP_TRACERS; /* Where the heap starts. */
	u64 arg_start   FP_TRACERS; /* Where the arguments start. */
	u64 arg_end     FP_TRACERS; /* Where the arguments end. */
	u64 env_start   FP_TRACERS; /* Where the environment starts. */
	u64 env_end     FP_TRACERS; /* Where the environment ends. */
};

/* Users and groups, of the objective credentials (`task->real_cred`). */
struct fp_users {
	u32 uid   FP_PUBLIC; /* Real user. */
	u32 euid  FP_PUBLIC; /* Effective user. */
	u32 suid  FP_PUBLIC; /* Saved user. */
	u32 fsuid FP_PUBLIC; /* User for access to files. */
	u32 gid   FP_PUBLIC; /* Real group. */
	u32 egid  FP_PUBLIC; /* Effective group. */
	u32 sgid  FP_PUBLIC; /* Saved group. */
	u32 fsgid FP_PUBLIC; /* Group for access to files. */
};

/* What else the objective credentials say, and what else bounds what the process may do. */
struct fp_credentials {
	u64 cap_inheritable FP_PUBLIC;  /* Inheritable capabilities: `CapInh`. */
	u64 cap_permitted   FP_PUBLIC;  /* Permitted capabilities: `CapPrm`. */
	u64 cap_effective   FP_PUBLIC;  /* Effective capabilities: `CapEff`. */
	u64 cap_bounding    FP_PUBLIC;  /* Bounding set of capabilities: `CapBnd`. */
	u64 cap_ambient     FP_PUBLIC;  /* Ambient capabilities: `CapAmb`. */
	u64 atomic_flags    FP_PUBLIC;  /* `task->atomic_flags`: bit 0 `no_new_privs`, bits 3 to 7 speculation control. */
	u32 user_ns         FP_TRACERS; /* Inode number of the user namespace; 0 if not known. */
	u32 seccomp_mode    FP_PUBLIC;  /* 0 off, 1 strict, 2 filter. */
	u32 seccomp_filters FP_PUBLIC;  /* Number of seccomp filters. */
	s32 umask           FP_PUBLIC;  /* File mode creation mask; -1 if the process has none any more. */
	u32 ngroups         FP_PUBLIC;  /* Number of supplementary groups. See `Process::supplementary_groups`. */
	u32 groups_at       FP_PUBLIC;  /* Where they stand in the pool, two a word. */
	/*
	 * `ARCH_SHSTK_*` bits of the leading thread (`task->thread.features`, x86 with user shadow stacks, else 0): bit 0
	 * it has a shadow stack, bit 1 it may write to it. `x86_Thread_features`.
	 */
	u64 thread_features        FP_PUBLIC;
	u64 thread_features_locked FP_PUBLIC; /* Those that are locked: `x86_Thread_features_locked`. */
};

/* Signal sets; bit n-1 stands for signal n. */
struct fp_signals {
	u64 pending        FP_PUBLIC; /* Pending for the leading thread: `SigPnd`. */
	u64 shared_pending FP_PUBLIC; /* Pending for the process: `ShdPnd`. */
	u64 blocked        FP_PUBLIC; /* Blocked by the leading thread: `SigBlk`. */
	u64 ignored        FP_PUBLIC; /* Ignored: `SigIgn`. */
	u64 caught         FP_PUBLIC; /* Caught: `SigCgt`. */
	/* Signals queued by the process's user, over all its processes: `SigQ`, the first number. */
	u64 queued      FP_PUBLIC;
	u64 queue_limit FP_PUBLIC; /* Their limit (`RLIMIT_SIGPENDING`): `SigQ`, the second number. */
	/*
	 * Context switches of the process, or `u64::MAX`: it ran, has other threads, or shares its memory. While they and
	 * `run_ns` are the same it has not run, so `ignored` and `caught` are the same.
	 */
	u64 switches FP_PUBLIC;
	/* Its precise run time then: a thread that executes a program takes the leader's place, with switches of its own. */
	fp_ns run_ns FP_PUBLIC;
};

/* Pid namespaces. */
struct fp_namespaces {
	u32 level FP_PUBLIC; /* How many pid namespaces below the initial one the process is. */
	/* Where its ids in them stand in the pool, two words for each: tgid, pid; pgrp, session. See `Process::nested_ids`. */
	u32 ids_at FP_PUBLIC;
};

/* Scheduling, of the leading thread. */
struct fp_scheduling {
	s32 priority    FP_PUBLIC; /* Kernel priority as stat shows it: 20 plus nice, or minus one minus the real-time priority. */
	s32 nice        FP_PUBLIC; /* Nice value, -20 to 19. */
	u32 rt_priority FP_PUBLIC; /* Real-time priority, 1 to 99, or 0. */
	u32 policy      FP_PUBLIC; /* `SCHED_*`. */
	u32 processor   FP_PUBLIC; /* CPU that it last ran on. */
	u32 reserved    FP_PUBLIC; /* Not used. */
};

/* What a `top` does not show of it. */
struct fp_scheduling_details {
	u64 cpus_allowed FP_PUBLIC; /* CPUs 0 to 63 of the allowed ones. See `Process::cpus_allowed` for all. */
	u64 mems_allowed FP_PUBLIC; /* Memory nodes 0 to 63 of the allowed ones. See `Process::mems_allowed`. */
	/* Time waited for block I/O (`delays->blkio_delay`; counts only with delay accounting on). */
	fp_ns blkio_ns FP_TICKS;
	u32 cpus_at    FP_PUBLIC; /* Where all of the first stand in the pool, on a machine with more than 64. */
	u32 mems_at    FP_PUBLIC; /* Where all of the second stand in the pool, on a machine with more than 64. */
	u32 ngid       FP_PUBLIC; /* NUMA group, or 0. */
	u32 reserved   FP_PUBLIC; /* Not used. */
};

/* Limits that `/proc/PID/stat` and `status` show. */
struct fp_limits {
	fp_bytes rss_limit FP_PUBLIC; /* `RLIMIT_RSS`, `u64::MAX` for none: `rsslim`. */
	u32 fd_size        FP_PUBLIC; /* Descriptor slots allocated: `FDSize`. */
	u32 reserved       FP_PUBLIC; /* Not used. */
};

/* I/O counters, of all threads together, as in `/proc/PID/io`. */
struct fp_io {
	fp_bytes rchar       FP_TRACERS; /* Bytes that read(2) and the like returned. */
	fp_bytes wchar       FP_TRACERS; /* Bytes that write(2) and the like took. */
	u64 syscr            FP_TRACERS; /* Read calls. */
	u64 syscw            FP_TRACERS; /* Write calls. */
	fp_bytes read_bytes  FP_TRACERS; /* Bytes fetched from storage. */
	fp_bytes write_bytes FP_TRACERS; /* Bytes sent to storage. */
	/* Bytes that were not written after all, because the file was truncated. */
	fp_bytes cancelled_write_bytes FP_TRACERS;
};

/* Cgroup of the default hierarchy. */
struct fp_cgroup {
	u64 id FP_PUBLIC; /* `kernfs_node.id`, which is the inode number of its folder. */
};

/* How the name of a process is known. Not meant to be read as it is: see `Process::name`. */
struct fp_name_parts {
	u32 kind         FP_PUBLIC; /* `FP_NAME_*`: 0, `comm` is the name; 1, `text` is; 2, a workqueue worker, put together from the parts. */
	u32 worker_flags FP_PUBLIC; /* `FP_WORKER_*`. */
	s32 worker_id    FP_PUBLIC; /* `worker->id`. */
	s32 pool_id      FP_PUBLIC; /* `worker_pool->id`. */
	s32 pool_cpu     FP_PUBLIC; /* `worker_pool->cpu`, -1 for an unbound pool. */
	u32 reserved     FP_PUBLIC; /* Not used. */
	/* The full name, NUL terminated; or for a worker its description, and from byte 32 the queue it rescues. */
	char text[FP_NAME_SIZE] FP_PUBLIC;
};

/* One process. Only the groups that `identity.groups` names hold anything. What is asked for most stands together. */
struct fp_record {
	struct fp_identity identity;			 /* Who it is and what it is doing. */
	struct fp_cpu cpu;				 /* CPU time and faults. */
	struct fp_memory memory;			 /* Sizes of memory. */
	struct fp_users users;				 /* Users and groups. */
	struct fp_scheduling scheduling;		 /* Scheduling. */
	struct fp_name_parts name;			 /* Name; always present. */
	struct fp_memory_details memory_details;	 /* What a `top` does not show of its memory. */
	struct fp_layout layout;			 /* Addresses. */
	struct fp_credentials credentials;		 /* Capabilities and more. */
	struct fp_signals signals;			 /* Signal sets. */
	struct fp_namespaces namespaces;		 /* Pid namespaces. */
	struct fp_scheduling_details scheduling_details; /* What a `top` does not show of its scheduling. */
	struct fp_limits limits;			 /* Limits. */
	struct fp_io io;				 /* I/O counters. */
	struct fp_cgroup cgroup;			 /* Cgroup. */
};

/* One thread, where threads are listed or cannot be folded on the spot. */
struct fp_thread_record {
	fp_ns start_ns         FP_BOOT_TICKS; /* Start time after boot. */
	fp_ns utime_ns         FP_TICKS;      /* Time in user mode, scaled as the kernel does. */
	fp_ns stime_ns         FP_TICKS;      /* Time in kernel mode, scaled as the kernel does. */
	fp_ns gtime_ns         FP_TICKS;      /* Guest time. */
	u64 minflt             FP_PUBLIC;     /* Page faults that needed no I/O. */
	u64 majflt             FP_PUBLIC;     /* Page faults that needed I/O. */
	u64 nvcsw              FP_PUBLIC;     /* Voluntary context switches. */
	u64 nivcsw             FP_PUBLIC;     /* Involuntary context switches. */
	fp_ns sum_exec_ns      FP_PUBLIC;     /* Precise run time; 0 in a record parsed from `/proc`. */
	fp_ns sampled_utime_ns FP_TICKS;      /* User time as sampled by ticks. */
	fp_ns sampled_stime_ns FP_TICKS;      /* System time as sampled by ticks. */
	fp_ns prev_utime_ns    FP_TICKS;      /* User time that the kernel last showed. */
	fp_ns prev_stime_ns    FP_TICKS;      /* System time that the kernel last showed. */
	struct fp_io io;	/* I/O counters of this thread. */
	u32 tid           FP_PUBLIC; /* Thread id. */
	u32 tgid          FP_PUBLIC; /* Process that the thread belongs to. */
	u32 state_bits    FP_PUBLIC; /* Report bits of the state. See `State::from_bits`. */
	u32 flags         FP_PUBLIC; /* Kernel flags, `PF_*`. */
	s32 priority      FP_PUBLIC; /* Kernel priority. */
	s32 nice          FP_PUBLIC; /* Nice value. */
	u32 rt_priority   FP_PUBLIC; /* Real-time priority. */
	u32 policy        FP_PUBLIC; /* `SCHED_*`. */
	u32 processor     FP_PUBLIC; /* CPU that it last ran on. */
	u32 threads_state FP_PUBLIC; /* `Identity::threads_state` of its process when it was read. */
	char comm[16]     FP_PUBLIC; /* Name of the thread, NUL padded. */
};

/* A process that has ended, with its final values, as the service hands it to its readers: made of what exits.h describes. */
struct fp_exit_record {
	u64 number        FP_PUBLIC;     /* Exits are counted, those that were lost too. */
	fp_ns start_ns    FP_BOOT_TICKS; /* Start time after boot. */
	fp_ns end_ns      FP_BOOT_TICKS; /* When its last thread ended, after boot; 0 if not known. */
	fp_ns utime_ns    FP_TICKS;      /* Time in user mode, scaled as the kernel does. */
	fp_ns stime_ns    FP_TICKS;      /* Time in kernel mode, scaled as the kernel does. */
	fp_ns gtime_ns    FP_TICKS;      /* Guest time. */
	fp_ns sum_exec_ns FP_PUBLIC;     /* Precise run time. */
	fp_ns cutime_ns   FP_TICKS;      /* User time of children that it waited for. */
	fp_ns cstime_ns   FP_TICKS;      /* System time of those. */
	fp_ns cgtime_ns   FP_TICKS;      /* Guest time of those. */
	u64 cminflt       FP_PUBLIC;     /* Page faults without I/O of those. */
	u64 cmajflt       FP_PUBLIC;     /* Page faults with I/O of those. */
	u64 minflt        FP_PUBLIC;     /* Page faults that needed no I/O. */
	u64 majflt        FP_PUBLIC;     /* Page faults that needed I/O. */
	u64 nvcsw         FP_PUBLIC;     /* Voluntary context switches, of all its threads. */
	u64 nivcsw        FP_PUBLIC;     /* Involuntary context switches, of all its threads. */
	fp_bytes peak_rss FP_PUBLIC;     /* The most memory it ever had resident. */
	u64 cgroup_id     FP_PUBLIC;     /* Id of its cgroup in the default hierarchy; 0 for none. */
	struct fp_io io;   /* I/O counters, if known. */
	u32 known      FP_PUBLIC;  /* `FP_EXIT_*`. */
	u32 pid        FP_PUBLIC;  /* Process id that it had. */
	u32 ppid       FP_PUBLIC;  /* Process id of its parent when it ended, if known. */
	u32 flags      FP_PUBLIC;  /* Kernel flags, `PF_*`. */
	u32 uid        FP_PUBLIC;  /* Real user id. */
	u32 euid       FP_PUBLIC;  /* Effective user id. */
	u32 gid        FP_PUBLIC;  /* Real group id. */
	u32 egid       FP_PUBLIC;  /* Effective group id. */
	s32 status     FP_TRACERS; /* Exit status as waitpid(2) shows it, if known. */
	u32 line_at    FP_PUBLIC;  /* First byte of its command line among those of all. */
	u32 line_bytes FP_PUBLIC;  /* Bytes of it; 0 if it is not known. */
	u32 reserved   FP_PUBLIC;  /* 0. */
	char comm[16]  FP_PUBLIC;  /* Name, NUL padded. */
};

#endif
