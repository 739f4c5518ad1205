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
 */
#ifndef FASTPROC_RECORD_H
#define FASTPROC_RECORD_H

#include "types.h"

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
	fp_ns start_ns;
	u32 tgid;	 /* Process id, in the initial pid namespace (`task->tgid`). */
	u32 ppid;	 /* Parent's process id (`real_parent->tgid`). */
	u32 pgrp;	 /* Process group. */
	u32 session;	 /* Session. */
	u32 tracer_pid;	 /* Process that traces this one by ptrace(2), or 0. */
	u32 flags;	 /* Kernel flags, `PF_*` (`task->flags`). */
	s32 tty_nr;	 /* Controlling terminal as a device number (`new_encode_dev()`), or 0. */
	s32 tpgid;	 /* Foreground process group of that terminal, or -1. */
	u32 num_threads; /* Threads (`signal->nr_threads`). */
	s32 exit_signal; /* Signal sent to the parent on exit (`task->exit_signal`). */
	/* Exit status as waitpid(2) shows it. See `Process::exit_code` for whether the reader may know. */
	s32 exit_code;
	/*
	 * Report bits of the state; only the highest counts, as in `__task_state_index()`: 0 R, 1 S, 2 D, 4 T, 8 t, 16 X
	 * and so on. See `Identity::state`.
	 */
	u32 state_bits;
	u32 groups;	 /* The groups that this record holds, as the bits of `Fields`. */
	/* What was replaced while it was being read; such a record is never shown, but read again from `/proc`. */
	u32 torn;
	u32 seen_threads; /* Threads whose times are folded in, the leader included. */
	u32 threads_state; /* Another after a thread has begun or ended, where the source compares that. */
	/* 1 if the process has one thread and that is not running: the kernel's answer to "is there a wait channel". */
	u8 wchan;
	u8 has_mm;	 /* 1 if the process has memory of its own; kernel threads and zombies have none. */
	u8 core_dumping; /* 1 while the process writes a core dump. */
	/* 1 if the kernel hid from this reader what only ptrace access shows (a record parsed from `/proc`). */
	u8 masked;
	u32 on_cpu;	 /* 1 while the leading thread is on a CPU (`task->on_cpu`); 0 in a record parsed from `/proc`. */
	char comm[16];	 /* Command name, NUL padded (`task->comm`). */
};

/* CPU time and faults, of all threads together, dead ones included, as the kernel folds them. */
struct fp_cpu {
	/* Time in user mode, scaled to the precise run time as the kernel does (`cputime_adjust()`), by the library. */
	fp_ns utime_ns;
	fp_ns stime_ns;	 /* Time in kernel mode, scaled likewise. */
	fp_ns gtime_ns;	 /* Guest time: time spent running a virtual CPU; also part of `utime_ns`. */
	fp_ns cutime_ns; /* User time of children that were waited for. */
	fp_ns cstime_ns; /* System time of children that were waited for. */
	fp_ns cgtime_ns; /* Guest time of children that were waited for. */
	u64 minflt;	 /* Page faults that needed no I/O. */
	u64 majflt;	 /* Page faults that needed I/O. */
	u64 cminflt;	 /* Minor faults of children that were waited for. */
	u64 cmajflt;	 /* Major faults of children that were waited for. */
	u64 nvcsw;	 /* Voluntary context switches of the leading thread, as in `/proc/PID/status`. */
	u64 nivcsw;	 /* Involuntary context switches of the leading thread. */
	fp_ns sum_exec_ns;	/* Precise run time (`se.sum_exec_runtime`); 0 in a record parsed from `/proc`. */
	fp_ns sampled_utime_ns; /* User time as sampled by ticks, before scaling. */
	fp_ns sampled_stime_ns; /* System time as sampled by ticks, before scaling. */
	fp_ns prev_utime_ns; /* User time that the kernel last showed to anybody (`signal->prev_cputime`). */
	fp_ns prev_stime_ns; /* System time that the kernel last showed to anybody. */
};

/* Memory, as in `/proc/PID/statm` and the `Vm` lines of `/proc/PID/status`. All in bytes. */
struct fp_memory {
	fp_bytes vsize; /* Virtual size (`mm->total_vm`): `VmSize`, `vsize` of stat, `size` of statm. */
	/* Resident set as stat shows it: without what the CPUs have not yet folded in, so up to some MiB off. */
	fp_bytes rss_approx;
	fp_bytes rss_anon;   /* Resident anonymous memory: `RssAnon`. */
	fp_bytes rss_file;   /* Resident file mappings: `RssFile`. */
	fp_bytes rss_shmem;  /* Resident shared memory (tmpfs, System V, shared anonymous): `RssShmem`. */
	fp_bytes swap;	     /* Swapped out: `VmSwap`. */
	fp_bytes peak_vsize; /* Largest virtual size so far: `VmPeak`. */
	fp_bytes peak_rss;   /* Largest resident set so far: `VmHWM`. */
	fp_bytes locked;     /* Locked by mlock(2): `VmLck`. */
	fp_bytes pinned;     /* Pinned, so that it cannot be moved: `VmPin`. */
	fp_bytes data;	     /* Data: `VmData`. */
	fp_bytes stack;	     /* Stack: `VmStk`. */
	fp_bytes exe;	     /* Text, no more than there is executable memory: `VmExe`. */
	fp_bytes lib;	     /* The rest of the executable memory: `VmLib`. */
	fp_bytes text;	     /* Text, from first to last page: `trs` of statm. */
	u64 mm_users; /* Users of the address space: 1 if nobody shares it (`mm->mm_users`); 0 where that is not known. */
};

/*
 * What else is known of the memory of a process, and a `top` does not show. It lies far from the rest in `mm_struct`:
 * each costs a line of the cache.
 */
struct fp_memory_details {
	fp_bytes page_tables; /* Page tables: `VmPTE`. */
	fp_bytes hugetlb;     /* Huge pages of hugetlbfs: `HugetlbPages`. */
	u64 mm_flags;	      /* `mm->flags`; without memory, 1 if the user may still trace the process. */
	u64 untag_mask;	/* Mask that removes an address's tag (`mm->context.untag_mask`, x86): `untag_mask`. */
};

/* Where things lie in the address space. The kernel shows these only to readers with ptrace access. */
struct fp_layout {
	u64 start_code;	 /* Where the text starts. */
	u64 end_code;	 /* Where the text ends. */
	u64 start_stack; /* Where the stack starts. */
	u64 kstkesp;	 /* Stack pointer of a dying or dumping process, else 0. */
	u64 kstkeip;	 /* Instruction pointer of a dying or dumping process, else 0. */
	u64 start_data;	 /* Where the data starts. */
	u64 end_data;	 /* Where the data ends. */
	u64 start_brk;	 /* Where the heap starts. */
	u64 arg_start;	 /* Where the arguments start. */
	u64 arg_end;	 /* Where the arguments end. */
	u64 env_start;	 /* Where the environment starts. */
	u64 env_end;	 /* Where the environment ends. */
};

/* Users and groups, of the objective credentials (`task->real_cred`). */
struct fp_users {
	u32 uid;   /* Real user. */
	u32 euid;  /* Effective user. */
	u32 suid;  /* Saved user. */
	u32 fsuid; /* User for access to files. */
	u32 gid;   /* Real group. */
	u32 egid;  /* Effective group. */
	u32 sgid;  /* Saved group. */
	u32 fsgid; /* Group for access to files. */
};

/* What else the objective credentials say, and what else bounds what the process may do. */
struct fp_credentials {
	u64 cap_inheritable; /* Inheritable capabilities: `CapInh`. */
	u64 cap_permitted;   /* Permitted capabilities: `CapPrm`. */
	u64 cap_effective;   /* Effective capabilities: `CapEff`. */
	u64 cap_bounding;    /* Bounding set of capabilities: `CapBnd`. */
	u64 cap_ambient;     /* Ambient capabilities: `CapAmb`. */
	u64 atomic_flags;    /* `task->atomic_flags`: bit 0 `no_new_privs`, bits 3 to 7 speculation control. */
	u32 user_ns;	     /* Inode number of the user namespace; 0 if not known. */
	u32 seccomp_mode;    /* 0 off, 1 strict, 2 filter. */
	u32 seccomp_filters; /* Number of seccomp filters. */
	s32 umask;	     /* File mode creation mask; -1 if the process has none any more. */
	u32 ngroups;	     /* Number of supplementary groups. See `Process::supplementary_groups`. */
	u32 groups_at;	     /* Where they stand in the pool, two a word. */
	/*
	 * `ARCH_SHSTK_*` bits of the leading thread (`task->thread.features`, x86 with user shadow stacks, else 0): bit 0
	 * it has a shadow stack, bit 1 it may write to it. `x86_Thread_features`.
	 */
	u64 thread_features;
	u64 thread_features_locked; /* Those that are locked: `x86_Thread_features_locked`. */
};

/* Signal sets; bit n-1 stands for signal n. */
struct fp_signals {
	u64 pending;	    /* Pending for the leading thread: `SigPnd`. */
	u64 shared_pending; /* Pending for the process: `ShdPnd`. */
	u64 blocked;	    /* Blocked by the leading thread: `SigBlk`. */
	u64 ignored;	    /* Ignored: `SigIgn`. */
	u64 caught;	    /* Caught: `SigCgt`. */
	/* Signals queued by the process's user, over all its processes: `SigQ`, the first number. */
	u64 queued;
	u64 queue_limit; /* Their limit (`RLIMIT_SIGPENDING`): `SigQ`, the second number. */
	/*
	 * Context switches of the process, or `u64::MAX`: it ran, has other threads, or shares its memory. While they and
	 * `run_ns` are the same it has not run, so `ignored` and `caught` are the same.
	 */
	u64 switches;
	/* Its precise run time then: a thread that executes a program takes the leader's place, with switches of its own. */
	fp_ns run_ns;
};

/* Pid namespaces. */
struct fp_namespaces {
	u32 level; /* How many pid namespaces below the initial one the process is. */
	/* Where its ids in them stand in the pool, two words for each: tgid, pid; pgrp, session. See `Process::nested_ids`. */
	u32 ids_at;
};

/* Scheduling, of the leading thread. */
struct fp_scheduling {
	s32 priority;	 /* Kernel priority as stat shows it: 20 plus nice, or minus one minus the real-time priority. */
	s32 nice;	 /* Nice value, -20 to 19. */
	u32 rt_priority; /* Real-time priority, 1 to 99, or 0. */
	u32 policy;	 /* `SCHED_*`. */
	u32 processor;	 /* CPU that it last ran on. */
	u32 reserved;	 /* Not used. */
};

/* What a `top` does not show of it. */
struct fp_scheduling_details {
	u64 cpus_allowed; /* CPUs 0 to 63 of the allowed ones. See `Process::cpus_allowed` for all. */
	u64 mems_allowed; /* Memory nodes 0 to 63 of the allowed ones. See `Process::mems_allowed`. */
	/* Time waited for block I/O (`delays->blkio_delay`; counts only with delay accounting on). */
	fp_ns blkio_ns;
	u32 cpus_at;  /* Where all of the first stand in the pool, on a machine with more than 64. */
	u32 mems_at;  /* Where all of the second stand in the pool, on a machine with more than 64. */
	u32 ngid;     /* NUMA group, or 0. */
	u32 reserved; /* Not used. */
};

/* Limits that `/proc/PID/stat` and `status` show. */
struct fp_limits {
	fp_bytes rss_limit; /* `RLIMIT_RSS`, `u64::MAX` for none: `rsslim`. */
	u32 fd_size;	    /* Descriptor slots allocated: `FDSize`. */
	u32 reserved;	    /* Not used. */
};

/* I/O counters, of all threads together, as in `/proc/PID/io`. */
struct fp_io {
	fp_bytes rchar;	      /* Bytes that read(2) and the like returned. */
	fp_bytes wchar;	      /* Bytes that write(2) and the like took. */
	u64 syscr;	      /* Read calls. */
	u64 syscw;	      /* Write calls. */
	fp_bytes read_bytes;  /* Bytes fetched from storage. */
	fp_bytes write_bytes; /* Bytes sent to storage. */
	/* Bytes that were not written after all, because the file was truncated. */
	fp_bytes cancelled_write_bytes;
};

/* Cgroup of the default hierarchy. */
struct fp_cgroup {
	u64 id; /* `kernfs_node.id`, which is the inode number of its folder. */
};

/* How the name of a process is known. Not meant to be read as it is: see `Process::name`. */
struct fp_name_parts {
	u32 kind;	  /* `FP_NAME_*`: 0, `comm` is the name; 1, `text` is; 2, a workqueue worker, put together from the parts. */
	u32 worker_flags; /* `FP_WORKER_*`. */
	s32 worker_id;	  /* `worker->id`. */
	s32 pool_id;	  /* `worker_pool->id`. */
	s32 pool_cpu;	  /* `worker_pool->cpu`, -1 for an unbound pool. */
	u32 reserved;	  /* Not used. */
	/* The full name, NUL terminated; or for a worker its description, and from byte 32 the queue it rescues. */
	char text[FP_NAME_SIZE];
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
	fp_ns start_ns;		/* Start time after boot. */
	fp_ns utime_ns;		/* Time in user mode, scaled as the kernel does. */
	fp_ns stime_ns;		/* Time in kernel mode, scaled as the kernel does. */
	fp_ns gtime_ns;		/* Guest time. */
	u64 minflt;		/* Page faults that needed no I/O. */
	u64 majflt;		/* Page faults that needed I/O. */
	u64 nvcsw;		/* Voluntary context switches. */
	u64 nivcsw;		/* Involuntary context switches. */
	fp_ns sum_exec_ns;	/* Precise run time; 0 in a record parsed from `/proc`. */
	fp_ns sampled_utime_ns; /* User time as sampled by ticks. */
	fp_ns sampled_stime_ns; /* System time as sampled by ticks. */
	fp_ns prev_utime_ns;	/* User time that the kernel last showed. */
	fp_ns prev_stime_ns;	/* System time that the kernel last showed. */
	struct fp_io io;	/* I/O counters of this thread. */
	u32 tid;		/* Thread id. */
	u32 tgid;		/* Process that the thread belongs to. */
	u32 state_bits;		/* Report bits of the state. See `State::from_bits`. */
	u32 flags;		/* Kernel flags, `PF_*`. */
	s32 priority;		/* Kernel priority. */
	s32 nice;		/* Nice value. */
	u32 rt_priority;	/* Real-time priority. */
	u32 policy;		/* `SCHED_*`. */
	u32 processor;		/* CPU that it last ran on. */
	u32 threads_state;	/* `Identity::threads_state` of its process when it was read. */
	char comm[16];		/* Name of the thread, NUL padded. */
};

/* A process that has ended, with its final values, as the service hands it to its readers: made of what exits.h describes. */
struct fp_exit_record {
	u64 number;	   /* Exits are counted, those that were lost too. */
	fp_ns start_ns;	   /* Start time after boot. */
	fp_ns end_ns;	   /* When its last thread ended, after boot; 0 if not known. */
	fp_ns utime_ns;	   /* Time in user mode, scaled as the kernel does. */
	fp_ns stime_ns;	   /* Time in kernel mode, scaled as the kernel does. */
	fp_ns gtime_ns;	   /* Guest time. */
	fp_ns sum_exec_ns; /* Precise run time. */
	fp_ns cutime_ns;   /* User time of children that it waited for. */
	fp_ns cstime_ns;   /* System time of those. */
	fp_ns cgtime_ns;   /* Guest time of those. */
	u64 cminflt;	   /* Page faults without I/O of those. */
	u64 cmajflt;	   /* Page faults with I/O of those. */
	u64 minflt;	   /* Page faults that needed no I/O. */
	u64 majflt;	   /* Page faults that needed I/O. */
	u64 nvcsw;	   /* Voluntary context switches, of all its threads. */
	u64 nivcsw;	   /* Involuntary context switches, of all its threads. */
	fp_bytes peak_rss; /* The most memory it ever had resident. */
	u64 cgroup_id;	   /* Id of its cgroup in the default hierarchy; 0 for none. */
	struct fp_io io;   /* I/O counters, if known. */
	u32 known;	   /* `FP_EXIT_*`. */
	u32 pid;	   /* Process id that it had. */
	u32 ppid;	   /* Process id of its parent when it ended, if known. */
	u32 flags;	   /* Kernel flags, `PF_*`. */
	u32 uid;	   /* Real user id. */
	u32 euid;	   /* Effective user id. */
	u32 gid;	   /* Real group id. */
	u32 egid;	   /* Effective group id. */
	s32 status;	   /* Exit status as waitpid(2) shows it, if known. */
	u32 line_at;	   /* First byte of its command line among those of all. */
	u32 line_bytes;	   /* Bytes of it; 0 if it is not known. */
	u32 reserved;	   /* 0. */
	char comm[16];	   /* Name, NUL padded. */
};

#endif
