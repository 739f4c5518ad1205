/*
 * Each process's share of the CPUs in a second, the new processes, and those that are gone.
 *
 *	cc cpu_shares.c $(pkg-config --cflags --libs fastproc) -o cpu_shares && ./cpu_shares
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <fastproc.h>

static int look(fastproc *handle)
{
	return fastproc_snapshot(handle) || fastproc_difference(handle);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1.0;
	struct timespec pause;
	fastproc *handle;

	pause.tv_sec = (time_t)seconds;
	pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
	if (fastproc_open(&handle, FASTPROC_CPU, NULL, 0) || look(handle)) {
		fprintf(stderr, "cpu_shares: %s\n", fastproc_error());
		fastproc_close(handle);
		return 1;
	}
	nanosleep(&pause, NULL);
	if (look(handle)) {
		fprintf(stderr, "cpu_shares: %s\n", fastproc_error());
		fastproc_close(handle);
		return 1;
	}
	size_t count = fastproc_count(handle);
	for (size_t place = 0; place < count; place++) {
		const char *name;
		double share;
		uint32_t pid;
		bool born;

		/* 1.0 is one whole CPU. */
		if (fastproc_change_cpu_share(handle, place, &share) != FASTPROC_OK || share < 0.001)
			continue;
		fastproc_pid(handle, place, &pid);
		fastproc_name(handle, place, &name, NULL);
		fastproc_change_born(handle, place, &born);
		printf("%8" PRIu32 " %6.1f %% %s%s\n", pid, share * 100, name, born ? " (born)" : "");
	}
	count = fastproc_gone_count(handle);
	for (size_t i = 0; i < count; i++) {
		uint32_t pid;

		fastproc_gone_pid(handle, i, &pid);
		printf("%8" PRIu32 " is gone\n", pid);
	}
	printf("%zu processes\n", fastproc_count(handle));
	return fastproc_close(handle);
}
