/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records: what the kernel side writes and readers borrow, in place. This is their one description: the library's
 * build makes its structures, their documentation and the table `fastproc::schema` from this file.
 *
 * So it is a part of C: structures of u8 to u64, s32, s64, fp_ns, fp_bytes, char[N] and of each other; constants. The
 * comment before an item, or behind it on its line, is its documentation. Every structure starts on eight bytes and
 * has no padding.
 *
 * Times are nanoseconds and sizes are bytes, whatever unit the kernel counts in.
 *
 * Behind its name each member has tags, and everything that has to know of all members is made from them: the groups, the
 * accessors of Rust and Go, what the service copies and hides, docs/dev/fields.md. A member that lacks a tag ends the build.
 *
 * - Who may see it: FP_PUBLIC, FP_TICKS, FP_BOOT_TICKS, FP_TRACERS or FP_NOBODY.
 * - In a group, how it comes from threads: FP_PROCESS, FP_LEADER or FP_SUM.
 * - FP_UNKNOWN(value), if it can be unknown in a group that is there: then this is its value. A member that is added to a group
 *   needs one, else older records (of a recording, of another version's service) lack the whole group.
 * - FP_INNER, if it says how a record is put together.
 *
 * A structure in fp_record has FP_ALWAYS or FP_GROUP.
 */
#ifndef FASTPROC_RECORD_H
#define FASTPROC_RECORD_H

#include "types.h"

/* Who may see it. */
#define FP_PUBLIC     /* everybody */
#define FP_TICKS      /* everybody, rounded down to clock ticks: a time that was spent */
#define FP_BOOT_TICKS /* everybody, rounded down to clock ticks of the time since boot */
#define FP_TRACERS    /* who could trace the process, by the kernel's ptrace access check; to others it is unknown, or 0 */
#define FP_NOBODY     /* nobody: it is not public in Rust and Go, and the service clears it */

/* How it comes from threads. */
#define FP_PROCESS /* the kernel keeps one for the process, or for all its threads together */
#define FP_LEADER  /* that of the leading thread */
#define FP_SUM     /* what ended threads have left, and that of each living thread */

/* What else is to be known of it. */
#define FP_UNKNOWN(value) /* this value says that it is not known */
#define FP_INNER	  /* how a record is put together, not what it says */

/* When a structure of fp_record holds anything. */
#define FP_ALWAYS /* in every record */
#define FP_GROUP  /* if the group of its name was asked for */

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
#define FP_DELAYS 0x4000

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

/* identity.on_cpu: the source does not tell */
#define FP_ON_CPU_UNKNOWN 2

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
	/*
	 * Start time after boot (`task->start_boottime`); `starttime` of `/proc/PID/stat`. Exact, or on a whole tick of 10 ms
	 * if text or the service has rounded it: see `is_same_start()` of the library for Rust.
	 */
	fp_ns start_ns    FP_BOOT_TICKS FP_LEADER;
	u32 tgid          FP_PUBLIC FP_PROCESS;                                        /* Process id, in the pid namespace of `/proc` (`task->tgid`). */
	u32 ppid          FP_PUBLIC FP_PROCESS;                                        /* Parent's process id (`real_parent->tgid`). */
	u32 pgrp          FP_PUBLIC FP_PROCESS;                                        /* Process group. */
	u32 session       FP_PUBLIC FP_PROCESS;                                        /* Session. */
	u32 tracer_pid    FP_PUBLIC FP_PROCESS;                                        /* Process that traces this one by ptrace(2), or 0. */
	u32 flags         FP_PUBLIC FP_LEADER;                                         /* Kernel flags, `PF_*` (`task->flags`). */
	s32 tty_nr        FP_PUBLIC FP_PROCESS;                                        /* Controlling terminal as a device number (`new_encode_dev()`), or 0. */
	s32 tpgid         FP_PUBLIC FP_PROCESS;                                        /* Foreground process group of that terminal, or -1. */
	u32 num_threads   FP_PUBLIC FP_PROCESS;                                        /* Threads (`signal->nr_threads`). */
	s32 exit_signal   FP_PUBLIC FP_LEADER;                                         /* Signal sent to the parent on exit (`task->exit_signal`). */
	/* Exit status as waitpid(2) shows it. See `Process::exit_code` for whether the reader may know. */
	s32 exit_code     FP_TRACERS FP_PROCESS;
	/*
	 * Report bits of the state; only the highest counts, as in `__task_state_index()`: 0 R, 1 S, 2 D, 4 T, 8 t, 16 X
	 * and so on. See `Identity::state`.
	 */
	u32 state_bits    FP_PUBLIC FP_LEADER FP_INNER;
	u32 groups        FP_PUBLIC FP_PROCESS FP_INNER;                               /* The groups that this record holds, as the bits of `Fields`. */
	/* What was replaced while it was being read; a torn record is never shown, but read again from `/proc`. */
	u32 torn          FP_PUBLIC FP_PROCESS FP_INNER;
	u32 seen_threads  FP_PUBLIC FP_PROCESS;                                        /* Threads whose times are folded in, the leader included. */
	u32 threads_state FP_PUBLIC FP_PROCESS;                                        /* Another after a thread has begun or ended, where the source compares that. */
	/* 1 if the process has one thread and that is not running: the kernel's answer to "is there a wait channel". */
	u8 wchan          FP_TRACERS FP_LEADER;
	u8 has_mm         FP_PUBLIC FP_PROCESS;                                        /* 1 if the process has memory of its own; kernel threads and zombies have none. */
	u8 core_dumping   FP_PUBLIC FP_PROCESS;                                        /* 1 while the process writes a core dump. */
	/* 1 if the kernel hid from this reader what only ptrace access shows (a record parsed from `/proc`). */
	u8 masked         FP_PUBLIC FP_PROCESS FP_INNER;
	u32 on_cpu        FP_TRACERS FP_LEADER FP_UNKNOWN(FP_ON_CPU_UNKNOWN) FP_INNER; /* 1 while the leading thread is on a CPU (`task->on_cpu`). */
	char comm[16]     FP_PUBLIC FP_LEADER;                                         /* Command name, NUL padded (`task->comm`). */
};

/* CPU time and faults, of all threads together, dead ones included, as the kernel folds them. */
struct fp_cpu {
	/* Time in user mode, scaled to the precise run time as the kernel does (`cputime_adjust()`), by the library. */
	fp_ns utime_ns         FP_TICKS FP_PROCESS;
	fp_ns stime_ns         FP_TICKS FP_PROCESS;            /* Time in kernel mode, scaled likewise. */
	fp_ns gtime_ns         FP_TICKS FP_SUM;                /* Guest time: time spent running a virtual CPU; also part of `utime_ns`. */
	fp_ns cutime_ns        FP_TICKS FP_PROCESS;            /* User time of children that were waited for. */
	fp_ns cstime_ns        FP_TICKS FP_PROCESS;            /* System time of children that were waited for. */
	fp_ns cgtime_ns        FP_TICKS FP_PROCESS;            /* Guest time of children that were waited for. */
	u64 minflt             FP_PUBLIC FP_SUM;               /* Page faults that needed no I/O. */
	u64 majflt             FP_PUBLIC FP_SUM;               /* Page faults that needed I/O. */
	u64 cminflt            FP_PUBLIC FP_PROCESS;           /* Minor faults of children that were waited for. */
	u64 cmajflt            FP_PUBLIC FP_PROCESS;           /* Major faults of children that were waited for. */
	u64 nvcsw              FP_PUBLIC FP_LEADER;            /* Voluntary context switches of the leading thread, as in `/proc/PID/status`. */
	u64 nivcsw             FP_PUBLIC FP_LEADER;            /* Involuntary context switches of the leading thread. */
	fp_ns sum_exec_ns      FP_PUBLIC FP_SUM FP_UNKNOWN(0); /* Precise run time (`se.sum_exec_runtime`); `/proc` does not tell. */
	/*
	 * Time that threads waited for a CPU while they could run (`sched_info.run_delay`): the second number of schedstat. The time of
	 * exited threads is included where the kernel keeps it (`signal->stats`: `CONFIG_TASKSTATS` and `CONFIG_TASK_DELAY_ACCT`) and the
	 * source can read it; `/proc` shows living threads only.
	 */
	fp_ns run_delay_ns     FP_PUBLIC FP_SUM FP_UNKNOWN(-1);
	/* How often a thread got a CPU (`sched_info.pcount`): the third number of schedstat. Exited threads: as above. */
	u64 timeslices         FP_PUBLIC FP_SUM FP_UNKNOWN(-1);
	fp_ns sampled_utime_ns FP_TICKS FP_SUM FP_INNER;       /* User time as sampled by ticks, before scaling. */
	fp_ns sampled_stime_ns FP_TICKS FP_SUM FP_INNER;       /* System time as sampled by ticks, before scaling. */
	fp_ns prev_utime_ns    FP_TICKS FP_PROCESS FP_INNER;   /* User time that the kernel last showed to anybody (`signal->prev_cputime`). */
	fp_ns prev_stime_ns    FP_TICKS FP_PROCESS FP_INNER;   /* System time that the kernel last showed to anybody. */
};

/* Memory, as in `/proc/PID/statm` and the `Vm` lines of `/proc/PID/status`. All in bytes. */
struct fp_memory {
	fp_bytes vsize      FP_PUBLIC FP_PROCESS;                         /* Virtual size (`mm->total_vm`): `VmSize`, `vsize` of stat, `size` of statm. */
	/* Resident set as stat shows it: without what the CPUs have not yet folded in, so up to some MiB off. */
	fp_bytes rss_approx FP_PUBLIC FP_PROCESS;
	fp_bytes rss_anon   FP_PUBLIC FP_PROCESS;                         /* Resident anonymous memory: `RssAnon`. */
	fp_bytes rss_file   FP_PUBLIC FP_PROCESS;                         /* Resident file mappings: `RssFile`. */
	fp_bytes rss_shmem  FP_PUBLIC FP_PROCESS;                         /* Resident shared memory (tmpfs, System V, shared anonymous): `RssShmem`. */
	fp_bytes swap       FP_PUBLIC FP_PROCESS;                         /* Swapped out: `VmSwap`. */
	fp_bytes peak_vsize FP_PUBLIC FP_PROCESS;                         /* Largest virtual size so far: `VmPeak`. */
	fp_bytes peak_rss   FP_PUBLIC FP_PROCESS;                         /* Largest resident set so far: `VmHWM`. */
	fp_bytes locked     FP_PUBLIC FP_PROCESS;                         /* Locked by mlock(2): `VmLck`. */
	fp_bytes pinned     FP_PUBLIC FP_PROCESS;                         /* Pinned, so that it cannot be moved: `VmPin`. */
	fp_bytes data       FP_PUBLIC FP_PROCESS;                         /* Data: `VmData`. */
	fp_bytes stack      FP_PUBLIC FP_PROCESS;                         /* Stack: `VmStk`. */
	fp_bytes exe        FP_PUBLIC FP_PROCESS;                         /* Text, no more than there is executable memory: `VmExe`. */
	fp_bytes lib        FP_PUBLIC FP_PROCESS;                         /* The rest of the executable memory: `VmLib`. */
	fp_bytes text       FP_PUBLIC FP_PROCESS;                         /* Text, from first to last page: `trs` of statm. */
	u64 mm_users        FP_TRACERS FP_PROCESS FP_UNKNOWN(0) FP_INNER; /* Users of the address space: 1 if nobody shares it (`mm->mm_users`). */
};

/*
 * What else is known of the memory of a process, and a `top` does not show. It lies far from the rest in `mm_struct`:
 * each costs a line of the cache.
 */
struct fp_memory_details {
	fp_bytes page_tables FP_PUBLIC FP_PROCESS;  /* Page tables: `VmPTE`. */
	fp_bytes hugetlb     FP_PUBLIC FP_PROCESS;  /* Huge pages of hugetlbfs: `HugetlbPages`. */
	u64 mm_flags         FP_TRACERS FP_PROCESS; /* `mm->flags`; without memory, 1 if the user may still trace the process. */
	u64 untag_mask       FP_PUBLIC FP_PROCESS;  /* Mask that removes an address's tag (`mm->context.untag_mask`, x86): `untag_mask`. */
};

/* Where things lie in the address space. The kernel shows these only to readers with ptrace access. */
struct fp_layout {
	u64 start_code  FP_TRACERS FP_PROCESS; /* Where the text starts. */
	u64 end_code    FP_TRACERS FP_PROCESS; /* Where the text ends. */
	u64 start_stack FP_TRACERS FP_PROCESS; /* Where the stack starts. */
	u64 kstkesp     FP_TRACERS FP_LEADER;  /* Stack pointer of a dying or dumping process, else 0. */
	u64 kstkeip     FP_TRACERS FP_LEADER;  /* Instruction pointer of a dying or dumping process, else 0. */
	u64 start_data  FP_TRACERS FP_PROCESS; /* Where the data starts. */
	u64 end_data    FP_TRACERS FP_PROCESS; /* Where the data ends. */
	u64 start_brk   FP_TRACERS FP_PROCESS; /* Where the heap starts. */
	u64 arg_start   FP_TRACERS FP_PROCESS; /* Where the arguments start. */
	u64 arg_end     FP_TRACERS FP_PROCESS; /* Where the arguments end. */
	u64 env_start   FP_TRACERS FP_PROCESS; /* Where the environment starts. */
	u64 env_end     FP_TRACERS FP_PROCESS; /* Where the environment ends. */
};

/* Users and groups, of the objective credentials (`task->real_cred`). */
struct fp_users {
	u32 uid   FP_PUBLIC FP_LEADER; /* Real user. */
	u32 euid  FP_PUBLIC FP_LEADER; /* Effective user. */
	u32 suid  FP_PUBLIC FP_LEADER; /* Saved user. */
	u32 fsuid FP_PUBLIC FP_LEADER; /* User for access to files. */
	u32 gid   FP_PUBLIC FP_LEADER; /* Real group. */
	u32 egid  FP_PUBLIC FP_LEADER; /* Effective group. */
	u32 sgid  FP_PUBLIC FP_LEADER; /* Saved group. */
	u32 fsgid FP_PUBLIC FP_LEADER; /* Group for access to files. */
};

/* What else the objective credentials say, and what else bounds what the process may do. */
struct fp_credentials {
	u64 cap_inheritable        FP_PUBLIC FP_LEADER;                /* Inheritable capabilities: `CapInh`. */
	u64 cap_permitted          FP_PUBLIC FP_LEADER;                /* Permitted capabilities: `CapPrm`. */
	u64 cap_effective          FP_PUBLIC FP_LEADER;                /* Effective capabilities: `CapEff`. */
	u64 cap_bounding           FP_PUBLIC FP_LEADER;                /* Bounding set of capabilities: `CapBnd`. */
	u64 cap_ambient            FP_PUBLIC FP_LEADER;                /* Ambient capabilities: `CapAmb`. */
	u64 atomic_flags           FP_PUBLIC FP_LEADER;                /* `task->atomic_flags`: bit 0 `no_new_privs`, bits 3 to 7 speculation control. */
	u32 user_ns                FP_TRACERS FP_LEADER FP_UNKNOWN(0); /* Inode number of the user namespace. */
	u32 seccomp_mode           FP_PUBLIC FP_LEADER;                /* 0 off, 1 strict, 2 filter. */
	u32 seccomp_filters        FP_PUBLIC FP_LEADER;                /* Number of seccomp filters. */
	s32 umask                  FP_PUBLIC FP_LEADER FP_UNKNOWN(-1); /* File mode creation mask; a process that ends has none any more. */
	u32 ngroups                FP_PUBLIC FP_LEADER;                /* Number of supplementary groups. See `Process::supplementary_groups`. */
	u32 groups_at              FP_PUBLIC FP_LEADER FP_INNER;       /* Where they stand in the pool, two a word. */
	/*
	 * `ARCH_SHSTK_*` bits of the leading thread (`task->thread.features`, x86 with user shadow stacks, else 0): bit 0
	 * it has a shadow stack, bit 1 it may write to it. `x86_Thread_features`.
	 */
	u64 thread_features        FP_PUBLIC FP_LEADER;
	u64 thread_features_locked FP_PUBLIC FP_LEADER;                /* Those that are locked: `x86_Thread_features_locked`. */
};

/* Signal sets; bit n-1 stands for signal n. */
struct fp_signals {
	u64 pending        FP_PUBLIC FP_LEADER;  /* Pending for the leading thread: `SigPnd`. */
	u64 shared_pending FP_PUBLIC FP_PROCESS; /* Pending for the process: `ShdPnd`. */
	u64 blocked        FP_PUBLIC FP_LEADER;  /* Blocked by the leading thread: `SigBlk`. */
	u64 ignored        FP_PUBLIC FP_PROCESS; /* Ignored: `SigIgn`. */
	u64 caught         FP_PUBLIC FP_PROCESS; /* Caught: `SigCgt`. */
	/* Signals queued by the process's user, over all its processes: `SigQ`, the first number. */
	u64 queued         FP_PUBLIC FP_PROCESS;
	u64 queue_limit    FP_PUBLIC FP_PROCESS; /* Their limit (`RLIMIT_SIGPENDING`): `SigQ`, the second number. */
	/*
	 * Context switches of the process, or `u64::MAX`: it ran, has other threads, or shares its memory. While they and
	 * `run_ns` are the same it has not run, so `ignored` and `caught` are the same.
	 */
	u64 switches       FP_PUBLIC FP_PROCESS FP_INNER;
	/* Its precise run time then: a thread that executes a program takes the leader's place, with switches of its own. */
	fp_ns run_ns       FP_PUBLIC FP_PROCESS FP_INNER;
};

/* Pid namespaces. */
struct fp_namespaces {
	u32 level  FP_PUBLIC FP_PROCESS; /* How many pid namespaces the process is below that of `/proc`. */
	/* Where its ids in them stand in the pool, two words for each: tgid, pid; pgrp, session. See `Process::nested_ids`. */
	u32 ids_at FP_PUBLIC FP_PROCESS FP_INNER;
};

/* Scheduling, of the leading thread. */
struct fp_scheduling {
	s32 priority    FP_PUBLIC FP_LEADER;          /* Kernel priority as stat shows it: 20 plus nice, or minus one minus the real-time priority. */
	s32 nice        FP_PUBLIC FP_LEADER;          /* Nice value, -20 to 19. */
	u32 rt_priority FP_PUBLIC FP_LEADER;          /* Real-time priority, 1 to 99, or 0. */
	u32 policy      FP_PUBLIC FP_LEADER;          /* `SCHED_*`. */
	u32 processor   FP_PUBLIC FP_LEADER;          /* CPU that it last ran on. */
	u32 reserved    FP_PUBLIC FP_LEADER FP_INNER; /* Not used. */
};

/* What a `top` does not show of it. */
struct fp_scheduling_details {
	u64 cpus_allowed FP_PUBLIC FP_LEADER;          /* CPUs 0 to 63 of the allowed ones. See `Process::cpus_allowed` for all. */
	u64 mems_allowed FP_PUBLIC FP_LEADER;          /* Memory nodes 0 to 63 of the allowed ones. See `Process::mems_allowed`. */
	/* Time waited for block I/O (`delays->blkio_delay`; counts only with delay accounting on). */
	fp_ns blkio_ns   FP_TICKS FP_LEADER;
	u32 cpus_at      FP_PUBLIC FP_LEADER FP_INNER; /* Where all of the first stand in the pool, on a machine with more than 64. */
	u32 mems_at      FP_PUBLIC FP_LEADER FP_INNER; /* Where all of the second stand in the pool, on a machine with more than 64. */
	u32 ngid         FP_PUBLIC FP_LEADER;          /* NUMA group, or 0. */
	u32 reserved     FP_PUBLIC FP_LEADER FP_INNER; /* Not used. */
};

/* Limits that `/proc/PID/stat` and `status` show. */
struct fp_limits {
	fp_bytes rss_limit FP_PUBLIC FP_PROCESS;          /* `RLIMIT_RSS`, `u64::MAX` for none: `rsslim`. */
	u32 fd_size        FP_PUBLIC FP_PROCESS;          /* Descriptor slots allocated: `FDSize`. */
	u32 reserved       FP_PUBLIC FP_PROCESS FP_INNER; /* Not used. */
};

/* I/O counters, of all threads together, as in `/proc/PID/io`. */
struct fp_io {
	fp_bytes rchar                 FP_TRACERS FP_SUM; /* Bytes that read(2) and the like returned. */
	fp_bytes wchar                 FP_TRACERS FP_SUM; /* Bytes that write(2) and the like took. */
	u64 syscr                      FP_TRACERS FP_SUM; /* Read calls. */
	u64 syscw                      FP_TRACERS FP_SUM; /* Write calls. */
	fp_bytes read_bytes            FP_TRACERS FP_SUM; /* Bytes fetched from storage. */
	fp_bytes write_bytes           FP_TRACERS FP_SUM; /* Bytes sent to storage. */
	/* Bytes that were not written after all, because the file was truncated. */
	fp_bytes cancelled_write_bytes FP_TRACERS FP_SUM;
};

/*
 * Times that threads waited for the kernel, and how often, by delay accounting (`task->delays`, `signal->stats`). Not known of a
 * process that began while it was switched off: its default since Linux 5.14 (sysctl `kernel.task_delayacct`).
 */
struct fp_delays {
	fp_ns blkio_delay_ns      FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* For block I/O; before Linux 5.17 without that of swapping in. */
	u64 blkio_count           FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* How often. */
	fp_ns swapin_delay_ns     FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* For pages that are swapped in. */
	u64 swapin_count          FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* How often. */
	fp_ns reclaim_delay_ns    FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* For memory that it reclaimed itself (`freepages_delay`). */
	u64 reclaim_count         FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* How often. */
	fp_ns thrashing_delay_ns  FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* For pages of files that were dropped shortly before. */
	u64 thrashing_count       FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* How often. */
	fp_ns compaction_delay_ns FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* For memory that it compacted itself, from Linux 5.17 on. */
	u64 compaction_count      FP_TRACERS FP_SUM FP_UNKNOWN(-1); /* How often. */
};

/* Cgroup of the default hierarchy. */
struct fp_cgroup {
	u64 id FP_PUBLIC FP_LEADER FP_UNKNOWN(0); /* `kernfs_node.id`, which is the inode number of its folder. */
};

/* How the name of a process is known. Not meant to be read as it is: see `Process::name`. */
struct fp_name_parts {
	u32 kind                FP_PUBLIC FP_LEADER FP_INNER; /* `FP_NAME_*`: 0, `comm` is the name; 1, `text` is; 2, a workqueue worker, put together from the parts. */
	u32 worker_flags        FP_PUBLIC FP_LEADER FP_INNER; /* `FP_WORKER_*`. */
	s32 worker_id           FP_PUBLIC FP_LEADER FP_INNER; /* `worker->id`. */
	s32 pool_id             FP_PUBLIC FP_LEADER FP_INNER; /* `worker_pool->id`. */
	s32 pool_cpu            FP_PUBLIC FP_LEADER FP_INNER; /* `worker_pool->cpu`, -1 for an unbound pool. */
	u32 reserved            FP_PUBLIC FP_LEADER FP_INNER; /* Not used. */
	/* The full name, NUL terminated; or for a worker its description, and from byte 32 the queue it rescues. */
	char text[FP_NAME_SIZE] FP_PUBLIC FP_LEADER FP_INNER;
};

/* One process. Only the groups that `identity.groups` names hold anything. What is asked for most stands together. */
struct fp_record {
	struct fp_identity identity                     FP_ALWAYS;           /* Who it is and what it is doing. */
	struct fp_cpu cpu                               FP_GROUP;            /* CPU time, faults, context switches. */
	struct fp_memory memory                         FP_GROUP;            /* Sizes of memory. All 0 for a process without memory of its own (a kernel thread, a zombie). */
	struct fp_users users                           FP_GROUP;            /* Users and groups. */
	struct fp_scheduling scheduling                 FP_GROUP;            /* Priority, policy, processor. */
	struct fp_name_parts name                       FP_ALWAYS;           /* Name; always present. */
	struct fp_memory_details memory_details         FP_GROUP;            /* What else is known of its memory. All 0 for a process without memory of its own. */
	struct fp_layout layout                         FP_GROUP FP_TRACERS; /* Addresses. */
	struct fp_credentials credentials               FP_GROUP;            /* Capabilities, seccomp, umask, and how many supplementary groups there are. */
	struct fp_signals signals                       FP_GROUP;            /* Signal sets. */
	struct fp_namespaces namespaces                 FP_GROUP;            /* Pid namespaces. */
	struct fp_scheduling_details scheduling_details FP_GROUP;            /* What else is known of its scheduling. */
	struct fp_limits limits                         FP_GROUP;            /* Limits. */
	struct fp_io io                                 FP_GROUP;            /* I/O counters. */
	struct fp_cgroup cgroup                         FP_GROUP;            /* Cgroup of the default hierarchy. */
	struct fp_delays delays                         FP_GROUP FP_TRACERS; /* Delay accounting. */
};

/* One thread, where threads are listed or cannot be folded on the spot. */
struct fp_thread_record {
	fp_ns start_ns         FP_BOOT_TICKS;           /* Start time after boot. */
	fp_ns utime_ns         FP_TICKS;                /* Time in user mode, scaled as the kernel does. */
	fp_ns stime_ns         FP_TICKS;                /* Time in kernel mode, scaled as the kernel does. */
	fp_ns gtime_ns         FP_TICKS;                /* Guest time. */
	u64 minflt             FP_PUBLIC;               /* Page faults that needed no I/O. */
	u64 majflt             FP_PUBLIC;               /* Page faults that needed I/O. */
	u64 nvcsw              FP_PUBLIC;               /* Voluntary context switches. */
	u64 nivcsw             FP_PUBLIC;               /* Involuntary context switches. */
	fp_ns sum_exec_ns      FP_PUBLIC FP_UNKNOWN(0); /* Precise run time; `/proc` does not tell. */
	fp_ns run_delay_ns     FP_PUBLIC FP_UNKNOWN(-1); /* Time that it waited for a CPU while it could run (`sched_info.run_delay`). */
	u64 timeslices         FP_PUBLIC FP_UNKNOWN(-1); /* How often it got a CPU (`sched_info.pcount`). */
	fp_ns sampled_utime_ns FP_TICKS FP_INNER;       /* User time as sampled by ticks. */
	fp_ns sampled_stime_ns FP_TICKS FP_INNER;       /* System time as sampled by ticks. */
	fp_ns prev_utime_ns    FP_TICKS FP_INNER;       /* User time that the kernel last showed. */
	fp_ns prev_stime_ns    FP_TICKS FP_INNER;       /* System time that the kernel last showed. */
	struct fp_io io; /* I/O counters of this thread. */
	struct fp_delays delays; /* Delay accounting of this thread. */
	u32 tid                FP_PUBLIC;               /* Thread id. */
	u32 tgid               FP_PUBLIC;               /* Process that the thread belongs to. */
	u32 state_bits         FP_PUBLIC FP_INNER;      /* Report bits of the state. See `State::from_bits`. */
	u32 flags              FP_PUBLIC;               /* Kernel flags, `PF_*`. */
	s32 priority           FP_PUBLIC;               /* Kernel priority. */
	s32 nice               FP_PUBLIC;               /* Nice value. */
	u32 rt_priority        FP_PUBLIC;               /* Real-time priority. */
	u32 policy             FP_PUBLIC;               /* `SCHED_*`. */
	u32 processor          FP_PUBLIC;               /* CPU that it last ran on. */
	u32 threads_state      FP_PUBLIC FP_INNER;      /* `Identity::threads_state` of its process when it was read. */
	char comm[16]          FP_PUBLIC;               /* Name of the thread, NUL padded. */
};

/* A process that has ended, with its final values, as the service hands it to its readers: made of what exits.h describes. */
struct fp_exit_record {
	u64 number        FP_PUBLIC;                   /* Exits are counted, those that were lost too. */
	fp_ns start_ns    FP_BOOT_TICKS;               /* Start time after boot. */
	fp_ns end_ns      FP_BOOT_TICKS FP_UNKNOWN(0); /* When its last thread ended, after boot. */
	fp_ns utime_ns    FP_TICKS;                    /* Time in user mode, scaled as the kernel does. */
	fp_ns stime_ns    FP_TICKS;                    /* Time in kernel mode, scaled as the kernel does. */
	fp_ns gtime_ns    FP_TICKS;                    /* Guest time. */
	fp_ns sum_exec_ns FP_PUBLIC;                   /* Precise run time. */
	/*
	 * Time that its threads waited for a CPU. Unknown if it had several and the kernel does not keep what exited ones waited: see
	 * `fp_cpu.run_delay_ns`.
	 */
	fp_ns run_delay_ns FP_PUBLIC FP_UNKNOWN(-1);
	u64 timeslices    FP_PUBLIC FP_UNKNOWN(-1);    /* How often one of its threads got a CPU; unknown likewise. */
	fp_ns cutime_ns   FP_TICKS;                    /* User time of children that it waited for. */
	fp_ns cstime_ns   FP_TICKS;                    /* System time of those. */
	fp_ns cgtime_ns   FP_TICKS;                    /* Guest time of those. */
	u64 cminflt       FP_PUBLIC;                   /* Page faults without I/O of those. */
	u64 cmajflt       FP_PUBLIC;                   /* Page faults with I/O of those. */
	u64 minflt        FP_PUBLIC;                   /* Page faults that needed no I/O. */
	u64 majflt        FP_PUBLIC;                   /* Page faults that needed I/O. */
	u64 nvcsw         FP_PUBLIC;                   /* Voluntary context switches, of all its threads. */
	u64 nivcsw        FP_PUBLIC;                   /* Involuntary context switches, of all its threads. */
	fp_bytes peak_rss FP_PUBLIC;                   /* The most memory it ever had resident. */
	u64 cgroup_id     FP_PUBLIC;                   /* Id of its cgroup in the default hierarchy; 0 for none. */
	struct fp_io io; /* I/O counters, if known. */
	u32 known         FP_PUBLIC;                   /* `FP_EXIT_*`. */
	u32 pid           FP_PUBLIC;                   /* Process id that it had. */
	u32 ppid          FP_PUBLIC;                   /* Process id of its parent when it ended, if known. */
	u32 flags         FP_PUBLIC;                   /* Kernel flags, `PF_*`. */
	u32 uid           FP_PUBLIC;                   /* Real user id. */
	u32 euid          FP_PUBLIC;                   /* Effective user id. */
	u32 gid           FP_PUBLIC;                   /* Real group id. */
	u32 egid          FP_PUBLIC;                   /* Effective group id. */
	s32 status        FP_TRACERS;                  /* Exit status as waitpid(2) shows it, if known. */
	u32 line_at       FP_PUBLIC;                   /* First byte of its command line among those of all. */
	u32 line_bytes    FP_PUBLIC;                   /* Bytes of it; 0 if it is not known. */
	u32 reserved      FP_PUBLIC FP_INNER;          /* 0. */
	char comm[16]     FP_PUBLIC;                   /* Name, NUL padded. */
};

#endif
