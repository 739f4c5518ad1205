/*
 * Values of one process, by its id. Unknown values are distinguished from zero.
 *
 *	cc one_process.c $(pkg-config --cflags --libs fastproc) -o one_process && ./one_process 1
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fastproc.h>

static void print(const char *name, uint64_t value)
{
	if (value == FASTPROC_UNKNOWN_U64)
		printf("%s -\n", name);
	else
		printf("%s %" PRIu64 "\n", name, value);
}

int main(int argc, char **argv)
{
	uint64_t pid = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)getpid();
	uint32_t fields = FASTPROC_TOP | FASTPROC_USERS | FASTPROC_IO | FASTPROC_CMDLINE;
	fastproc_snapshot_info snapshot;
	fastproc_record process;
	fastproc *handle;
	size_t place, length;
	const char *text;

	if (fastproc_open(&handle, fields, NULL, 0, FASTPROC_SIZES) || fastproc_snapshot(handle, &snapshot) ||
	    fastproc_find(handle, pid, &place) || fastproc_get(handle, place, &process)) {
		fprintf(stderr, "one_process: %s\n", fastproc_error());
		fastproc_close(handle);
		return 1;
	}
	fastproc_text(handle, place, FASTPROC_TEXT_NAME, &text, NULL);
	printf("name %s\n", text);
	printf("state %c\n", fastproc_state(process.identity.state_bits));
	if (fastproc_text(handle, place, FASTPROC_TEXT_CMDLINE, &text, &length) == FASTPROC_OK) {
		/* A NUL follows each argument. */
		printf("cmdline");
		for (size_t at = 0; at < length; at++) {
			if (at == 0 || text[at - 1] == '\0')
				printf(" %s", text + at);
		}
		printf("\n");
	}
	printf("ppid %" PRIu32 "\n", process.identity.ppid);
	printf("threads %" PRIu32 "\n", process.identity.num_threads);
	if (process.identity.groups & FASTPROC_USERS)
		printf("uid %" PRIu32 "\n", process.users.uid);
	if (process.identity.groups & FASTPROC_MEMORY)
		print("rss_bytes", process.memory.rss_anon + process.memory.rss_file + process.memory.rss_shmem);
	print("utime_ns", process.cpu.utime_ns);
	print("read_bytes", process.io.read_bytes);
	return fastproc_close(handle);
}
