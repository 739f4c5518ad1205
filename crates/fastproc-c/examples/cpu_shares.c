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

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1.0;
	fastproc_snapshot_info snapshot;
	struct timespec pause;
	fastproc *handle;
	size_t gone;
	int failed;

	pause.tv_sec = (time_t)seconds;
	pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
	failed = fastproc_open(&handle, FASTPROC_CPU, NULL, 0, FASTPROC_SIZES);
	for (int i = 0; i < 2 && !failed; i++) {
		if (i == 1)
			nanosleep(&pause, NULL);
		failed = fastproc_snapshot(handle, &snapshot) || fastproc_difference(handle, &gone);
	}
	if (failed) {
		fprintf(stderr, "cpu_shares: %s\n", fastproc_error());
		fastproc_close(handle);
		return 1;
	}
	for (size_t place = 0; place < snapshot.count; place++) {
		fastproc_change change;
		fastproc_record record;
		const char *name;

		/* 1.0 is one whole CPU. An unknown share is NaN, and compares as false. */
		if (fastproc_get_change(handle, place, &change) || !(change.cpu_share >= 0.001))
			continue;
		fastproc_get(handle, place, &record);
		fastproc_text(handle, place, FASTPROC_TEXT_NAME, &name, NULL);
		printf("%8" PRIu32 " %6.1f %% %s%s\n", record.identity.tgid, change.cpu_share * 100, name,
		       change.born ? " (born)" : "");
	}
	for (size_t i = 0; i < gone; i++) {
		uint32_t pid;

		fastproc_get_gone(handle, i, &pid, NULL);
		printf("%8" PRIu32 " is gone\n", pid);
	}
	printf("%zu processes\n", snapshot.count);
	return fastproc_close(handle);
}
