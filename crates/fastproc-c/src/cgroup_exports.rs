//! The functions of cgroups that are not accessors of a single member. Their documentation is that of the header.

#![allow(
    clippy::missing_safety_doc,
    clippy::doc_markdown,
    reason = "one promise for all, in the header; and its documentation is C's"
)]

use std::{
    ffi::{CStr, c_char, c_int},
    time::Duration,
};

use fastproc::cgroups::{Source, record::Resource};

use crate::{
    cgroups::Reader,
    constants::{
        FASTPROC_OK, FASTPROC_PRESSURE_CPU, FASTPROC_PRESSURE_IO, FASTPROC_PRESSURE_MEMORY,
    },
    exports::Name,
    failure::Failure,
    handle::{self, FastprocCgroups, change, count, get, hand_out},
};

/// I/O of a cgroup with one block device: a line of io.stat.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastprocDevice {
    /// Major number of the device.
    pub major: u32,
    /// Minor number of the device.
    pub minor: u32,
    /// Bytes read.
    pub rbytes: u64,
    /// Bytes written.
    pub wbytes: u64,
    /// Bytes discarded.
    pub dbytes: u64,
    /// Reads.
    pub rios: u64,
    /// Writes.
    pub wios: u64,
    /// Discards.
    pub dios: u64,
}

/// Huge pages of one size in a cgroup: the files hugetlb.SIZE.*. UINT64_MAX: a value is not known, because this kernel lacks
/// the file. FASTPROC_NO_LIMIT: there is no limit.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastprocPageSize {
    /// Size of a page. Bytes, as the next four.
    pub size: u64,
    /// Pages in use.
    pub current: u64,
    /// Their limit.
    pub max: u64,
    /// Reserved pages.
    pub reserved: u64,
    /// Their limit.
    pub reserved_max: u64,
    /// Times that an allocation failed because of a limit.
    pub failures: u64,
}

/// Opens a source of snapshots of all cgroups of version 2. They are independent of fastproc_open().
///
/// fields: the contents of records, FASTPROC_CGROUPS_* combined by |; 0 for ids and states, which are always present.
/// source: "bpf", "service" or "files"; NULL or "auto" for the first of them that works.
/// max_age_ns: how old CPU time, memory.stat and I/O may be, in nanoseconds; 0: they are updated for every snapshot.
///
/// *handle is NULL if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_open(
    handle: *mut *mut FastprocCgroups,
    fields: u32,
    source: *const c_char,
    max_age_ns: u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        handle::open(handle, || {
            let source = (!source.is_null()).then(|| CStr::from_ptr(source).to_bytes());
            Reader::open(fields, source, Duration::from_nanos(max_age_ns))
        })
    }
}

/// Closes a handle. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_close(handle: *mut FastprocCgroups) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { handle::close(handle) }
}

/// The source in use: "bpf", "service" or "files". NULL for a handle that cannot be used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_source(handle: *const FastprocCgroups) -> *const c_char {
    let mut source = Name::default();
    // SAFETY: as every caller promises; see `handle`.
    let result = unsafe {
        get(handle, &raw mut source, |reader| {
            let name = match reader.source() {
                Source::Bpf => c"bpf",
                Source::Service => c"service",
                _ => c"files",
            };
            Ok(Name(name.as_ptr()))
        })
    };
    if result == FASTPROC_OK {
        source.0
    } else {
        std::ptr::null()
    }
}

/// Makes a snapshot of all cgroups that this process can reach. The places of the last snapshot become invalid.
///
/// After a failure there is no snapshot; the next call may succeed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_snapshot(handle: *mut FastprocCgroups) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { change(handle, Reader::take_snapshot) }
}

/// The number of cgroups in the snapshot; 0 if there is none. Their places are 0 to count - 1, parents before their
/// children.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_count(handle: *const FastprocCgroups) -> usize {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { count(handle, Reader::count) }
}

/// The number of cgroups that were left out because their paths are too long: of more than 4,000 bytes, or 1,024 or 64
/// parts from a service. What is below them is left out too, but not counted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_left_out(handle: *const FastprocCgroups) -> usize {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { count(handle, Reader::left_out) }
}

/// The place of the cgroup with this path below the mount of the hierarchy, as in "/system.slice".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_find(
    handle: *const FastprocCgroups,
    path: *const c_char,
    index: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, index, |reader| {
            if path.is_null() {
                return Err(Failure::Null);
            }
            reader.find(CStr::from_ptr(path).to_bytes())
        })
    }
}

/// Time since boot when reading the snapshot began. Nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_snapshot_began_ns(
    handle: *const FastprocCgroups,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, value, Reader::began_ns) }
}

/// Path below the mount of the hierarchy. The root is "/".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_path(
    handle: *mut FastprocCgroups,
    index: usize,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { hand_out(handle, text, length, |reader| reader.path(index)) }
}

/// The value of a line of memory.stat, as in "anon": bytes, or events. [FASTPROC_CGROUPS_MEMORY_STAT]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_memory_stat(
    handle: *const FastprocCgroups,
    index: usize,
    name: *const c_char,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            if name.is_null() {
                return Err(Failure::Null);
            }
            reader.memory_stat(index, &CStr::from_ptr(name).to_string_lossy())
        })
    }
}

/// The share of the last 10, 60 or 300 seconds in which some tasks waited for a resource (FASTPROC_PRESSURE_*), or all
/// tasks if full is true: 1.0 is all the time. [FASTPROC_CGROUPS_PRESSURE]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_pressure_share(
    handle: *const FastprocCgroups,
    index: usize,
    resource: c_int,
    full: bool,
    seconds: u32,
    value: *mut f64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            let resource = match resource {
                FASTPROC_PRESSURE_CPU => Resource::Cpu,
                FASTPROC_PRESSURE_MEMORY => Resource::Memory,
                FASTPROC_PRESSURE_IO => Resource::Io,
                _ => {
                    return Err(Failure::Argument(format!(
                        "{resource} is not one of FASTPROC_PRESSURE_*"
                    )));
                }
            };
            let Some(window) = [10, 60, 300].iter().position(|&known| known == seconds) else {
                return Err(Failure::Argument(format!(
                    "the kernel has shares of the last 10, 60 and 300 seconds, not of {seconds}"
                )));
            };
            reader.pressure_share(index, resource, full, window)
        })
    }
}

/// The number of block devices in io.stat of a cgroup; 0 if they are unknown. [FASTPROC_CGROUPS_IO]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_device_count(
    handle: *const FastprocCgroups,
    index: usize,
) -> usize {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { count(handle, |reader| Ok(reader.devices(index)?.len())) }
}

/// I/O of a cgroup with device number n, from 0 to fastproc_cgroups_device_count() - 1. [FASTPROC_CGROUPS_IO]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_device(
    handle: *const FastprocCgroups,
    index: usize,
    n: usize,
    value: *mut FastprocDevice,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            let device = reader.devices(index)?.get(n).ok_or(Failure::Place)?;
            Ok(FastprocDevice {
                major: device.major,
                minor: device.minor,
                rbytes: device.rbytes,
                wbytes: device.wbytes,
                dbytes: device.dbytes,
                rios: device.rios,
                wios: device.wios,
                dios: device.dios,
            })
        })
    }
}

/// The number of sizes of huge pages of a cgroup; 0 if they are unknown. [FASTPROC_CGROUPS_HUGETLB]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_page_size_count(
    handle: *const FastprocCgroups,
    index: usize,
) -> usize {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { count(handle, |reader| Ok(reader.page_sizes(index)?.len())) }
}

/// Huge pages of size number n, from 0 to fastproc_cgroups_page_size_count() - 1. [FASTPROC_CGROUPS_HUGETLB]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_page_size(
    handle: *const FastprocCgroups,
    index: usize,
    n: usize,
    value: *mut FastprocPageSize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            let size = reader.page_sizes(index)?.get(n).ok_or(Failure::Place)?;
            let known = |value: Option<u64>| value.unwrap_or(u64::MAX);
            Ok(FastprocPageSize {
                size: size.size,
                current: size.current,
                max: known(size.max()),
                reserved: known(size.reserved()),
                reserved_max: known(size.reserved_max()),
                failures: known(size.failures()),
            })
        })
    }
}

/// The number of CPUs whose times are known of a cgroup; 0 if none are. Only the source "bpf" has them.
/// [FASTPROC_CGROUPS_CPU_TIMES]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_cpu_count(
    handle: *const FastprocCgroups,
    index: usize,
) -> usize {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { count(handle, |reader| Ok(reader.time_by_cpu(index)?.len())) }
}

/// CPU time on one CPU, from 0 to fastproc_cgroups_cpu_count() - 1. Nanoseconds. [FASTPROC_CGROUPS_CPU_TIMES]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroups_cpu_time_ns(
    handle: *const FastprocCgroups,
    index: usize,
    cpu: usize,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            let time = reader.time_by_cpu(index)?.get(cpu);
            time.copied().ok_or(Failure::Place)
        })
    }
}
