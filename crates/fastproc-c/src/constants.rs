//! Results and arguments of functions. Their documentation is that of the header.

#![allow(clippy::doc_markdown, reason = "its documentation is C's")]

use std::ffi::c_int;

use fastproc::Fields;

/// Success.
pub const FASTPROC_OK: c_int = 0;
/// The value is unknown, or not shown to this reader. It is not zero.
pub const FASTPROC_UNKNOWN: c_int = 1;
/// A pointer is NULL, a place does not exist, or another argument is invalid.
pub const FASTPROC_ERROR_ARGUMENT: c_int = -1;
/// The handle has been closed.
pub const FASTPROC_ERROR_CLOSED: c_int = -2;
/// The handle was opened before fork(2), in the parent.
pub const FASTPROC_ERROR_FORKED: c_int = -3;
/// There is no snapshot, or it has not been compared.
pub const FASTPROC_ERROR_NO_SNAPSHOT: c_int = -4;
/// The snapshot has nothing with this id.
pub const FASTPROC_ERROR_NO_PROCESS: c_int = -5;
/// The handle was opened without the fields that this value belongs to.
pub const FASTPROC_ERROR_NOT_ASKED: c_int = -6;
/// No source can be used, or it failed: fastproc_error() says why.
pub const FASTPROC_ERROR_SOURCE: c_int = -7;
/// A defect of the library. The handle can only be closed.
pub const FASTPROC_ERROR_INTERNAL: c_int = -8;
/// The program was compiled with the header of another version, and its structures have other sizes.
pub const FASTPROC_ERROR_SIZES: c_int = -9;

/// Request command lines from the service. fastproc_text() reads the others from /proc.
pub const FASTPROC_CMDLINE: u32 = 0x1_0000;
/// Request paths of programs from the service, for fastproc_text().
pub const FASTPROC_EXE: u32 = 0x2_0000;

/// Name, as stat and status show it; for a kernel worker with its current work. Any bytes but NUL.
pub const FASTPROC_TEXT_NAME: u32 = 0;
/// Command line: arguments, each followed by a NUL; no more than 128 KiB. Empty for a kernel thread or a zombie.
pub const FASTPROC_TEXT_CMDLINE: u32 = 1;
/// Path of the program; it ends in " (deleted)" if the file was removed. [guarded]
pub const FASTPROC_TEXT_EXE: u32 = 2;
/// Path of the cgroup of version 2; the root is "/". Of a process it is read from /proc; with FASTPROC_CGROUP among the
/// fields, once per cgroup.
pub const FASTPROC_TEXT_CGROUP: u32 = 3;
/// The text of /proc/PID/stat, as the kernel would print it for this reader. [FASTPROC_THREE_FILES]
pub const FASTPROC_TEXT_STAT: u32 = 4;
/// The text of /proc/PID/statm. [FASTPROC_THREE_FILES]
pub const FASTPROC_TEXT_STATM: u32 = 5;
/// The text of /proc/PID/status. [FASTPROC_THREE_FILES]
pub const FASTPROC_TEXT_STATUS: u32 = 6;

/// Supplementary groups, in the kernel's order; credentials.ngroups is their number. [FASTPROC_CREDENTIALS]
pub const FASTPROC_LIST_GROUPS: u32 = 0;
/// The CPUs that the leading thread may run on: bit b of value n stands for CPU 64 n + b. [FASTPROC_SCHEDULING_DETAILS]
pub const FASTPROC_LIST_CPUS: u32 = 1;
/// The memory nodes that it may allocate from, likewise. [FASTPROC_SCHEDULING_DETAILS]
pub const FASTPROC_LIST_NODES: u32 = 2;
/// Ids in the pid namespaces below that of /proc, from the outermost one: of each the process id, the thread id of the
/// leading thread, the process group and the session; 0 if the namespace does not see it. namespaces.level is the number of
/// namespaces. [FASTPROC_NAMESPACES]
pub const FASTPROC_LIST_IDS: u32 = 3;

const _: () = assert!(Fields::all().bits() < FASTPROC_CMDLINE);
