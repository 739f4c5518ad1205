/*
 * Every accessor of the header, which accessors.inc lists.
 *
 *	every values SOURCE PID…     their values for these processes and their threads; 0 is itself
 *	every misuse SOURCE          their number after wrong use, or what is wrong
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fastproc.h>

#define ALL (FASTPROC_THREE_FILES | FASTPROC_IO | FASTPROC_CGROUP | FASTPROC_THREADS)

#define process 0
#define thread 1
#define gone 2

static void print(const fastproc *handle, size_t place, int kind, const char *about)
{
#define ACCESSOR(name, type, format, cast, of)                                                  \
	if (of == kind && strncmp(#name, "fastproc_thread_change_", 23) && strncmp(#name, "fastproc_change_", 16)) { \
		type value;                                                                     \
		int result = name(handle, place, &value);                                       \
		printf("%s\t%s\t%d\t" format "\n", about, #name, result, (cast)value);           \
	}
#include "accessors.inc"
#undef ACCESSOR
}

static int values(fastproc *handle, int count, char **pids)
{
	char about[64];
	size_t place, threads;

	if (fastproc_snapshot(handle))
		return 1;
	for (int i = 0; i < count; i++) {
		uint32_t pid = (uint32_t)strtoul(pids[i], NULL, 10);

		if (!pid)
			pid = (uint32_t)getpid();
		if (fastproc_find(handle, pid, &place))
			return 1;
		snprintf(about, sizeof about, "process %lu", (unsigned long)pid);
		print(handle, place, process, about);
	}
	threads = fastproc_thread_count(handle);
	for (place = 0; place < threads; place++) {
		uint32_t of, tid;

		if (fastproc_thread_tgid(handle, place, &of) || fastproc_thread_tid(handle, place, &tid))
			return 1;
		for (int i = 0; i < count; i++) {
			if (strtoul(pids[i], NULL, 10) != of)
				continue;
			snprintf(about, sizeof about, "thread %lu", (unsigned long)tid);
			print(handle, place, thread, about);
		}
	}
	return 0;
}

/* Each returns this, and sets its result to zero. */
static int refused(fastproc *handle, size_t place, int expected, int expected_later)
{
	int count = 0;
#define ACCESSOR(name, type, format, cast, of)                                                  \
	{                                                                                       \
		type value;                                                                     \
		int result;                                                                     \
		memset(&value, 1, sizeof value);                                                \
		result = name(handle, place, &value);                                           \
		if ((result != expected && result != expected_later) || value) {                \
			fprintf(stderr, "%s: %d, " format "\n", #name, result, (cast)value);     \
			exit(1);                                                                \
		}                                                                               \
		if (name(handle, place, NULL) != FASTPROC_ERROR_ARGUMENT) {                     \
			fprintf(stderr, "%s takes NULL\n", #name);                              \
			exit(1);                                                                \
		}                                                                               \
		count++;                                                                        \
	}
#include "accessors.inc"
#undef ACCESSOR
	return count;
}

static int misuse(fastproc *handle)
{
	const int argument = FASTPROC_ERROR_ARGUMENT, early = FASTPROC_ERROR_NO_SNAPSHOT;

	refused(NULL, 0, argument, argument);
	refused(handle, 0, early, early);
	if (fastproc_snapshot(handle))
		return 1;
	/* Without a comparison they return that error, or that the place does not exist. */
	refused(handle, fastproc_count(handle) + 100000, argument, early);
	refused(handle, (size_t)-1, argument, early);
	fastproc_close(handle);
	printf("%d\n", refused(handle, 0, FASTPROC_ERROR_CLOSED, FASTPROC_ERROR_CLOSED));
	return 0;
}

int main(int argc, char **argv)
{
	fastproc *handle;
	int is_misuse, failed;

	if (argc < 3 || fastproc_open(&handle, ALL, argv[2], 0)) {
		fprintf(stderr, "every: %s\n", fastproc_error());
		return 1;
	}
	is_misuse = !strcmp(argv[1], "misuse");
	failed = is_misuse ? misuse(handle) : values(handle, argc - 3, argv + 3);
	if (failed)
		fprintf(stderr, "every: %s\n", fastproc_error());
	if (!is_misuse)
		fastproc_close(handle);
	return failed;
}
