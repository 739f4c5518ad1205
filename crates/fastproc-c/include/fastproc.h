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

#ifndef FASTPROC_H
#define FASTPROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Success.
 */
#define FASTPROC_OK 0

/**
 * The value is unknown, or not shown to this reader. It is not zero.
 */
#define FASTPROC_UNKNOWN 1

/**
 * A pointer is NULL, a place does not exist, or another argument is invalid.
 */
#define FASTPROC_ERROR_ARGUMENT -1

/**
 * The handle has been closed.
 */
#define FASTPROC_ERROR_CLOSED -2

/**
 * The handle was opened before fork(2), in the parent.
 */
#define FASTPROC_ERROR_FORKED -3

/**
 * There is no snapshot, or it has not been compared.
 */
#define FASTPROC_ERROR_NO_SNAPSHOT -4

/**
 * The snapshot has no process with this id, or no cgroup with this path.
 */
#define FASTPROC_ERROR_NO_PROCESS -5

/**
 * The handle was opened without the fields that this value belongs to.
 */
#define FASTPROC_ERROR_NOT_ASKED -6

/**
 * No source can be used, or it failed: fastproc_error() says why.
 */
#define FASTPROC_ERROR_SOURCE -7

/**
 * A defect of the library. The handle can only be closed.
 */
#define FASTPROC_ERROR_INTERNAL -8

/**
 * Fields that a top shows: CPU time and sizes of memory.
 */
#define FASTPROC_TOP (FASTPROC_CPU | FASTPROC_MEMORY)

/**
 * Fields that fastproc_stat_text(), fastproc_statm_text() and fastproc_status_text() need.
 */
#define FASTPROC_THREE_FILES ((((((((((FASTPROC_CPU | FASTPROC_MEMORY) | FASTPROC_LAYOUT) | FASTPROC_CREDENTIALS) | FASTPROC_SIGNALS) | FASTPROC_NAMESPACES) | FASTPROC_SCHEDULING) | FASTPROC_LIMITS) | FASTPROC_MEMORY_DETAILS) | FASTPROC_USERS) | FASTPROC_SCHEDULING_DETAILS)

/**
 * Request command lines from the service. fastproc_cmdline() reads the others from /proc.
 */
#define FASTPROC_CMDLINE 65536

/**
 * Request paths of programs from the service, for fastproc_exe().
 */
#define FASTPROC_EXE 131072

/**
 * A limit of a cgroup that is not set: UINT64_MAX - 1.
 */
#define FASTPROC_NO_LIMIT 18446744073709551614ull

/**
 * Pressure: tasks waited for a CPU.
 */
#define FASTPROC_PRESSURE_CPU 0

/**
 * Pressure: tasks waited for memory.
 */
#define FASTPROC_PRESSURE_MEMORY 1

/**
 * Pressure: tasks waited for I/O.
 */
#define FASTPROC_PRESSURE_IO 2

/**
 * CPU time, faults, context switches.
 */
#define FASTPROC_CPU 1

/**
 * Sizes of memory. All 0 for a process without memory of its own (a kernel thread, a zombie).
 */
#define FASTPROC_MEMORY 2

/**
 * Addresses.
 */
#define FASTPROC_LAYOUT 4

/**
 * Capabilities, seccomp, umask, and how many supplementary groups there are.
 */
#define FASTPROC_CREDENTIALS 8

/**
 * Signal sets.
 */
#define FASTPROC_SIGNALS 16

/**
 * Pid namespaces.
 */
#define FASTPROC_NAMESPACES 32

/**
 * Priority, policy, processor.
 */
#define FASTPROC_SCHEDULING 64

/**
 * Limits.
 */
#define FASTPROC_LIMITS 128

/**
 * I/O counters.
 */
#define FASTPROC_IO 256

/**
 * Cgroup of the default hierarchy.
 */
#define FASTPROC_CGROUP 512

/**
 * Every thread on its own.
 */
#define FASTPROC_THREADS 1024

/**
 * What else is known of its memory. All 0 for a process without memory of its own.
 */
#define FASTPROC_MEMORY_DETAILS 2048

/**
 * Users and groups.
 */
#define FASTPROC_USERS 4096

/**
 * What else is known of its scheduling.
 */
#define FASTPROC_SCHEDULING_DETAILS 8192

/**
 * CPU time, throttling and weight.
 */
#define FASTPROC_CGROUPS_CPU 1

/**
 * Memory in use, limits and events.
 */
#define FASTPROC_CGROUPS_MEMORY 2

/**
 * The lines of memory.stat.
 */
#define FASTPROC_CGROUPS_MEMORY_STAT 4

/**
 * Processes and threads.
 */
#define FASTPROC_CGROUPS_PIDS 8

/**
 * I/O.
 */
#define FASTPROC_CGROUPS_IO 16

/**
 * Time in which tasks waited.
 */
#define FASTPROC_CGROUPS_PRESSURE 32

/**
 * Huge pages.
 */
#define FASTPROC_CGROUPS_HUGETLB 64

/**
 * CPU time by CPU.
 */
#define FASTPROC_CGROUPS_CPU_TIMES 128

/**
 * What `fastproc_open()` opens: a source of snapshots, and the last one.
 */
typedef struct fastproc fastproc;

/**
 * What `fastproc_cgroups_open()` opens: a source of cgroups, and the last snapshot.
 */
typedef struct fastproc_cgroups fastproc_cgroups;

/**
 * The ids of a process in a pid namespace below that of `/proc`; 0 if the namespace does not see it.
 */
typedef struct fastproc_ids {
    /**
     * Process id.
     */
    uint32_t tgid;
    /**
     * Thread id of the leading thread.
     */
    uint32_t pid;
    /**
     * Process group.
     */
    uint32_t pgrp;
    /**
     * Session.
     */
    uint32_t session;
} fastproc_ids;

/**
 * I/O of a cgroup with one block device: a line of io.stat.
 */
typedef struct fastproc_device {
    /**
     * Major number of the device.
     */
    uint32_t major;
    /**
     * Minor number of the device.
     */
    uint32_t minor;
    /**
     * Bytes read.
     */
    uint64_t rbytes;
    /**
     * Bytes written.
     */
    uint64_t wbytes;
    /**
     * Bytes discarded.
     */
    uint64_t dbytes;
    /**
     * Reads.
     */
    uint64_t rios;
    /**
     * Writes.
     */
    uint64_t wios;
    /**
     * Discards.
     */
    uint64_t dios;
} fastproc_device;

/**
 * Huge pages of one size in a cgroup: the files hugetlb.SIZE.*. UINT64_MAX: a value is not known, because this kernel lacks
 * the file. FASTPROC_NO_LIMIT: there is no limit.
 */
typedef struct fastproc_page_size {
    /**
     * Size of a page. Bytes, as the next four.
     */
    uint64_t size;
    /**
     * Pages in use.
     */
    uint64_t current;
    /**
     * Their limit.
     */
    uint64_t max;
    /**
     * Reserved pages.
     */
    uint64_t reserved;
    /**
     * Their limit.
     */
    uint64_t reserved_max;
    /**
     * Times that an allocation failed because of a limit.
     */
    uint64_t failures;
} fastproc_page_size;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, as in "0.1.0".
 */
const char *fastproc_version(void);

/**
 * The message of the last function in this thread that did not return FASTPROC_OK: what went wrong, and what to do.
 * Valid until the next such function.
 */
const char *fastproc_error(void);

/**
 * Opens a source of snapshots.
 *
 * fields: the contents of records, FASTPROC_* combined by |; 0 for ids, names and states, which are always present.
 * source: "service", "bpf", "bpf-iter" or "procfs"; NULL or "auto" for the first of them that works.
 * max_age_ns: how old a snapshot of the service may be, in nanoseconds; 0 for one that begins after the request.
 *
 * *handle is NULL if it fails.
 */
int fastproc_open(struct fastproc **handle, uint32_t fields, const char *source, uint64_t max_age_ns);

/**
 * Closes a handle, and invalidates all its texts. NULL does nothing.
 */
int fastproc_close(struct fastproc *handle);

/**
 * The field with this name, as in "memory-details" or "MEMORY_DETAILS", for programs that read names.
 */
int fastproc_field(const char *name, uint32_t *field);

/**
 * The source in use: "service", "bpf", "bpf-iter" or "procfs". NULL for a handle that cannot be used.
 */
const char *fastproc_source(const struct fastproc *handle);

/**
 * Makes a snapshot of all processes. The places of the last snapshot, its texts and its differences become invalid.
 *
 * After a failure there is no snapshot; the next call may succeed.
 */
int fastproc_snapshot(struct fastproc *handle);

/**
 * The number of processes in the snapshot; 0 if there is none. Their places are 0 to count - 1, in the order of their
 * ids.
 */
size_t fastproc_count(const struct fastproc *handle);

/**
 * The place of the process with this id.
 */
int fastproc_find(const struct fastproc *handle, uint32_t pid, size_t *index);

/**
 * Time since boot when reading the snapshot began, on the clock of start times. Nanoseconds.
 */
int fastproc_snapshot_began_ns(const struct fastproc *handle, uint64_t *value);

/**
 * How long reading the snapshot took. Nanoseconds.
 */
int fastproc_snapshot_took_ns(const struct fastproc *handle, uint64_t *value);

/**
 * Process id.
 */
int fastproc_pid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * State of the leading thread, a letter as in proc(5): R, S, D, T, t, X, Z, P or I.
 */
int fastproc_state(const struct fastproc *handle, size_t index, char *value);

/**
 * Whether it is a kernel thread.
 */
int fastproc_is_kernel_thread(const struct fastproc *handle, size_t index, bool *value);

/**
 * Whether the kernel shows this reader all values of the process: also those that are marked [guarded].
 */
int fastproc_shows_everything(const struct fastproc *handle, size_t index, bool *value);

/**
 * Resident memory, exact if the kernel's own statm is: VmRSS. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_rss_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Resident memory that is not private by nature: the third number of statm. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_shared_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Supplementary group number n, from 0 to fastproc_credentials_ngroups() - 1, in the kernel's order. [FASTPROC_CREDENTIALS]
 */
int fastproc_supplementary_group(const struct fastproc *handle,
                                 size_t index,
                                 size_t n,
                                 uint32_t *value);

/**
 * Its ids in pid namespace number n below that of `/proc`, from 0, the outermost, to fastproc_namespaces_level() - 1.
 * [FASTPROC_NAMESPACES]
 */
int fastproc_nested_ids(const struct fastproc *handle, size_t index, size_t n, struct fastproc_ids *value);

/**
 * The CPUs that the leading thread may run on: bit b stands for CPU 64 n + b. [FASTPROC_SCHEDULING_DETAILS]
 */
int fastproc_cpus_allowed(const struct fastproc *handle, size_t index, size_t n, uint64_t *value);

/**
 * The memory nodes that it may allocate from: bit b stands for node 64 n + b. [FASTPROC_SCHEDULING_DETAILS]
 */
int fastproc_mems_allowed(const struct fastproc *handle, size_t index, size_t n, uint64_t *value);

/**
 * Name, as stat and status show it; for a kernel worker with its current work. Any bytes but NUL.
 */
int fastproc_name(struct fastproc *handle, size_t index, const char **text, size_t *length);

/**
 * Command line: arguments, each followed by a NUL; no more than 128 KiB. Empty for a kernel thread or a zombie.
 */
int fastproc_cmdline(struct fastproc *handle, size_t index, const char **text, size_t *length);

/**
 * Path of the program; it ends in " (deleted)" if the file was removed. [guarded]
 */
int fastproc_exe(struct fastproc *handle, size_t index, const char **text, size_t *length);

/**
 * Path of the cgroup of version 2, from /proc. With FASTPROC_CGROUP among the fields, read once per cgroup.
 */
int fastproc_cgroup_path(struct fastproc *handle, size_t index, const char **text, size_t *length);

/**
 * The text of /proc/PID/stat, as the kernel would print it for this reader. [FASTPROC_THREE_FILES]
 */
int fastproc_stat_text(struct fastproc *handle, size_t index, const char **text, size_t *length);

/**
 * The text of /proc/PID/statm. [FASTPROC_THREE_FILES]
 */
int fastproc_statm_text(struct fastproc *handle, size_t index, const char **text, size_t *length);

/**
 * The text of /proc/PID/status. [FASTPROC_THREE_FILES]
 */
int fastproc_status_text(struct fastproc *handle, size_t index, const char **text, size_t *length);

/**
 * The number of threads of all processes in the snapshot; 0 if there is none. [FASTPROC_THREADS]
 *
 * The functions fastproc_thread_* take the place of a thread among these; fastproc_thread_tgid() returns its process.
 */
size_t fastproc_thread_count(const struct fastproc *handle);

/**
 * State of the thread, like fastproc_state(). [FASTPROC_THREADS]
 */
int fastproc_thread_state(const struct fastproc *handle, size_t index, char *value);

/**
 * Compares the snapshot with the one that was compared before, and keeps it for the next time.
 *
 * Call it after fastproc_snapshot(). Then fastproc_change_*() return what each process did since, and
 * fastproc_gone_*() the processes that are gone. The first time there is nothing to compare with, and these return
 * FASTPROC_UNKNOWN.
 */
int fastproc_difference(struct fastproc *handle);

/**
 * The number of processes that the earlier snapshot had and this one lacks; 0 if they were not compared.
 */
size_t fastproc_gone_count(const struct fastproc *handle);

/**
 * The process id of one of them, from 0 to fastproc_gone_count() - 1, in the order of the ids.
 */
int fastproc_gone_pid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * When that process had started, after boot. Nanoseconds.
 */
int fastproc_gone_start_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Opens a source of snapshots of all cgroups of version 2. They are independent of fastproc_open().
 *
 * fields: the contents of records, FASTPROC_CGROUPS_* combined by |; 0 for ids and states, which are always present.
 * source: "bpf", "service" or "files"; NULL or "auto" for the first of them that works.
 * max_age_ns: how old CPU time, memory.stat and I/O may be, in nanoseconds; 0: they are updated for every snapshot.
 *
 * *handle is NULL if it fails.
 */
int fastproc_cgroups_open(struct fastproc_cgroups **handle, uint32_t fields, const char *source, uint64_t max_age_ns);

/**
 * Closes a handle. NULL does nothing.
 */
int fastproc_cgroups_close(struct fastproc_cgroups *handle);

/**
 * The source in use: "bpf", "service" or "files". NULL for a handle that cannot be used.
 */
const char *fastproc_cgroups_source(const struct fastproc_cgroups *handle);

/**
 * Makes a snapshot of all cgroups that this process can reach. The places of the last snapshot become invalid.
 *
 * After a failure there is no snapshot; the next call may succeed.
 */
int fastproc_cgroups_snapshot(struct fastproc_cgroups *handle);

/**
 * The number of cgroups in the snapshot; 0 if there is none. Their places are 0 to count - 1, parents before their
 * children.
 */
size_t fastproc_cgroups_count(const struct fastproc_cgroups *handle);

/**
 * The number of cgroups that were left out because their paths are too long: of more than 4,000 bytes, or 1,024 or 64
 * parts from a service. What is below them is left out too, but not counted.
 */
size_t fastproc_cgroups_left_out(const struct fastproc_cgroups *handle);

/**
 * The place of the cgroup with this path below the mount of the hierarchy, as in "/system.slice".
 */
int fastproc_cgroups_find(const struct fastproc_cgroups *handle, const char *path, size_t *index);

/**
 * Time since boot when reading the snapshot began. Nanoseconds.
 */
int fastproc_cgroups_snapshot_began_ns(const struct fastproc_cgroups *handle, uint64_t *value);

/**
 * Path below the mount of the hierarchy. The root is "/".
 */
int fastproc_cgroups_path(struct fastproc_cgroups *handle, size_t index, const char **text, size_t *length);

/**
 * The value of a line of memory.stat, as in "anon": bytes, or events. [FASTPROC_CGROUPS_MEMORY_STAT]
 */
int fastproc_cgroups_memory_stat(const struct fastproc_cgroups *handle,
                                 size_t index,
                                 const char *name,
                                 uint64_t *value);

/**
 * The share of the last 10, 60 or 300 seconds in which some tasks waited for a resource (FASTPROC_PRESSURE_*), or all
 * tasks if full is true: 1.0 is all the time. [FASTPROC_CGROUPS_PRESSURE]
 */
int fastproc_cgroups_pressure_share(const struct fastproc_cgroups *handle,
                                    size_t index,
                                    int resource,
                                    bool full,
                                    uint32_t seconds,
                                    double *value);

/**
 * The number of block devices in io.stat of a cgroup; 0 if they are unknown. [FASTPROC_CGROUPS_IO]
 */
size_t fastproc_cgroups_device_count(const struct fastproc_cgroups *handle, size_t index);

/**
 * I/O of a cgroup with device number n, from 0 to fastproc_cgroups_device_count() - 1. [FASTPROC_CGROUPS_IO]
 */
int fastproc_cgroups_device(const struct fastproc_cgroups *handle,
                            size_t index,
                            size_t n,
                            struct fastproc_device *value);

/**
 * The number of sizes of huge pages of a cgroup; 0 if they are unknown. [FASTPROC_CGROUPS_HUGETLB]
 */
size_t fastproc_cgroups_page_size_count(const struct fastproc_cgroups *handle, size_t index);

/**
 * Huge pages of size number n, from 0 to fastproc_cgroups_page_size_count() - 1. [FASTPROC_CGROUPS_HUGETLB]
 */
int fastproc_cgroups_page_size(const struct fastproc_cgroups *handle,
                               size_t index,
                               size_t n,
                               struct fastproc_page_size *value);

/**
 * The number of CPUs whose times are known of a cgroup; 0 if none are. Only the source "bpf" has them.
 * [FASTPROC_CGROUPS_CPU_TIMES]
 */
size_t fastproc_cgroups_cpu_count(const struct fastproc_cgroups *handle, size_t index);

/**
 * CPU time on one CPU, from 0 to fastproc_cgroups_cpu_count() - 1. Nanoseconds. [FASTPROC_CGROUPS_CPU_TIMES]
 */
int fastproc_cgroups_cpu_time_ns(const struct fastproc_cgroups *handle, size_t index, size_t cpu, uint64_t *value);

/**
 * Start time after boot (`task->start_boottime`); `starttime` of `/proc/PID/stat`. Exact, or on a whole tick of 10 ms if text or the service has rounded it: see `is_same_start()` of the library for Rust. Nanoseconds.
 */
int fastproc_identity_start_ns(const struct fastproc *handle,
                               size_t index,
                               uint64_t *value);

/**
 * Process id, in the pid namespace of `/proc` (`task->tgid`).
 */
int fastproc_identity_tgid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Parent's process id (`real_parent->tgid`).
 */
int fastproc_identity_ppid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Process group.
 */
int fastproc_identity_pgrp(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Session.
 */
int fastproc_identity_session(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Process that traces this one by ptrace(2), or 0.
 */
int fastproc_identity_tracer_pid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Kernel flags, `PF_*` (`task->flags`).
 */
int fastproc_identity_flags(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Controlling terminal as a device number (`new_encode_dev()`), or 0.
 */
int fastproc_identity_tty_nr(const struct fastproc *handle, size_t index, int32_t *value);

/**
 * Foreground process group of that terminal, or -1.
 */
int fastproc_identity_tpgid(const struct fastproc *handle, size_t index, int32_t *value);

/**
 * Threads (`signal->nr_threads`).
 */
int fastproc_identity_num_threads(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Signal sent to the parent on exit (`task->exit_signal`).
 */
int fastproc_identity_exit_signal(const struct fastproc *handle, size_t index, int32_t *value);

/**
 * Exit status as waitpid(2) shows it. [guarded]
 */
int fastproc_identity_exit_code(const struct fastproc *handle, size_t index, int32_t *value);

/**
 * Threads whose times are folded in, the leader included.
 */
int fastproc_identity_seen_threads(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Another after a thread has begun or ended, where the source compares that.
 */
int fastproc_identity_threads_state(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * 1 if the process has one thread and that is not running: the kernel's answer to "is there a wait channel". [guarded]
 */
int fastproc_identity_wchan(const struct fastproc *handle, size_t index, uint8_t *value);

/**
 * 1 if the process has memory of its own; kernel threads and zombies have none.
 */
int fastproc_identity_has_mm(const struct fastproc *handle, size_t index, uint8_t *value);

/**
 * 1 while the process writes a core dump.
 */
int fastproc_identity_core_dumping(const struct fastproc *handle, size_t index, uint8_t *value);

/**
 * Command name, NUL padded (`task->comm`).
 */
int fastproc_identity_comm(struct fastproc *handle, size_t index, const char **text, size_t *length);

/**
 * Time in user mode, scaled to the precise run time as the kernel does (`cputime_adjust()`), by the library. Nanoseconds. [FASTPROC_CPU]
 */
int fastproc_cpu_utime_ns(const struct fastproc *handle,
                          size_t index,
                          uint64_t *value);

/**
 * Time in kernel mode, scaled likewise. Nanoseconds. [FASTPROC_CPU]
 */
int fastproc_cpu_stime_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Guest time: time spent running a virtual CPU; also part of `utime_ns`. Nanoseconds. [FASTPROC_CPU]
 */
int fastproc_cpu_gtime_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * User time of children that were waited for. Nanoseconds. [FASTPROC_CPU]
 */
int fastproc_cpu_cutime_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * System time of children that were waited for. Nanoseconds. [FASTPROC_CPU]
 */
int fastproc_cpu_cstime_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Guest time of children that were waited for. Nanoseconds. [FASTPROC_CPU]
 */
int fastproc_cpu_cgtime_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Page faults that needed no I/O. [FASTPROC_CPU]
 */
int fastproc_cpu_minflt(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Page faults that needed I/O. [FASTPROC_CPU]
 */
int fastproc_cpu_majflt(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Minor faults of children that were waited for. [FASTPROC_CPU]
 */
int fastproc_cpu_cminflt(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Major faults of children that were waited for. [FASTPROC_CPU]
 */
int fastproc_cpu_cmajflt(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Voluntary context switches of the leading thread, as in `/proc/PID/status`. [FASTPROC_CPU]
 */
int fastproc_cpu_nvcsw(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Involuntary context switches of the leading thread. [FASTPROC_CPU]
 */
int fastproc_cpu_nivcsw(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Precise run time (`se.sum_exec_runtime`); `/proc` does not tell. Nanoseconds. [FASTPROC_CPU]
 */
int fastproc_cpu_sum_exec_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Virtual size (`mm->total_vm`): `VmSize`, `vsize` of stat, `size` of statm. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_vsize_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Resident set as stat shows it: without what the CPUs have not yet folded in, so up to some MiB off. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_rss_approx_bytes(const struct fastproc *handle,
                                     size_t index,
                                     uint64_t *value);

/**
 * Resident anonymous memory: `RssAnon`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_rss_anon_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Resident file mappings: `RssFile`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_rss_file_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Resident shared memory (tmpfs, System V, shared anonymous): `RssShmem`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_rss_shmem_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Swapped out: `VmSwap`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_swap_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Largest virtual size so far: `VmPeak`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_peak_vsize_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Largest resident set so far: `VmHWM`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_peak_rss_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Locked by mlock(2): `VmLck`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_locked_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Pinned, so that it cannot be moved: `VmPin`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_pinned_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Data: `VmData`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_data_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Stack: `VmStk`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_stack_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Text, no more than there is executable memory: `VmExe`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_exe_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * The rest of the executable memory: `VmLib`. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_lib_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Text, from first to last page: `trs` of statm. Bytes. [FASTPROC_MEMORY]
 */
int fastproc_memory_text_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Real user. [FASTPROC_USERS]
 */
int fastproc_users_uid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Effective user. [FASTPROC_USERS]
 */
int fastproc_users_euid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Saved user. [FASTPROC_USERS]
 */
int fastproc_users_suid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * User for access to files. [FASTPROC_USERS]
 */
int fastproc_users_fsuid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Real group. [FASTPROC_USERS]
 */
int fastproc_users_gid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Effective group. [FASTPROC_USERS]
 */
int fastproc_users_egid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Saved group. [FASTPROC_USERS]
 */
int fastproc_users_sgid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Group for access to files. [FASTPROC_USERS]
 */
int fastproc_users_fsgid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Kernel priority as stat shows it: 20 plus nice, or minus one minus the real-time priority. [FASTPROC_SCHEDULING]
 */
int fastproc_scheduling_priority(const struct fastproc *handle, size_t index, int32_t *value);

/**
 * Nice value, -20 to 19. [FASTPROC_SCHEDULING]
 */
int fastproc_scheduling_nice(const struct fastproc *handle, size_t index, int32_t *value);

/**
 * Real-time priority, 1 to 99, or 0. [FASTPROC_SCHEDULING]
 */
int fastproc_scheduling_rt_priority(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * `SCHED_*`. [FASTPROC_SCHEDULING]
 */
int fastproc_scheduling_policy(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * CPU that it last ran on. [FASTPROC_SCHEDULING]
 */
int fastproc_scheduling_processor(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Page tables: `VmPTE`. Bytes. [FASTPROC_MEMORY_DETAILS]
 */
int fastproc_memory_details_page_tables_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Huge pages of hugetlbfs: `HugetlbPages`. Bytes. [FASTPROC_MEMORY_DETAILS]
 */
int fastproc_memory_details_hugetlb_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * `mm->flags`; without memory, 1 if the user may still trace the process. [FASTPROC_MEMORY_DETAILS] [guarded]
 */
int fastproc_memory_details_mm_flags(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Mask that removes an address's tag (`mm->context.untag_mask`, x86): `untag_mask`. [FASTPROC_MEMORY_DETAILS]
 */
int fastproc_memory_details_untag_mask(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the text starts. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_start_code(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the text ends. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_end_code(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the stack starts. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_start_stack(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Stack pointer of a dying or dumping process, else 0. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_kstkesp(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Instruction pointer of a dying or dumping process, else 0. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_kstkeip(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the data starts. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_start_data(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the data ends. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_end_data(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the heap starts. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_start_brk(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the arguments start. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_arg_start(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the arguments end. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_arg_end(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the environment starts. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_env_start(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Where the environment ends. [FASTPROC_LAYOUT] [guarded]
 */
int fastproc_layout_env_end(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Inheritable capabilities: `CapInh`. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_cap_inheritable(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Permitted capabilities: `CapPrm`. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_cap_permitted(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Effective capabilities: `CapEff`. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_cap_effective(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bounding set of capabilities: `CapBnd`. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_cap_bounding(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Ambient capabilities: `CapAmb`. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_cap_ambient(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * `task->atomic_flags`: bit 0 `no_new_privs`, bits 3 to 7 speculation control. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_atomic_flags(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Inode number of the user namespace. [FASTPROC_CREDENTIALS] [guarded]
 */
int fastproc_credentials_user_ns(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * 0 off, 1 strict, 2 filter. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_seccomp_mode(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Number of seccomp filters. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_seccomp_filters(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * File mode creation mask; a process that ends has none any more. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_umask(const struct fastproc *handle, size_t index, int32_t *value);

/**
 * Number of supplementary groups. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_ngroups(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * `ARCH_SHSTK_*` bits of the leading thread (`task->thread.features`, x86 with user shadow stacks, else 0): bit 0 it has a shadow stack, bit 1 it may write to it. `x86_Thread_features`. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_thread_features(const struct fastproc *handle,
                                         size_t index,
                                         uint64_t *value);

/**
 * Those that are locked: `x86_Thread_features_locked`. [FASTPROC_CREDENTIALS]
 */
int fastproc_credentials_thread_features_locked(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Pending for the leading thread: `SigPnd`. [FASTPROC_SIGNALS]
 */
int fastproc_signals_pending(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Pending for the process: `ShdPnd`. [FASTPROC_SIGNALS]
 */
int fastproc_signals_shared_pending(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Blocked by the leading thread: `SigBlk`. [FASTPROC_SIGNALS]
 */
int fastproc_signals_blocked(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Ignored: `SigIgn`. [FASTPROC_SIGNALS]
 */
int fastproc_signals_ignored(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Caught: `SigCgt`. [FASTPROC_SIGNALS]
 */
int fastproc_signals_caught(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Signals queued by the process's user, over all its processes: `SigQ`, the first number. [FASTPROC_SIGNALS]
 */
int fastproc_signals_queued(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Their limit (`RLIMIT_SIGPENDING`): `SigQ`, the second number. [FASTPROC_SIGNALS]
 */
int fastproc_signals_queue_limit(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * How many pid namespaces the process is below that of `/proc`. [FASTPROC_NAMESPACES]
 */
int fastproc_namespaces_level(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * CPUs 0 to 63 of the allowed ones. [FASTPROC_SCHEDULING_DETAILS]
 */
int fastproc_scheduling_details_cpus_allowed(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Memory nodes 0 to 63 of the allowed ones. [FASTPROC_SCHEDULING_DETAILS]
 */
int fastproc_scheduling_details_mems_allowed(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Time waited for block I/O (`delays->blkio_delay`; counts only with delay accounting on). Nanoseconds. [FASTPROC_SCHEDULING_DETAILS]
 */
int fastproc_scheduling_details_blkio_ns(const struct fastproc *handle,
                                         size_t index,
                                         uint64_t *value);

/**
 * NUMA group, or 0. [FASTPROC_SCHEDULING_DETAILS]
 */
int fastproc_scheduling_details_ngid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * `RLIMIT_RSS`, `UINT64_MAX` for none: `rsslim`. Bytes. [FASTPROC_LIMITS]
 */
int fastproc_limits_rss_limit_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Descriptor slots allocated: `FDSize`. [FASTPROC_LIMITS]
 */
int fastproc_limits_fd_size(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Bytes that read(2) and the like returned. Bytes. [FASTPROC_IO] [guarded]
 */
int fastproc_io_rchar_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bytes that write(2) and the like took. Bytes. [FASTPROC_IO] [guarded]
 */
int fastproc_io_wchar_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Read calls. [FASTPROC_IO] [guarded]
 */
int fastproc_io_syscr(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Write calls. [FASTPROC_IO] [guarded]
 */
int fastproc_io_syscw(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bytes fetched from storage. Bytes. [FASTPROC_IO] [guarded]
 */
int fastproc_io_read_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bytes sent to storage. Bytes. [FASTPROC_IO] [guarded]
 */
int fastproc_io_write_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bytes that were not written after all, because the file was truncated. Bytes. [FASTPROC_IO] [guarded]
 */
int fastproc_io_cancelled_write_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * `kernfs_node.id`, which is the inode number of its folder. [FASTPROC_CGROUP]
 */
int fastproc_cgroup_id(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Start time after boot. Nanoseconds. [FASTPROC_THREADS]
 */
int fastproc_thread_start_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Time in user mode, scaled as the kernel does. Nanoseconds. [FASTPROC_THREADS]
 */
int fastproc_thread_utime_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Time in kernel mode, scaled as the kernel does. Nanoseconds. [FASTPROC_THREADS]
 */
int fastproc_thread_stime_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Guest time. Nanoseconds. [FASTPROC_THREADS]
 */
int fastproc_thread_gtime_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Page faults that needed no I/O. [FASTPROC_THREADS]
 */
int fastproc_thread_minflt(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Page faults that needed I/O. [FASTPROC_THREADS]
 */
int fastproc_thread_majflt(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Voluntary context switches. [FASTPROC_THREADS]
 */
int fastproc_thread_nvcsw(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Involuntary context switches. [FASTPROC_THREADS]
 */
int fastproc_thread_nivcsw(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Precise run time; `/proc` does not tell. Nanoseconds. [FASTPROC_THREADS]
 */
int fastproc_thread_sum_exec_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bytes that read(2) and the like returned. Bytes. [FASTPROC_IO, FASTPROC_THREADS] [guarded]
 */
int fastproc_thread_io_rchar_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bytes that write(2) and the like took. Bytes. [FASTPROC_IO, FASTPROC_THREADS] [guarded]
 */
int fastproc_thread_io_wchar_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Read calls. [FASTPROC_IO, FASTPROC_THREADS] [guarded]
 */
int fastproc_thread_io_syscr(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Write calls. [FASTPROC_IO, FASTPROC_THREADS] [guarded]
 */
int fastproc_thread_io_syscw(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bytes fetched from storage. Bytes. [FASTPROC_IO, FASTPROC_THREADS] [guarded]
 */
int fastproc_thread_io_read_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bytes sent to storage. Bytes. [FASTPROC_IO, FASTPROC_THREADS] [guarded]
 */
int fastproc_thread_io_write_bytes(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * Bytes that were not written after all, because the file was truncated. Bytes. [FASTPROC_IO, FASTPROC_THREADS] [guarded]
 */
int fastproc_thread_io_cancelled_write_bytes(const struct fastproc *handle,
                                             size_t index,
                                             uint64_t *value);

/**
 * Thread id. [FASTPROC_THREADS]
 */
int fastproc_thread_tid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Process that the thread belongs to. [FASTPROC_THREADS]
 */
int fastproc_thread_tgid(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Kernel flags, `PF_*`. [FASTPROC_THREADS]
 */
int fastproc_thread_flags(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Kernel priority. [FASTPROC_THREADS]
 */
int fastproc_thread_priority(const struct fastproc *handle, size_t index, int32_t *value);

/**
 * Nice value. [FASTPROC_THREADS]
 */
int fastproc_thread_nice(const struct fastproc *handle, size_t index, int32_t *value);

/**
 * Real-time priority. [FASTPROC_THREADS]
 */
int fastproc_thread_rt_priority(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * `SCHED_*`. [FASTPROC_THREADS]
 */
int fastproc_thread_policy(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * CPU that it last ran on. [FASTPROC_THREADS]
 */
int fastproc_thread_processor(const struct fastproc *handle, size_t index, uint32_t *value);

/**
 * Name of the thread, NUL padded. [FASTPROC_THREADS]
 */
int fastproc_thread_comm(struct fastproc *handle, size_t index, const char **text, size_t *length);

/**
 * Whether the earlier snapshot did not have it. Its shares and rates are then counted from its start.
 */
int fastproc_change_born(const struct fastproc *handle, size_t index, bool *value);

/**
 * Whether the earlier snapshot did not have it. Its shares and rates are then counted from its start.
 */
int fastproc_thread_change_born(const struct fastproc *handle, size_t index, bool *value);

/**
 * CPU time used since the earlier snapshot, or since its start. Nanoseconds. [FASTPROC_CPU]
 */
int fastproc_change_cpu_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * CPU time used since the earlier snapshot, or since its start. Nanoseconds. [FASTPROC_CPU]
 */
int fastproc_thread_change_cpu_ns(const struct fastproc *handle, size_t index, uint64_t *value);

/**
 * CPU time used per time passed: 1.0 is one whole CPU. [FASTPROC_CPU]
 */
int fastproc_change_cpu_share(const struct fastproc *handle, size_t index, double *value);

/**
 * CPU time used per time passed: 1.0 is one whole CPU. [FASTPROC_CPU]
 */
int fastproc_thread_change_cpu_share(const struct fastproc *handle, size_t index, double *value);

/**
 * The part of it in user mode. [FASTPROC_CPU]
 */
int fastproc_change_user_share(const struct fastproc *handle, size_t index, double *value);

/**
 * The part of it in user mode. [FASTPROC_CPU]
 */
int fastproc_thread_change_user_share(const struct fastproc *handle, size_t index, double *value);

/**
 * The part of it in kernel mode. [FASTPROC_CPU]
 */
int fastproc_change_system_share(const struct fastproc *handle, size_t index, double *value);

/**
 * The part of it in kernel mode. [FASTPROC_CPU]
 */
int fastproc_thread_change_system_share(const struct fastproc *handle, size_t index, double *value);

/**
 * Page faults that needed no I/O, per second. [FASTPROC_CPU]
 */
int fastproc_change_minflt_per_second(const struct fastproc *handle, size_t index, double *value);

/**
 * Page faults that needed no I/O, per second. [FASTPROC_CPU]
 */
int fastproc_thread_change_minflt_per_second(const struct fastproc *handle, size_t index, double *value);

/**
 * Page faults that needed I/O, per second. [FASTPROC_CPU]
 */
int fastproc_change_majflt_per_second(const struct fastproc *handle, size_t index, double *value);

/**
 * Page faults that needed I/O, per second. [FASTPROC_CPU]
 */
int fastproc_thread_change_majflt_per_second(const struct fastproc *handle, size_t index, double *value);

/**
 * Bytes fetched from storage, per second. [FASTPROC_IO] [guarded]
 */
int fastproc_change_read_bytes_per_second(const struct fastproc *handle, size_t index, double *value);

/**
 * Bytes fetched from storage, per second. [FASTPROC_IO] [guarded]
 */
int fastproc_thread_change_read_bytes_per_second(const struct fastproc *handle, size_t index, double *value);

/**
 * Bytes sent to storage, per second. [FASTPROC_IO] [guarded]
 */
int fastproc_change_write_bytes_per_second(const struct fastproc *handle, size_t index, double *value);

/**
 * Bytes sent to storage, per second. [FASTPROC_IO] [guarded]
 */
int fastproc_thread_change_write_bytes_per_second(const struct fastproc *handle, size_t index, double *value);

/**
 * The inode number of its directory (`cgrp->kn->id`).
 */
int fastproc_cgroups_identity_id(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Id of its parent; 0 for the root.
 */
int fastproc_cgroups_identity_parent(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Levels below the root of the hierarchy.
 */
int fastproc_cgroups_identity_level(const struct fastproc_cgroups *handle, size_t index, uint32_t *value);

/**
 * 1 if it or a descendant has a process: `populated` of cgroup.events.
 */
int fastproc_cgroups_identity_populated(const struct fastproc_cgroups *handle, size_t index, uint32_t *value);

/**
 * 1 if it is frozen: `frozen` of cgroup.events.
 */
int fastproc_cgroups_identity_frozen(const struct fastproc_cgroups *handle, size_t index, uint32_t *value);

/**
 * Living descendants: `nr_descendants` of cgroup.stat.
 */
int fastproc_cgroups_identity_descendants(const struct fastproc_cgroups *handle, size_t index, uint32_t *value);

/**
 * Removed descendants that the kernel still keeps: `nr_dying_descendants`.
 */
int fastproc_cgroups_identity_dying_descendants(const struct fastproc_cgroups *handle, size_t index, uint32_t *value);

/**
 * 1 if its type is `threaded`.
 */
int fastproc_cgroups_identity_threaded(const struct fastproc_cgroups *handle, size_t index, uint32_t *value);

/**
 * CPU time of the cgroup and its descendants: `usage_usec`. Nanoseconds. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_usage_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Time in user mode, scaled to the precise time as the kernel does. Nanoseconds. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_user_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Time in kernel mode, scaled likewise. Nanoseconds. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_system_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Time of processes with a positive nice value: `nice_usec`. Nanoseconds. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_nice_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Time that core scheduling kept siblings idle: `core_sched.force_idle_usec`. Nanoseconds. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_forced_idle_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Periods in which the limit of CPU time was enforced: `nr_periods`. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_periods(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Periods in which the cgroup was throttled: `nr_throttled`. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_throttled(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Time that it was throttled, of all CPUs together: `throttled_usec`. Nanoseconds. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_throttled_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Periods with a burst: `nr_bursts`. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_bursts(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Time used above the quota in bursts: `burst_usec`. Nanoseconds. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_burst_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * CPU time allowed in a period, or no limit: cpu.max. Nanoseconds. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_quota_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * The period: cpu.max. Nanoseconds. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_period_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Share of CPU time among siblings: cpu.weight. [FASTPROC_CGROUPS_CPU]
 */
int fastproc_cgroups_cpu_weight(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Memory in use: memory.current. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_current_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * The most that was ever in use: memory.peak. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_peak_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Memory that is never reclaimed: memory.min. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_min_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Memory that is reclaimed last: memory.low. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_low_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Above this, allocations are slowed down: memory.high. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_high_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * The limit: memory.max. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_max_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Swap in use: memory.swap.current. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_swap_current_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * The most swap that was ever in use: memory.swap.peak. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_swap_peak_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Above this much swap, allocations are slowed down: memory.swap.high. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_swap_high_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * The limit of swap: memory.swap.max. Bytes. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_swap_max_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that memory below `low` was reclaimed: `low` of memory.events. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_events_low(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that `high` was exceeded. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_events_high(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that use was about to exceed `max`. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_events_max(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that the limit was reached and an allocation was about to fail. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_events_oom(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Processes killed by an OOM killer: `oom_kill`. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_oom_kills(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that the whole cgroup was killed: `oom_group_kill`. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_oom_group_kills(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * The same of the cgroup without its descendants: memory.events.local. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_local_low(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * `high` of memory.events.local. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_local_high(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * `max` of memory.events.local. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_local_max(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * `oom` of memory.events.local. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_local_oom(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * `oom_kill` of memory.events.local. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_local_oom_kills(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * `oom_group_kill` of memory.events.local. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_local_oom_group_kills(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that a socket's memory was held back: `sock_throttled` of memory.events. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_sock_throttled(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * `sock_throttled` of memory.events.local. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_local_sock_throttled(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that swap exceeded `swap_high`: `high` of memory.swap.events. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_swap_events_high(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that swap was about to exceed `swap_max`. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_swap_events_max(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that an allocation of swap failed. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_swap_events_fail(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * 1 if an OOM killer kills the whole cgroup: memory.oom.group. [FASTPROC_CGROUPS_MEMORY]
 */
int fastproc_cgroups_memory_oom_group(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Processes and threads in the cgroup and its descendants: pids.current. [FASTPROC_CGROUPS_PIDS]
 */
int fastproc_cgroups_pids_current(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * The limit: pids.max. [FASTPROC_CGROUPS_PIDS]
 */
int fastproc_cgroups_pids_max(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * The most that there ever were: pids.peak. [FASTPROC_CGROUPS_PIDS]
 */
int fastproc_cgroups_pids_peak(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Bytes read. Bytes. [FASTPROC_CGROUPS_IO]
 */
int fastproc_cgroups_io_rbytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Bytes written. Bytes. [FASTPROC_CGROUPS_IO]
 */
int fastproc_cgroups_io_wbytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Bytes discarded. Bytes. [FASTPROC_CGROUPS_IO]
 */
int fastproc_cgroups_io_dbytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Reads. [FASTPROC_CGROUPS_IO]
 */
int fastproc_cgroups_io_rios(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Writes. [FASTPROC_CGROUPS_IO]
 */
int fastproc_cgroups_io_wios(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Discards. [FASTPROC_CGROUPS_IO]
 */
int fastproc_cgroups_io_dios(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Some task waited for a CPU. Nanoseconds. [FASTPROC_CGROUPS_PRESSURE]
 */
int fastproc_cgroups_pressure_cpu_some_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * All tasks waited for a CPU. Nanoseconds. [FASTPROC_CGROUPS_PRESSURE]
 */
int fastproc_cgroups_pressure_cpu_full_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Some task waited for memory. Nanoseconds. [FASTPROC_CGROUPS_PRESSURE]
 */
int fastproc_cgroups_pressure_memory_some_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * All tasks waited for memory. Nanoseconds. [FASTPROC_CGROUPS_PRESSURE]
 */
int fastproc_cgroups_pressure_memory_full_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Some task waited for I/O. Nanoseconds. [FASTPROC_CGROUPS_PRESSURE]
 */
int fastproc_cgroups_pressure_io_some_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * All tasks waited for I/O. Nanoseconds. [FASTPROC_CGROUPS_PRESSURE]
 */
int fastproc_cgroups_pressure_io_full_ns(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Huge pages in use: hugetlb.SIZE.current. Bytes. [FASTPROC_CGROUPS_HUGETLB]
 */
int fastproc_cgroups_hugetlb_current_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Huge pages that are reserved: hugetlb.SIZE.rsvd.current. Bytes. [FASTPROC_CGROUPS_HUGETLB]
 */
int fastproc_cgroups_hugetlb_reserved_bytes(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

/**
 * Times that an allocation failed because of a limit: `max` of hugetlb.SIZE.events. [FASTPROC_CGROUPS_HUGETLB]
 */
int fastproc_cgroups_hugetlb_failures(const struct fastproc_cgroups *handle, size_t index, uint64_t *value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FASTPROC_H */
