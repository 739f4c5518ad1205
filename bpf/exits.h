/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The events that exits.bpf.c writes into its ring, and its settings, in the form of record.h. Every event begins with
 * `exits_event`.
 */
#ifndef FASTPROC_EXITS_H
#define FASTPROC_EXITS_H

#include "record.h"

/* exits_event.kind */
#define EXITS_ENDED 1  /* exits_exit: the last thread of a process exits; the values lack what it does after that */
#define EXITS_EXIT 2   /* exits_exit: a process is gone, with its final values; end_ns and ppid are 0 */
#define EXITS_THREAD 3 /* exits_exit: a thread is gone, if threads are recorded */
#define EXITS_EXEC 4   /* exits_exec: a process runs another program */

/* exits_exit.dumpable: whether its user could have dumped its memory when its last thread exited */
#define EXITS_DUMPABLE_UNKNOWN 0 /* the memory was gone, as it is before Linux 6.16, and nothing else records it */
#define EXITS_DUMPABLE_NO 1
#define EXITS_DUMPABLE_YES 2

#define EXITS_PATH_SIZE 128
#define EXITS_ARGUMENTS_SIZE 4096
/* The most arguments of an exec while a quarter of the ring is unread: fewer events are lost than if each had 1 KiB. */
#define EXITS_ARGUMENTS_CROWDED 512

struct exits_event {
	u32 kind, tgid;
	fp_ns start_ns; /* start_boottime of the process; of the thread in EXITS_THREAD */
};

/* The credentials of a process. They decide which readers may see all about it. */
struct exits_owner {
	u64 cap_permitted;
	struct fp_users users;
	u32 user_ns, reserved;
};

/* The exec that began the program of a process. */
struct exits_program {
	u64 exec_id;	/* self_exec_id of the process that executed it, after that; 0: unknown */
	fp_ns start_ns; /* start_boottime of that process */
	u32 tgid, reserved; /* of that process */
};

struct exits_exit {
	struct exits_event event;
	/* of a process from signal_struct after __exit_signal(): the sums of all threads, including the leader */
	fp_ns sum_exec_ns, sampled_utime_ns, sampled_stime_ns, prev_utime_ns, prev_stime_ns, gtime_ns;
	fp_ns cutime_ns, cstime_ns, cgtime_ns; /* of children that it waited for, like the next two; 0 for a thread */
	u64 cminflt, cmajflt;
	u64 minflt, majflt, nvcsw, nivcsw;
	fp_ns run_delay_ns; /* all bits set if unknown, as timeslices */
	u64 timeslices;
	fp_bytes peak_rss;
	fp_bytes rchar, wchar;
	u64 syscr, syscw;
	fp_bytes read_bytes, write_bytes, cancelled_write_bytes;
	u64 cgroup_id;
	fp_ns end_ns; /* after boot */
	struct exits_owner owner;
	struct exits_program program;
	u32 ppid, tid;
	u32 flags;
	s32 status; /* as waitpid(2) shows it */
	u32 dumpable; /* EXITS_DUMPABLE_* */
	u32 as_parent; /* of EXITS_ENDED: whether it executed nothing and ran the same program as its parent */
	char comm[16];
};

struct exits_exec {
	struct exits_event event;
	fp_ns at_ns; /* after boot */
	u64 cgroup_id;
	u64 exec_id; /* self_exec_id */
	struct exits_owner owner;
	u32 ppid, flags;
	char comm[16];
	char path[EXITS_PATH_SIZE]; /* as passed to execve(2), cut, with a NUL */
	u32 arguments_bytes;	    /* of the arguments, each with its NUL */
	u32 arguments_read;	    /* the first of them, which follow this structure */
};

/* Fixed when the programs are loaded. */
struct exits_settings {
	u32 page_shift;
	u32 threads; /* whether to record every thread as well */
	u32 at_once; /* whether every event wakes the reader */
	u32 pid_ns;  /* inode number of the pid namespace whose processes are recorded, by its numbers; 0: all processes */
};

#endif
