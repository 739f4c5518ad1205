//! Results and arguments of functions. Their documentation is that of the header.

#![allow(clippy::doc_markdown, reason = "its documentation is C's")]

use std::ffi::c_int;

use fastproc::{Fields, files};

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

/// Name of an open file, as readlink(2) of /proc/PID/fd/N says it. [FASTPROC_FILES_PATHS]
pub const FASTPROC_TEXT_FILE_NAME: u32 = 16;
/// What it is, as in "file" or "socket": the kinds of fastproc files.
pub const FASTPROC_TEXT_FILE_KIND: u32 = 17;
/// What ss(8) calls the socket, as in "tcp". [FASTPROC_FILES_SOCKETS]
pub const FASTPROC_TEXT_SOCKET_NETID: u32 = 18;
/// The state of the socket in the words of ss(8), as in "LISTEN". [FASTPROC_FILES_SOCKETS]
pub const FASTPROC_TEXT_SOCKET_STATE: u32 = 19;
/// Its own address, as in "127.0.0.1:80"; the path or @name of a unix socket. [FASTPROC_FILES_SOCKETS]
pub const FASTPROC_TEXT_SOCKET_LOCAL: u32 = 20;
/// The address of the other end. [FASTPROC_FILES_SOCKETS]
pub const FASTPROC_TEXT_SOCKET_PEER: u32 = 21;

/// Every descriptor, with the current directory, the root directory and the program of every process.
pub const FASTPROC_FILES_FILES: u32 = 1;
/// The addresses, states and queues of sockets; without FASTPROC_FILES_FILES, only sockets are listed.
pub const FASTPROC_FILES_SOCKETS: u32 = 2;
/// Names of files.
pub const FASTPROC_FILES_PATHS: u32 = 4;
/// Device, inode and size where stat(2) shows others than the kernel keeps; they are asked for file by file.
pub const FASTPROC_FILES_STAT: u32 = 16;

/// In place of a descriptor: the current directory of the process.
pub const FASTPROC_FD_CWD: u32 = 0xffff_fffd;
/// In place of a descriptor: its root directory.
pub const FASTPROC_FD_ROOT: u32 = 0xffff_fffe;
/// In place of a descriptor: its program.
pub const FASTPROC_FD_PROGRAM: u32 = 0xffff_ffff;

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
const _: () = assert!(
    files::Fields::FILES.bits() == FASTPROC_FILES_FILES
        && files::Fields::SOCKETS.bits() == FASTPROC_FILES_SOCKETS
        && files::Fields::PATHS.bits() == FASTPROC_FILES_PATHS
        && files::Fields::STAT.bits() == FASTPROC_FILES_STAT
);
