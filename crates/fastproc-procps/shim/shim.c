/*
 * The library that programs find under the name of procps's library. Its functions read processes; they call
 * libfastproc_procps.so beside this file, or procps's own library (REAL, its path). All other functions come from
 * that one, which this library needs; it exports no other names.
 *
 * Programs that read no processes, such as free and uptime, load only this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pids_info;
struct pids_stack;
struct pids_fetch;

/* The order is that of Functions in abi.rs. */
struct functions {
	int (*new)(struct pids_info **, unsigned *, int);
	int (*ref)(struct pids_info *);
	int (*unref)(struct pids_info **);
	struct pids_stack *(*get)(struct pids_info *, unsigned);
	struct pids_fetch *(*reap)(struct pids_info *, unsigned);
	int (*reset)(struct pids_info *, unsigned *, int);
	struct pids_fetch *(*select)(struct pids_info *, unsigned *, int, unsigned);
	struct pids_stack **(*sort)(struct pids_info *, struct pids_stack **, int, unsigned, int);
	struct pids_stack *(*fatal_proc_unmounted)(struct pids_info *, int);
};

static const char *const names[] = {
	"procps_pids_new",   "procps_pids_ref",	   "procps_pids_unref",
	"procps_pids_get",   "procps_pids_reap",   "procps_pids_reset",
	"procps_pids_select", "procps_pids_sort", "fatal_proc_unmounted",
};

static struct functions real;
static const struct functions *chosen = &real;

/* The library beside this one; NULL if it is disabled or does not load. */
static const struct functions *ours(void)
{
	const struct functions *(*open)(const struct functions *, unsigned);
	const char *wanted = secure_getenv("LIBPROC2_FASTPROC");
	char path[4096];
	const char *name;
	Dl_info self;
	void *library;

	/* procps's own library has its own way to leave out kernel threads. */
	if ((wanted && !strcmp(wanted, "off")) || getenv("LIBPROC_HIDE_KERNEL"))
		return NULL;
	if (!dladdr(&chosen, &self) || !(name = strrchr(self.dli_fname, '/')))
		return NULL;
	if (snprintf(path, sizeof(path), "%.*s/libfastproc_procps.so", (int)(name - self.dli_fname), self.dli_fname) >=
	    (int)sizeof(path))
		return NULL;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return NULL;
	*(void **)&open = dlsym(library, "fastproc_procps_open");
	return open ? open(&real, SONAME) : NULL;
}

/* In place of a function that procps's library no longer has: fails with ENOSYS. */
static void *gone(void)
{
	errno = ENOSYS;
	return NULL;
}

static void choose(void)
{
	int complete = 1;
	void *library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
	void **functions = (void **)&real;
	const struct functions *found;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		/* ld.so has loaded it before this one, so it exists. */
		functions[i] = library ? dlsym(library, names[i]) : NULL;
		/* A version without one of these functions has another interface, and is used unchanged. */
		if (!functions[i]) {
			functions[i] = (void *)gone;
			complete = 0;
		}
	}
	found = complete ? ours() : NULL;
	if (found)
		chosen = found;
}

static const struct functions *functions(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose);
	return chosen;
}

int procps_pids_new(struct pids_info **info, unsigned *items, int count)
{
	return functions()->new(info, items, count);
}

int procps_pids_ref(struct pids_info *info)
{
	return functions()->ref(info);
}

int procps_pids_unref(struct pids_info **info)
{
	return functions()->unref(info);
}

struct pids_stack *procps_pids_get(struct pids_info *info, unsigned which)
{
	return functions()->get(info, which);
}

struct pids_fetch *procps_pids_reap(struct pids_info *info, unsigned which)
{
	return functions()->reap(info, which);
}

int procps_pids_reset(struct pids_info *info, unsigned *items, int count)
{
	return functions()->reset(info, items, count);
}

struct pids_fetch *procps_pids_select(struct pids_info *info, unsigned *ids, int count, unsigned which)
{
	return functions()->select(info, ids, count, which);
}

struct pids_stack **procps_pids_sort(struct pids_info *info, struct pids_stack **stacks, int count, unsigned item,
				     int order)
{
	return functions()->sort(info, stacks, count, item, order);
}

struct pids_stack *fatal_proc_unmounted(struct pids_info *info, int return_self)
{
	return functions()->fatal_proc_unmounted(info, return_self);
}
