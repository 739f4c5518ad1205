//! The structures that functions fill, besides the records.

#![allow(
    clippy::doc_markdown,
    reason = "the documentation is that of the header"
)]

use std::ffi::c_char;

/// A snapshot.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FastprocSnapshot {
    /// Processes, or cgroups. Their places are 0 to count - 1: processes in the order of their ids, cgroups with parents
    /// before their children.
    pub count: usize,
    /// Threads of all processes; 0 without FASTPROC_THREADS. Their places are 0 to threads - 1.
    pub threads: usize,
    /// Cgroups that were left out because their paths are too long: of more than 4,000 bytes, or 1,024 or 64 parts from a
    /// service. What is below them is left out too, but not counted.
    pub left_out: usize,
    /// Time since boot when reading began, on the clock of start times. Nanoseconds.
    pub began_ns: u64,
    /// How long reading took; 0 for cgroups. Nanoseconds.
    pub took_ns: u64,
    /// The source in use: one of the names that fastproc_open() or fastproc_open_cgroups() takes.
    pub source: *const c_char,
}

impl Default for FastprocSnapshot {
    fn default() -> Self {
        Self {
            count: 0,
            threads: 0,
            left_out: 0,
            began_ns: 0,
            took_ns: 0,
            source: c"".as_ptr(),
        }
    }
}

/// What a process or thread did between two snapshots. What is not known is FASTPROC_UNKNOWN_U64 or NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FastprocChange {
    /// CPU time used since the earlier snapshot, or since its start. Nanoseconds. [FASTPROC_CPU]
    pub cpu_ns: u64,
    /// CPU time used per time passed: 1.0 is one whole CPU. [FASTPROC_CPU]
    pub cpu_share: f64,
    /// The part of it in user mode. [FASTPROC_CPU]
    pub user_share: f64,
    /// The part of it in kernel mode. [FASTPROC_CPU]
    pub system_share: f64,
    /// Page faults that needed no I/O, per second. [FASTPROC_CPU]
    pub minflt_per_second: f64,
    /// Page faults that needed I/O, per second. [FASTPROC_CPU]
    pub majflt_per_second: f64,
    /// Bytes fetched from storage, per second. [FASTPROC_IO] [guarded]
    pub read_bytes_per_second: f64,
    /// Bytes sent to storage, per second. [FASTPROC_IO] [guarded]
    pub write_bytes_per_second: f64,
    /// Whether the earlier snapshot did not have it. Its shares and rates are then counted from its start.
    pub born: bool,
}

pub(crate) const UNCHANGED: FastprocChange = FastprocChange {
    cpu_ns: u64::MAX,
    cpu_share: f64::NAN,
    user_share: f64::NAN,
    system_share: f64::NAN,
    minflt_per_second: f64::NAN,
    majflt_per_second: f64::NAN,
    read_bytes_per_second: f64::NAN,
    write_bytes_per_second: f64::NAN,
    born: false,
};
