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
	const uint32_t texts[] = {FASTPROC_TEXT_STAT, FASTPROC_TEXT_STATM, FASTPROC_TEXT_STATUS};
	fastproc_snapshot_info snapshot;
	fastproc *handle;
	size_t place;
	int failed;

	failed = fastproc_open(&handle, FASTPROC_THREE_FILES, NULL, 0, FASTPROC_SIZES) ||
		 fastproc_snapshot(handle, &snapshot) || fastproc_find(handle, pid, &place);
	for (size_t i = 0; !failed && i < sizeof texts / sizeof *texts; i++) {
		const char *text;
		size_t length;

		failed = fastproc_text(handle, place, texts[i], &text, &length);
		fwrite(text, 1, length, stdout);
	}
	if (failed)
		fprintf(stderr, "status: %s\n", fastproc_error());
	fastproc_close(handle);
	return failed ? 1 : 0;
}
