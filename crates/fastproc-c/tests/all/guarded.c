/* Prints what the kernel guards of a process and of its first thread, and the source. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <fastproc.h>

int main(int argc, char **argv)
{
	uint32_t fields = FASTPROC_LAYOUT | FASTPROC_IO | FASTPROC_CPU | FASTPROC_THREADS;
	fastproc_snapshot_info snapshot;
	fastproc_thread_record thread;
	fastproc_record record;
	fastproc *handle;
	size_t place;

	if (argc < 3 || fastproc_open(&handle, fields, argv[1], 0, FASTPROC_SIZES) ||
	    fastproc_snapshot(handle, &snapshot) || fastproc_find(handle, strtoull(argv[2], NULL, 10), &place) ||
	    fastproc_get(handle, place, &record)) {
		fprintf(stderr, "%s\n", fastproc_error());
		return 1;
	}
	for (size_t i = 0; i < snapshot.threads; i++) {
		if (fastproc_get_thread(handle, i, &thread) == FASTPROC_OK && thread.tgid == record.identity.tgid)
			break;
	}
	printf("masked %d\n", record.identity.masked);
	printf("exit_code %" PRId32 "\n", record.identity.exit_code);
	printf("start_stack %d\n", record.layout.start_stack != FASTPROC_UNKNOWN_U64);
	printf("has_io %d\n", (record.identity.groups & FASTPROC_IO) != 0);
	printf("rchar %d\n", record.io.rchar != FASTPROC_UNKNOWN_U64);
	printf("thread_rchar %d\n", thread.io.rchar != FASTPROC_UNKNOWN_U64);
	printf("source %s\n", snapshot.source);
	return fastproc_close(handle);
}
