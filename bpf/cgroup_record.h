/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The record of a cgroup, in the form of record.h and with its tags. A cgroup has no threads, so its members do not say how
 * they come from threads.
 */
#ifndef FASTPROC_CGROUP_RECORD_H
#define FASTPROC_CGROUP_RECORD_H

#include "record.h"

/* Field groups, as bits: asked for in settings.groups, and filled where identity.groups says so. */
#define FP_CGROUP_CPU 0x01
#define FP_CGROUP_MEMORY 0x02
#define FP_CGROUP_MEMORY_STAT 0x04
#define FP_CGROUP_PIDS 0x08
#define FP_CGROUP_IO 0x10
#define FP_CGROUP_PRESSURE 0x20
#define FP_CGROUP_PRESSURE_AVERAGES 0x40

/* A limit that is not set: the files say "max". */
#define FP_CGROUP_NO_LIMIT 0xfffffffffffffffeULL

/* Values of memory.stat that a record has room for: the states and events of a memory cgroup. */
#define FP_CGROUP_STAT_SLOTS 96

/* Averages of pressure: of three resources, some and full, over three times. */
#define FP_CGROUP_AVERAGES 18

/* What a cgroup is. Always present. */
struct fp_cgroup_identity {
	u64 id                FP_PUBLIC;          /* The inode number of its directory (`cgrp->kn->id`). */
	u64 parent            FP_PUBLIC;          /* Id of its parent; 0 for the root. */
	u32 groups            FP_PUBLIC FP_INNER; /* The groups that this record holds, as the bits of `Fields`. */
	u32 level             FP_PUBLIC;          /* Levels below the root of the hierarchy. */
	u32 populated         FP_PUBLIC;          /* 1 if it or a descendant has a process: `populated` of cgroup.events. */
	u32 frozen            FP_PUBLIC;          /* 1 if it is frozen: `frozen` of cgroup.events. */
	u32 descendants       FP_PUBLIC;          /* Living descendants: `nr_descendants` of cgroup.stat. */
	u32 dying_descendants FP_PUBLIC;          /* Removed descendants that the kernel still keeps: `nr_dying_descendants`. */
	u32 threaded          FP_PUBLIC;          /* 1 if its type is `threaded`. */
	u32 stat_by_line      FP_PUBLIC FP_INNER; /* 1 if the values of memory.stat were read from the text, line by line. */
};

/* CPU time, throttling and weight: cpu.stat, cpu.max, cpu.weight. */
struct fp_cgroup_cpu {
	fp_ns usage_ns       FP_PUBLIC;                /* CPU time of the cgroup and its descendants: `usage_usec`. */
	fp_ns user_ns        FP_PUBLIC;                /* Time in user mode, scaled to the precise time as the kernel does. */
	fp_ns system_ns      FP_PUBLIC;                /* Time in kernel mode, scaled likewise. */
	fp_ns nice_ns        FP_PUBLIC FP_UNKNOWN(-1); /* Time of processes with a positive nice value: `nice_usec`. */
	fp_ns forced_idle_ns FP_PUBLIC FP_UNKNOWN(-1); /* Time that core scheduling kept siblings idle: `core_sched.force_idle_usec`. */
	u64 periods          FP_PUBLIC FP_UNKNOWN(-1); /* Periods in which the limit of CPU time was enforced: `nr_periods`. */
	u64 throttled        FP_PUBLIC FP_UNKNOWN(-1); /* Periods in which the cgroup was throttled: `nr_throttled`. */
	fp_ns throttled_ns   FP_PUBLIC FP_UNKNOWN(-1); /* Time that it was throttled, of all CPUs together: `throttled_usec`. */
	u64 bursts           FP_PUBLIC FP_UNKNOWN(-1); /* Periods with a burst: `nr_bursts`. */
	fp_ns burst_ns       FP_PUBLIC FP_UNKNOWN(-1); /* Time used above the quota in bursts: `burst_usec`. */
	fp_ns quota_ns       FP_PUBLIC FP_UNKNOWN(-1); /* CPU time allowed in a period, or no limit: cpu.max. */
	fp_ns period_ns      FP_PUBLIC FP_UNKNOWN(-1); /* The period: cpu.max. */
	u64 weight           FP_PUBLIC FP_UNKNOWN(-1); /* Share of CPU time among siblings: cpu.weight. */
	fp_ns sampled_utime_ns FP_PUBLIC FP_INNER;     /* User time as sampled by ticks, before scaling. */
	fp_ns sampled_stime_ns FP_PUBLIC FP_INNER;     /* System time as sampled by ticks, before scaling. */
	fp_ns prev_utime_ns    FP_PUBLIC FP_INNER;     /* User time that the kernel last showed to anybody. */
	fp_ns prev_stime_ns    FP_PUBLIC FP_INNER;     /* System time that the kernel last showed to anybody. */
};

/* Memory in use, limits and events: the files memory.* but for memory.stat. */
struct fp_cgroup_memory {
	fp_bytes current       FP_PUBLIC FP_UNKNOWN(-1); /* Memory in use: memory.current. */
	fp_bytes peak          FP_PUBLIC FP_UNKNOWN(-1); /* The most that was ever in use: memory.peak. */
	fp_bytes min           FP_PUBLIC FP_UNKNOWN(-1); /* Memory that is never reclaimed: memory.min. */
	fp_bytes low           FP_PUBLIC FP_UNKNOWN(-1); /* Memory that is reclaimed last: memory.low. */
	fp_bytes high          FP_PUBLIC FP_UNKNOWN(-1); /* Above this, allocations are slowed down: memory.high. */
	fp_bytes max           FP_PUBLIC FP_UNKNOWN(-1); /* The limit: memory.max. */
	fp_bytes swap_current  FP_PUBLIC FP_UNKNOWN(-1); /* Swap in use: memory.swap.current. */
	fp_bytes swap_peak     FP_PUBLIC FP_UNKNOWN(-1); /* The most swap that was ever in use: memory.swap.peak. */
	fp_bytes swap_high     FP_PUBLIC FP_UNKNOWN(-1); /* Above this much swap, allocations are slowed down: memory.swap.high. */
	fp_bytes swap_max      FP_PUBLIC FP_UNKNOWN(-1); /* The limit of swap: memory.swap.max. */
	u64 events_low         FP_PUBLIC FP_UNKNOWN(-1); /* Times that memory below `low` was reclaimed: `low` of memory.events. */
	u64 events_high        FP_PUBLIC FP_UNKNOWN(-1); /* Times that `high` was exceeded. */
	u64 events_max         FP_PUBLIC FP_UNKNOWN(-1); /* Times that use was about to exceed `max`. */
	u64 events_oom         FP_PUBLIC FP_UNKNOWN(-1); /* Times that the limit was reached and an allocation was about to fail. */
	u64 oom_kills          FP_PUBLIC FP_UNKNOWN(-1); /* Processes killed by an OOM killer: `oom_kill`. */
	u64 oom_group_kills    FP_PUBLIC FP_UNKNOWN(-1); /* Times that the whole cgroup was killed: `oom_group_kill`. */
	u64 local_low          FP_PUBLIC FP_UNKNOWN(-1); /* The same of the cgroup without its descendants: memory.events.local. */
	u64 local_high         FP_PUBLIC FP_UNKNOWN(-1); /* `high` of memory.events.local. */
	u64 local_max          FP_PUBLIC FP_UNKNOWN(-1); /* `max` of memory.events.local. */
	u64 local_oom          FP_PUBLIC FP_UNKNOWN(-1); /* `oom` of memory.events.local. */
	u64 local_oom_kills    FP_PUBLIC FP_UNKNOWN(-1); /* `oom_kill` of memory.events.local. */
	u64 local_oom_group_kills FP_PUBLIC FP_UNKNOWN(-1); /* `oom_group_kill` of memory.events.local. */
	u64 sock_throttled     FP_PUBLIC FP_UNKNOWN(-1); /* Times that a socket's memory was held back: `sock_throttled` of memory.events. */
	u64 local_sock_throttled FP_PUBLIC FP_UNKNOWN(-1); /* `sock_throttled` of memory.events.local. */
	u64 swap_events_high   FP_PUBLIC FP_UNKNOWN(-1); /* Times that swap exceeded `swap_high`: `high` of memory.swap.events. */
	u64 swap_events_max    FP_PUBLIC FP_UNKNOWN(-1); /* Times that swap was about to exceed `swap_max`. */
	u64 swap_events_fail   FP_PUBLIC FP_UNKNOWN(-1); /* Times that an allocation of swap failed. */
	u64 oom_group          FP_PUBLIC FP_UNKNOWN(-1); /* 1 if an OOM killer kills the whole cgroup: memory.oom.group. */
};

/* The lines of memory.stat, in the order and the units of whoever read them. `Cgroup::memory_stat` finds a line by its name. */
struct fp_cgroup_memory_stat {
	u64 slots[FP_CGROUP_STAT_SLOTS] FP_PUBLIC FP_INNER; /* The stored values. */
};

/* Processes and threads: pids.current and its limit. */
struct fp_cgroup_pids {
	u64 current FP_PUBLIC;                /* Processes and threads in the cgroup and its descendants: pids.current. */
	u64 max     FP_PUBLIC;                /* The limit: pids.max. */
	u64 peak    FP_PUBLIC FP_UNKNOWN(-1); /* The most that there ever were: pids.peak. */
};

/* I/O of all block devices together: the sums of the lines of io.stat. */
struct fp_cgroup_io {
	fp_bytes rbytes FP_PUBLIC;          /* Bytes read. */
	fp_bytes wbytes FP_PUBLIC;          /* Bytes written. */
	fp_bytes dbytes FP_PUBLIC;          /* Bytes discarded. */
	u64 rios        FP_PUBLIC;          /* Reads. */
	u64 wios        FP_PUBLIC;          /* Writes. */
	u64 dios        FP_PUBLIC;          /* Discards. */
	u32 devices_at  FP_PUBLIC FP_INNER; /* Where its devices begin. */
	u32 devices     FP_PUBLIC FP_INNER; /* How many it has. */
};

/* Time in which tasks waited for a resource: the files *.pressure. */
struct fp_cgroup_pressure {
	fp_ns cpu_some_ns    FP_PUBLIC; /* Some task waited for a CPU. */
	fp_ns cpu_full_ns    FP_PUBLIC; /* All tasks waited for a CPU. */
	fp_ns memory_some_ns FP_PUBLIC; /* Some task waited for memory. */
	fp_ns memory_full_ns FP_PUBLIC; /* All tasks waited for memory. */
	fp_ns io_some_ns     FP_PUBLIC; /* Some task waited for I/O. */
	fp_ns io_full_ns     FP_PUBLIC; /* All tasks waited for I/O. */
	u64 torn             FP_PUBLIC FP_INNER; /* 1 if the kernel added to the totals meanwhile: the library reads the files. */
};

/* The averages of the files *.pressure, which the library reads only if this group is asked for. */
struct fp_cgroup_pressure_averages {
	/* Shares of the last 10, 60 and 300 seconds in hundredths of a percent, in the order of the times of pressure. */
	u32 averages[FP_CGROUP_AVERAGES] FP_PUBLIC;
};

/* One cgroup. */
struct fp_cgroup_record {
	struct fp_cgroup_identity identity FP_ALWAYS;      /* What it is. */
	struct fp_cgroup_cpu cpu FP_GROUP;                 /* CPU time, throttling and weight. */
	struct fp_cgroup_memory memory FP_GROUP;           /* Memory in use, limits and events. */
	struct fp_cgroup_memory_stat memory_stat FP_GROUP; /* The lines of memory.stat. */
	struct fp_cgroup_pids pids FP_GROUP;               /* Processes and threads. */
	struct fp_cgroup_io io FP_GROUP;                   /* I/O. */
	struct fp_cgroup_pressure pressure FP_GROUP;       /* Time in which tasks waited. */
	struct fp_cgroup_pressure_averages pressure_averages FP_GROUP; /* Averages of pressure. */
};

/* I/O of a cgroup with one block device: a line of io.stat. */
struct fp_cgroup_device {
	u32 major       FP_PUBLIC; /* Major number of the device. */
	u32 minor       FP_PUBLIC; /* Minor number of the device. */
	fp_bytes rbytes FP_PUBLIC; /* Bytes read. */
	fp_bytes wbytes FP_PUBLIC; /* Bytes written. */
	fp_bytes dbytes FP_PUBLIC; /* Bytes discarded. */
	u64 rios        FP_PUBLIC; /* Reads. */
	u64 wios        FP_PUBLIC; /* Writes. */
	u64 dios        FP_PUBLIC; /* Discards. */
};

#endif
