//! The functions. Their documentation is that of the header.

#![allow(
    clippy::missing_safety_doc,
    clippy::doc_markdown,
    reason = "one promise for all, in the header; and its documentation is C's"
)]

use std::{
    ffi::{CStr, c_char, c_int},
    time::Duration,
};

use fastproc::{
    Fields,
    cgroups::record::{Device as FastprocDevice, Record as FastprocCgroupRecord},
    record::{Record as FastprocRecord, State, ThreadRecord as FastprocThreadRecord},
};

use crate::{
    cgroups,
    constants::{FASTPROC_CMDLINE, FASTPROC_EXE, FASTPROC_OK},
    failure::{Failure, last},
    files,
    handle::{self, Fastproc, Reader, get, hand_out},
    reader,
    structures::{FastprocChange, FastprocFile, FastprocSnapshot, NO_FILE, UNCHANGED},
};

/// The sizes of the structures, as FASTPROC_SIZES has them.
pub(crate) const SIZES: u64 = size_of::<FastprocRecord>() as u64
    | (size_of::<FastprocThreadRecord>() as u64) << 16
    | (size_of::<FastprocCgroupRecord>() as u64) << 32
    | ((size_of::<FastprocDevice>()
        + size_of::<FastprocSnapshot>()
        + size_of::<FastprocChange>()
        + size_of::<FastprocFile>()) as u64)
        << 48;

/// Opens a reader, if the program has been compiled with structures of the same sizes.
unsafe fn open(
    handle: *mut *mut Fastproc,
    source: *const c_char,
    sizes: u64,
    open: impl FnOnce(Option<&[u8]>) -> Result<Reader, Failure>,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        handle::open(handle, || {
            if sizes != SIZES {
                return Err(Failure::Sizes);
            }
            open((!source.is_null()).then(|| CStr::from_ptr(source).to_bytes()))
        })
    }
}

/// The version of the library, as in "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn fastproc_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL in it"),
        };
    VERSION.as_ptr()
}

/// The message of the last function in this thread that did not return FASTPROC_OK: what went wrong, and what to do.
/// Valid until the next such function.
#[unsafe(no_mangle)]
pub extern "C" fn fastproc_error() -> *const c_char {
    last()
}

/// The field with this name, as in "memory-details" or "MEMORY_DETAILS", for programs that read names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_field(name: *const c_char, field: *mut u32) -> c_int {
    // SAFETY: NULL, or a place for a value.
    let Some(field) = (unsafe { field.as_mut() }) else {
        return Failure::Null.report();
    };
    *field = 0;
    if name.is_null() {
        return Failure::Null.report();
    }
    // SAFETY: the caller promises a string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let is = |other: &str| other.eq_ignore_ascii_case(&name.replace('_', "-"));
    let texts = [("cmdline", FASTPROC_CMDLINE), ("exe", FASTPROC_EXE)];
    let groups = Fields::NAMES
        .iter()
        .map(|(name, field)| (*name, field.bits()));
    let mut all = groups.chain(texts);
    if let Some((_, bits)) = all.find(|(name, _)| is(name)) {
        *field = bits;
        return FASTPROC_OK;
    }
    let names = Fields::NAMES.map(|(name, _)| name).join(", ");
    Failure::Argument(format!(
        "no field is called {name:?}; there are {names}, cmdline and exe"
    ))
    .report()
}

/// The letter of identity.state_bits of a process, or of state_bits of a thread, as in proc(5): R, S, D, T, t, X, Z, P or I.
#[unsafe(no_mangle)]
pub extern "C" fn fastproc_state(state_bits: u32) -> c_char {
    State::from_bits(state_bits).letter() as c_char
}

/// Opens a source of snapshots of all processes.
///
/// fields: the contents of records, FASTPROC_* combined by |; 0 for ids, names and states, which are always present.
/// source: "service", "bpf", "bpf-iter" or "procfs"; NULL or "auto" for the first of them that works.
/// max_age_ns: how old a snapshot of the service may be, in nanoseconds; 0 for one that begins after the request.
/// sizes: FASTPROC_SIZES. A program that was compiled with the header of another version gets FASTPROC_ERROR_SIZES.
///
/// *handle is NULL if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_open(
    handle: *mut *mut Fastproc,
    fields: u32,
    source: *const c_char,
    max_age_ns: u64,
    sizes: u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        open(handle, source, sizes, |source| {
            let opened = reader::Reader::open(fields, source, Duration::from_nanos(max_age_ns))?;
            Ok(Reader::Processes(Box::new(opened)))
        })
    }
}

/// Opens a source of snapshots of all cgroups of version 2 that this process can reach.
///
/// fields: the contents of records, FASTPROC_CGROUPS_* combined by |; 0 for ids and states, which are always present.
/// source: "bpf", "service" or "files"; NULL or "auto" for the first of them that works.
/// max_age_ns: how old CPU time, memory.stat and I/O may be, in nanoseconds; 0: they are updated for every snapshot.
/// sizes: FASTPROC_SIZES.
///
/// *handle is NULL if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_open_cgroups(
    handle: *mut *mut Fastproc,
    fields: u32,
    source: *const c_char,
    max_age_ns: u64,
    sizes: u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        open(handle, source, sizes, |source| {
            let opened = cgroups::Reader::open(fields, source, Duration::from_nanos(max_age_ns))?;
            Ok(Reader::Cgroups(Box::new(opened)))
        })
    }
}

/// Opens a source of snapshots of the open files of all processes, or of one.
///
/// fields: what is read, FASTPROC_FILES_* combined by |.
/// pid: the only process to read; 0 for all.
/// source: "bpf", "service" or "procfs"; NULL or "auto" for the first of them that works, for one process "procfs".
/// sizes: FASTPROC_SIZES.
///
/// *handle is NULL if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_open_files(
    handle: *mut *mut Fastproc,
    fields: u32,
    pid: u32,
    source: *const c_char,
    sizes: u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        open(handle, source, sizes, |source| {
            let opened = files::Reader::open(fields, pid, source)?;
            Ok(Reader::Files(Box::new(opened)))
        })
    }
}

/// Closes a handle, and invalidates all its texts. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_close(handle: *mut Fastproc) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { handle::close(handle) }
}

/// Makes a snapshot of all processes, cgroups or open files. The places of the last snapshot, its texts and its differences become
/// invalid.
///
/// After a failure there is no snapshot; the next call may succeed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_snapshot(
    handle: *mut Fastproc,
    snapshot: *mut FastprocSnapshot,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(
            handle,
            snapshot,
            FastprocSnapshot::default(),
            |reader| match reader {
                Reader::Processes(reader) => reader.take_snapshot(),
                Reader::Cgroups(reader) => reader.take_snapshot(),
                Reader::Files(reader) => reader.take_snapshot(),
            },
        )
    }
}

/// The place of the process, or of the cgroup, with this id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_find(handle: *mut Fastproc, id: u64, index: *mut usize) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, index, 0, |reader| match reader {
            Reader::Processes(reader) => reader.find(id),
            Reader::Cgroups(reader) => reader.find(id),
            Reader::Files(_) => Err(Failure::OtherKind),
        })
    }
}

/// Copies the record of a process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_get(
    handle: *mut Fastproc,
    index: usize,
    record: *mut FastprocRecord,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, record, FastprocRecord::default(), |reader| {
            reader.processes()?.record(index)
        })
    }
}

/// Copies the record of a thread. [FASTPROC_THREADS]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_get_thread(
    handle: *mut Fastproc,
    index: usize,
    record: *mut FastprocThreadRecord,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, record, FastprocThreadRecord::default(), |reader| {
            reader.processes()?.thread_record(index)
        })
    }
}

/// Copies the record of a cgroup.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_get_cgroup(
    handle: *mut Fastproc,
    index: usize,
    record: *mut FastprocCgroupRecord,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, record, FastprocCgroupRecord::default(), |reader| {
            reader.cgroups()?.record(index)
        })
    }
}

/// Copies I/O of a cgroup with one block device: line n of io.stat, from 0 to io.devices - 1. [FASTPROC_CGROUPS_IO]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_get_device(
    handle: *mut Fastproc,
    index: usize,
    n: usize,
    device: *mut FastprocDevice,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, device, FastprocDevice::default(), |reader| {
            reader.cgroups()?.device(index, n)
        })
    }
}

/// Copies what is known of an open file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_get_file(
    handle: *mut Fastproc,
    index: usize,
    file: *mut FastprocFile,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, file, NO_FILE, |reader| reader.files()?.file(index)) }
}

/// The value of a line of memory.stat, as in "anon": bytes, or events. [FASTPROC_CGROUPS_MEMORY_STAT]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_memory_stat(
    handle: *mut Fastproc,
    index: usize,
    line: *const c_char,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, u64::MAX, |reader| {
            if line.is_null() {
                return Err(Failure::Null);
            }
            let line = CStr::from_ptr(line).to_string_lossy();
            reader.cgroups()?.memory_stat(index, &line)
        })
    }
}

/// A text of a process (FASTPROC_TEXT_*), the path of a cgroup (FASTPROC_TEXT_CGROUP), or a text of an open file
/// (FASTPROC_TEXT_FILE_*, FASTPROC_TEXT_SOCKET_*).
///
/// It ends in a NUL, which *length does not count; length may be NULL. It is valid until this function is called again for
/// the same kind of text, the next snapshot is made or the handle is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_text(
    handle: *mut Fastproc,
    index: usize,
    kind: u32,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        hand_out(handle, text, length, |reader| match reader {
            Reader::Processes(reader) => reader.text(kind, index),
            Reader::Cgroups(reader) => reader.text(kind, index),
            Reader::Files(reader) => reader.text(kind, index),
        })
    }
}

/// Value n, from 0, of a list of a process (FASTPROC_LIST_*). FASTPROC_ERROR_ARGUMENT after the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_list(
    handle: *mut Fastproc,
    index: usize,
    list: u32,
    n: usize,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, u64::MAX, |reader| {
            reader.processes()?.list(index, list, n)
        })
    }
}

/// Compares the snapshot of processes with the one that was compared before, and keeps it for the next time.
///
/// Call it after fastproc_snapshot(). *gone is the number of processes that the earlier snapshot had and this one lacks.
/// The first time there is nothing to compare with, and the next three functions return FASTPROC_UNKNOWN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_difference(handle: *mut Fastproc, gone: *mut usize) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, gone, 0, |reader| reader.processes()?.compare()) }
}

/// What a process did since the earlier snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_get_change(
    handle: *mut Fastproc,
    index: usize,
    change: *mut FastprocChange,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, change, UNCHANGED, |reader| {
            reader.processes()?.change(index)
        })
    }
}

/// What a thread did since the earlier snapshot. [FASTPROC_THREADS]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_get_thread_change(
    handle: *mut Fastproc,
    index: usize,
    change: *mut FastprocChange,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, change, UNCHANGED, |reader| {
            reader.processes()?.thread_change(index)
        })
    }
}

/// The process id and the start time after boot, in nanoseconds, of a process that is gone: number n, from 0, in the order
/// of the ids. start_ns may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_get_gone(
    handle: *mut Fastproc,
    n: usize,
    pid: *mut u32,
    start_ns: *mut u64,
) -> c_int {
    let mut start = u64::MAX;
    // SAFETY: as every caller promises; see `handle`.
    let result = unsafe {
        get(handle, pid, u32::MAX, |reader| {
            let gone = reader.processes()?.gone(n)?;
            start = gone.start_ns;
            Ok(gone.pid)
        })
    };
    // SAFETY: NULL, or a place for a number.
    if let Some(start_ns) = unsafe { start_ns.as_mut() } {
        *start_ns = start;
    }
    result
}
