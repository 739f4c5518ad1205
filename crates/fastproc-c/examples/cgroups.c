/*
 * CPU time, memory and tasks of each cgroup.
 *
 *	cc cgroups.c $(pkg-config --cflags --libs fastproc) -o cgroups && ./cgroups
 */
#include <inttypes.h>
#include <stdio.h>

#include <fastproc.h>

static void print(int result, uint64_t value)
{
	if (result == FASTPROC_OK)
		printf("%15" PRIu64 " ", value);
	else
		printf("%15s ", "-");
}

int main(void)
{
	uint32_t fields = FASTPROC_CGROUPS_CPU | FASTPROC_CGROUPS_MEMORY | FASTPROC_CGROUPS_PIDS;
	fastproc_cgroups *handle;

	if (fastproc_cgroups_open(&handle, fields, NULL, 0) || fastproc_cgroups_snapshot(handle)) {
		fprintf(stderr, "cgroups: %s\n", fastproc_error());
		fastproc_cgroups_close(handle);
		return 1;
	}
	printf("%15s %15s %15s PATH\n", "CPU NS", "MEMORY BYTES", "TASKS");
	for (size_t i = 0; i < fastproc_cgroups_count(handle); i++) {
		const char *path;
		uint64_t value;
		int result;

		result = fastproc_cgroups_cpu_usage_ns(handle, i, &value);
		print(result, value);
		/* Unknown for the root, and where the controller is not enabled. */
		result = fastproc_cgroups_memory_current_bytes(handle, i, &value);
		print(result, value);
		result = fastproc_cgroups_pids_current(handle, i, &value);
		print(result, value);
		fastproc_cgroups_path(handle, i, &path, NULL);
		printf("%s\n", path);
	}
	return fastproc_cgroups_close(handle);
}
