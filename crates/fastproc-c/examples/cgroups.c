/*
 * CPU time, memory and tasks of each cgroup.
 *
 *	cc cgroups.c $(pkg-config --cflags --libs fastproc) -o cgroups && ./cgroups
 */
#include <inttypes.h>
#include <stdio.h>

#include <fastproc.h>

static void print(uint64_t value)
{
	if (value == FASTPROC_UNKNOWN_U64)
		printf("%15s ", "-");
	else
		printf("%15" PRIu64 " ", value);
}

int main(void)
{
	uint32_t fields = FASTPROC_CGROUPS_CPU | FASTPROC_CGROUPS_MEMORY | FASTPROC_CGROUPS_PIDS;
	fastproc_snapshot_info snapshot;
	fastproc *handle;

	if (fastproc_open_cgroups(&handle, fields, NULL, 0, FASTPROC_SIZES) || fastproc_snapshot(handle, &snapshot)) {
		fprintf(stderr, "cgroups: %s\n", fastproc_error());
		fastproc_close(handle);
		return 1;
	}
	printf("%15s %15s %15s PATH\n", "CPU NS", "MEMORY BYTES", "TASKS");
	for (size_t i = 0; i < snapshot.count; i++) {
		fastproc_cgroup_record cgroup;
		const char *path;

		if (fastproc_get_cgroup(handle, i, &cgroup) || fastproc_text(handle, i, FASTPROC_TEXT_CGROUP, &path, NULL))
			continue;
		print(cgroup.cpu.usage_ns);
		/* Unknown for the root, and where the controller is not enabled. */
		print(cgroup.memory.current);
		print(cgroup.pids.current);
		printf("%s\n", path);
	}
	return fastproc_close(handle);
}
