/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The processes and cgroups of a Linux machine, from the kernel's own structures. fastproc(3) begins with an example.
 *
 * Generated from the library's functions and from the descriptions of its records: do not edit.
 *
 * Functions return FASTPROC_OK; FASTPROC_UNKNOWN where a value is not known; or a negative FASTPROC_ERROR_*. Then what they
 * should write is empty, and fastproc_error() is a sentence that says what went wrong and what to do.
 *
 * index is the place of a process in the snapshot, of a thread among all threads, or of a cgroup. It begins at 0.
 *
 * A record is a copy, which stays as it is. It has the groups of fields that identity.groups names: those that the handle was
 * opened with, if the source knows them of this process. A value that is not known has every bit set (FASTPROC_UNKNOWN_*), and
 * is never shown as zero. [unknown]: it may be unknown although its group is there. [guarded]: the kernel shows it only to the
 * owner of the process and to readers with CAP_SYS_PTRACE; to others it is unknown, and identity.masked is 1.
 * [internal]: it is for the library alone.
 * [FASTPROC_X]: the handle must have been opened with that among its fields.
 *
 * A handle may be used by one thread at a time, different ones by different threads at once. After fork(2) the child opens
 * its own. Times are nanoseconds and sizes are bytes.
 */
