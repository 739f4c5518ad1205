/*
 * The kernel's own texts of a process, byte for byte, without opening one of its files.
 *
 *	cc status.c $(pkg-config --cflags --libs fastproc) -o status && ./status 1
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fastproc.h>

int main(int argc, char **argv)
{
	uint32_t pid = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : (uint32_t)getpid();
	int (*const texts[])(fastproc *, size_t, const char **, size_t *) = {
		fastproc_stat_text,
		fastproc_statm_text,
		fastproc_status_text,
	};
	fastproc *handle;
	size_t place;
	int failed;

	failed = fastproc_open(&handle, FASTPROC_THREE_FILES, NULL, 0) || fastproc_snapshot(handle) ||
		 fastproc_find(handle, pid, &place);
	for (size_t i = 0; !failed && i < sizeof texts / sizeof *texts; i++) {
		const char *text;
		size_t length;

		failed = texts[i](handle, place, &text, &length);
		fwrite(text, 1, length, stdout);
	}
	if (failed)
		fprintf(stderr, "status: %s\n", fastproc_error());
	fastproc_close(handle);
	return failed ? 1 : 0;
}
