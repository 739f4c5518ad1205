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
    /// Processes, cgroups or open files. Their places are 0 to count - 1: processes in the order of their ids, cgroups with
    /// parents before their children, open files process after process.
    pub count: usize,
    /// Threads of all processes; 0 without FASTPROC_THREADS. Their places are 0 to threads - 1.
    pub threads: usize,
    /// Cgroups that were left out because their paths are too long: of more than 4,000 bytes, or 1,024 or 64 parts from a
    /// service. What is below them is left out too, but not counted.
    pub left_out: usize,
    /// Time since boot when reading began, on the clock of start times. Nanoseconds.
    pub began_ns: u64,
    /// How long reading took; 0 for cgroups and open files. Nanoseconds.
    pub took_ns: u64,
    /// The source in use: one of the names that the function takes that opened the handle.
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

/// An open file of a process. What is not known is FASTPROC_UNKNOWN_U64, FASTPROC_UNKNOWN_U32 or false.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FastprocFile {
    /// Inode number, as stat(2) shows it. [FASTPROC_FILES_FILES]
    pub inode: u64,
    /// Size of a regular file. Bytes. [FASTPROC_FILES_FILES]
    pub size: u64,
    /// Where the next read or write begins. Bytes. [FASTPROC_FILES_FILES]
    pub position: u64,
    /// Process id.
    pub pid: u32,
    /// Number of the descriptor, or FASTPROC_FD_*.
    pub fd: u32,
    /// Effective user id of the process.
    pub uid: u32,
    /// Flags of open(2), with O_CLOEXEC of this descriptor. [FASTPROC_FILES_FILES]
    pub flags: u32,
    /// Device of its file system. [FASTPROC_FILES_FILES]
    pub device_major: u32,
    /// The same: which device of the driver. [FASTPROC_FILES_FILES]
    pub device_minor: u32,
    /// Port of its own address. [FASTPROC_FILES_SOCKETS]
    pub local_port: u32,
    /// Port of the other end. [FASTPROC_FILES_SOCKETS]
    pub peer_port: u32,
    /// Bytes that were not read yet; of a listening TCP socket, connections to be accepted. [FASTPROC_FILES_SOCKETS]
    pub receive_queue: u32,
    /// Bytes that were not sent or not acknowledged yet. [FASTPROC_FILES_SOCKETS]
    pub send_queue: u32,
    /// Inode number of the network namespace of the socket. [FASTPROC_FILES_SOCKETS]
    pub netns: u32,
    /// Whether it was opened to read. [FASTPROC_FILES_FILES]
    pub reads: bool,
    /// Whether it was opened to write. [FASTPROC_FILES_FILES]
    pub writes: bool,
    /// Whether its path was removed. [FASTPROC_FILES_PATHS]
    pub deleted: bool,
    /// Whether the socket waits for connections. [FASTPROC_FILES_SOCKETS]
    pub listens: bool,
}

pub(crate) const NO_FILE: FastprocFile = FastprocFile {
    inode: u64::MAX,
    size: u64::MAX,
    position: u64::MAX,
    pid: u32::MAX,
    fd: u32::MAX,
    uid: u32::MAX,
    flags: u32::MAX,
    device_major: u32::MAX,
    device_minor: u32::MAX,
    local_port: u32::MAX,
    peer_port: u32::MAX,
    receive_queue: u32::MAX,
    send_queue: u32::MAX,
    netns: u32::MAX,
    reads: false,
    writes: false,
    deleted: false,
    listens: false,
};
