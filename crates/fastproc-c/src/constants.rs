//! Results and arguments of functions. Their documentation is that of the header.

#![allow(clippy::doc_markdown, reason = "its documentation is C's")]

use std::ffi::c_int;

use fastproc::Fields;

use crate::accessors::{
    FASTPROC_CPU, FASTPROC_CREDENTIALS, FASTPROC_LAYOUT, FASTPROC_LIMITS, FASTPROC_MEMORY,
    FASTPROC_MEMORY_DETAILS, FASTPROC_NAMESPACES, FASTPROC_SCHEDULING, FASTPROC_SCHEDULING_DETAILS,
    FASTPROC_SIGNALS, FASTPROC_USERS,
};

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
/// The snapshot has no process with this id, or no cgroup with this path.
pub const FASTPROC_ERROR_NO_PROCESS: c_int = -5;
/// The handle was opened without the fields that this value belongs to.
pub const FASTPROC_ERROR_NOT_ASKED: c_int = -6;
/// No source can be used, or it failed: fastproc_error() says why.
pub const FASTPROC_ERROR_SOURCE: c_int = -7;
/// A defect of the library. The handle can only be closed.
pub const FASTPROC_ERROR_INTERNAL: c_int = -8;

/// Fields that a top shows: CPU time and sizes of memory.
pub const FASTPROC_TOP: u32 = FASTPROC_CPU | FASTPROC_MEMORY;
/// Fields that fastproc_stat_text(), fastproc_statm_text() and fastproc_status_text() need.
pub const FASTPROC_THREE_FILES: u32 = FASTPROC_CPU
    | FASTPROC_MEMORY
    | FASTPROC_LAYOUT
    | FASTPROC_CREDENTIALS
    | FASTPROC_SIGNALS
    | FASTPROC_NAMESPACES
    | FASTPROC_SCHEDULING
    | FASTPROC_LIMITS
    | FASTPROC_MEMORY_DETAILS
    | FASTPROC_USERS
    | FASTPROC_SCHEDULING_DETAILS;
/// Request command lines from the service. fastproc_cmdline() reads the others from /proc.
pub const FASTPROC_CMDLINE: u32 = 0x1_0000;
/// Request paths of programs from the service, for fastproc_exe().
pub const FASTPROC_EXE: u32 = 0x2_0000;
/// A limit of a cgroup that is not set: UINT64_MAX - 1.
pub const FASTPROC_NO_LIMIT: u64 = 0xffff_ffff_ffff_fffe;
/// Pressure: tasks waited for a CPU.
pub const FASTPROC_PRESSURE_CPU: c_int = 0;
/// Pressure: tasks waited for memory.
pub const FASTPROC_PRESSURE_MEMORY: c_int = 1;
/// Pressure: tasks waited for I/O.
pub const FASTPROC_PRESSURE_IO: c_int = 2;

const _: () = assert!(FASTPROC_NO_LIMIT == fastproc::cgroups::record::UNLIMITED);
const _: () = assert!(FASTPROC_TOP == Fields::TOP.bits());
const _: () = assert!(FASTPROC_THREE_FILES == Fields::THREE_FILES.bits());
const _: () = assert!(Fields::all().bits() < FASTPROC_CMDLINE);
