/* What the storms share: each shows its states first, and records when it changes them. */
#ifndef STORM_H
#define STORM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Microseconds between two changes; 0: as fast as possible. */
extern unsigned period_us;

/* Ends the program with the reason if a call fails. */
#define MUST(call)                                                                                                     \
	({                                                                                                             \
		__typeof__(call) result_ = (call);                                                                     \
		if ((long)result_ == -1)                                                                               \
			fail(#call);                                                                                   \
		result_;                                                                                               \
	})
__attribute__((noreturn)) void fail(const char *what);

/* Announces a process to watch besides this one. Call it before the first pose. */
void watch(pid_t pid);
/* Stays in a state until the checker has read what the kernel reports about it. */
void pose(unsigned state);
/* All states were shown: the storm begins. */
void go(void);

/* A change to a state begins, and is done. In between, readers may see either state. */
void change_begins(unsigned state);
void change_done(void);
#define CHANGE(state, call)                                                                                            \
	do {                                                                                                           \
		change_begins(state);                                                                                  \
		MUST(call);                                                                                            \
		change_done();                                                                                         \
	} while (0)

/* Waits for the period. */
void rest(void);
/* Forks a child that ends with its parent; returns 0 in the child. */
pid_t child(void);
/* Uses a CPU for this time. */
void burn(unsigned us);
uint64_t now_ns(void);

/* The command line that continues this storm after exec, with `title` as its last argument. NULL: this program. */
void exec_self(const char *program, const char *title);
/* Whether exec_self started this program, and with which title. */
const char *exec_title(void);

typedef void storm(void);
storm affinity, cgroups, cpusets, credentials, descriptors, dethread, execs, forks, groups, inout, limits, masks, memory, names,
	namespaces, nesting, odd, scheduling, seccomp_filters, signals, switching, terminals, thread_names, threads, titles, workers;

#endif
