/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The processes and cgroups of a Linux machine, from the kernel's own structures. fastproc(3) begins with an example.
 *
 * Generated from the library's functions: do not edit.
 *
 * Functions return FASTPROC_OK; FASTPROC_UNKNOWN where a value is not known, which is never shown as zero; or a negative
 * FASTPROC_ERROR_*. Then *value is 0, *text is "", and fastproc_error() is a sentence that says what went wrong and what to do.
 *
 * index is the place of a process in the snapshot, from 0 to fastproc_count() - 1. In fastproc_cgroups_*, it is that of a cgroup.
 *
 * A text ends in a NUL, which *length does not count; length may be NULL. It belongs to the handle, and is valid until the
 * same function is called again, the next snapshot is made or the handle is closed.
 *
 * [FASTPROC_X]: the value is there if the handle was opened with that among its fields; the others always are.
 * [guarded]: the kernel shows it only to the owner of the process and to readers with CAP_SYS_PTRACE; to others
 * FASTPROC_UNKNOWN.
 *
 * A handle may be used by one thread at a time, different ones by different threads at once. After fork(2) the child opens
 * its own. Times are nanoseconds and sizes are bytes, as the names say.
 */
