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
	uint32_t pid;
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
	fastproc_snapshot_info snapshot;
	fastproc *handle;

	if (fastproc_open(&handle, FASTPROC_MEMORY, NULL, 0, FASTPROC_SIZES) || fastproc_snapshot(handle, &snapshot)) {
		fprintf(stderr, "by_memory: %s\n", fastproc_error());
		fastproc_close(handle);
		return 1;
	}
	struct entry *entries = calloc(snapshot.count + 1, sizeof *entries);
	size_t count = 0;
	if (!entries) {
		perror("by_memory");
		return 1;
	}
	for (size_t place = 0; place < snapshot.count; place++) {
		fastproc_record record;

		/* A process without its own memory has none: 0. */
		if (fastproc_get(handle, place, &record) || !(record.identity.groups & FASTPROC_MEMORY))
			continue;
		entries[count].place = place;
		entries[count].pid = record.identity.tgid;
		entries[count++].rss = record.memory.rss_anon + record.memory.rss_file + record.memory.rss_shmem;
	}
	qsort(entries, count, sizeof *entries, larger);
	printf("     PID    RSS BYTES NAME\n");
	for (size_t i = 0; i < count && i < most; i++) {
		const char *name;

		fastproc_text(handle, entries[i].place, FASTPROC_TEXT_NAME, &name, NULL);
		printf("%8" PRIu32 " %12" PRIu64 " %s\n", entries[i].pid, entries[i].rss, name);
	}
	free(entries);
	return fastproc_close(handle);
}
