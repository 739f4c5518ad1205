/*
 * The processes with the most memory.
 *
 *	cc by_memory.c $(pkg-config --cflags --libs fastproc) -o by_memory && ./by_memory 10
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <fastproc.h>

struct entry {
	size_t place;
	uint64_t rss;
};

static int larger(const void *left, const void *right)
{
	uint64_t a = ((const struct entry *)left)->rss, b = ((const struct entry *)right)->rss;

	return (a < b) - (a > b);
}

int main(int argc, char **argv)
{
	size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;
	fastproc *handle;

	if (fastproc_open(&handle, FASTPROC_MEMORY, NULL, 0) || fastproc_snapshot(handle)) {
		fprintf(stderr, "by_memory: %s\n", fastproc_error());
		fastproc_close(handle);
		return 1;
	}
	size_t count = fastproc_count(handle);
	struct entry *entries = calloc(count ? count : 1, sizeof *entries);
	if (!entries) {
		perror("by_memory");
		return 1;
	}
	for (size_t place = 0; place < count; place++) {
		entries[place].place = place;
		/* A process without its own memory has none: 0. */
		fastproc_rss_bytes(handle, place, &entries[place].rss);
	}
	qsort(entries, count, sizeof *entries, larger);
	printf("     PID    RSS BYTES NAME\n");
	for (size_t i = 0; i < count && i < most; i++) {
		const char *name;
		uint32_t pid;

		fastproc_pid(handle, entries[i].place, &pid);
		fastproc_name(handle, entries[i].place, &name, NULL);
		printf("%8" PRIu32 " %12" PRIu64 " %s\n", pid, entries[i].rss, name);
	}
	free(entries);
	return fastproc_close(handle);
}
