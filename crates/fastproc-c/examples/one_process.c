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

static void print(const char *name, int result, uint64_t value)
{
	if (result == FASTPROC_OK)
		printf("%s %" PRIu64 "\n", name, value);
	else
		printf("%s - (%s)\n", name, fastproc_error());
}

int main(int argc, char **argv)
{
	uint32_t pid = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : (uint32_t)getpid();
	uint32_t fields = FASTPROC_TOP | FASTPROC_USERS | FASTPROC_IO | FASTPROC_CMDLINE;
	fastproc *handle;
	size_t place, length;

	if (fastproc_open(&handle, fields, NULL, 0) || fastproc_snapshot(handle) ||
	    fastproc_find(handle, pid, &place)) {
		fprintf(stderr, "one_process: %s\n", fastproc_error());
		fastproc_close(handle);
		return 1;
	}
	const char *text;
	uint32_t id, threads;
	uint64_t value;
	char state;
	int result;

	fastproc_name(handle, place, &text, NULL);
	printf("name %s\n", text);
	fastproc_state(handle, place, &state);
	printf("state %c\n", state);
	if (fastproc_cmdline(handle, place, &text, &length) == FASTPROC_OK) {
		/* A NUL follows each argument. */
		printf("cmdline");
		for (size_t at = 0; at < length; at++) {
			if (at == 0 || text[at - 1] == '\0')
				printf(" %s", text + at);
		}
		printf("\n");
	}
	fastproc_identity_ppid(handle, place, &id);
	printf("ppid %" PRIu32 "\n", id);
	fastproc_identity_num_threads(handle, place, &threads);
	printf("threads %" PRIu32 "\n", threads);
	result = fastproc_users_uid(handle, place, &id);
	print("uid", result, id);
	result = fastproc_rss_bytes(handle, place, &value);
	print("rss_bytes", result, value);
	result = fastproc_cpu_utime_ns(handle, place, &value);
	print("utime_ns", result, value);
	result = fastproc_io_read_bytes(handle, place, &value);
	print("read_bytes", result, value);
	return fastproc_close(handle);
}
