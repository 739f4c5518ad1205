//! The functions that are not accessors of a single member of a record. Their documentation is that of the header.

#![allow(
    clippy::missing_safety_doc,
    clippy::doc_markdown,
    reason = "one promise for all, in the header; and its documentation is C's"
)]

use std::{
    ffi::{CStr, c_char, c_int},
    time::Duration,
};

use fastproc::Fields;

use crate::{
    accessors::FASTPROC_MEMORY,
    constants::{FASTPROC_CMDLINE, FASTPROC_EXE, FASTPROC_OK},
    failure::{Failure, last},
    handle::{self, Fastproc, change, count, get, hand_out},
    reader::{Guard, Reader, Text},
};

/// The ids of a process in a pid namespace below that of `/proc`; 0 if the namespace does not see it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastprocIds {
    /// Process id.
    pub tgid: u32,
    /// Thread id of the leading thread.
    pub pid: u32,
    /// Process group.
    pub pgrp: u32,
    /// Session.
    pub session: u32,
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

/// Opens a source of snapshots.
///
/// fields: the contents of records, FASTPROC_* combined by |; 0 for ids, names and states, which are always present.
/// source: "service", "bpf", "bpf-iter" or "procfs"; NULL or "auto" for the first of them that works.
/// max_age_ns: how old a snapshot of the service may be, in nanoseconds; 0 for one that begins after the request.
///
/// *handle is NULL if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_open(
    handle: *mut *mut Fastproc,
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

/// Closes a handle, and invalidates all its texts. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_close(handle: *mut Fastproc) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { handle::close(handle) }
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

/// The source in use: "service", "bpf", "bpf-iter" or "procfs". NULL for a handle that cannot be used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_source(handle: *const Fastproc) -> *const c_char {
    let mut source = Name(c"".as_ptr());
    // SAFETY: as every caller promises; see `handle`.
    let result = unsafe {
        get(handle, &raw mut source, |reader| {
            let name = match reader.source() {
                "service" => c"service",
                "bpf" => c"bpf",
                "bpf-iter" => c"bpf-iter",
                _ => c"procfs",
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

/// A name that lives as long as the program.
pub(crate) struct Name(pub(crate) *const c_char);

impl Default for Name {
    fn default() -> Self {
        Self(std::ptr::null())
    }
}

/// Makes a snapshot of all processes. The places of the last snapshot, its texts and its differences become invalid.
///
/// After a failure there is no snapshot; the next call may succeed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_snapshot(handle: *mut Fastproc) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { change(handle, Reader::take_snapshot) }
}

/// The number of processes in the snapshot; 0 if there is none. Their places are 0 to count - 1, in the order of their
/// ids.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_count(handle: *const Fastproc) -> usize {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { count(handle, Reader::count) }
}

/// The place of the process with this id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_find(
    handle: *const Fastproc,
    pid: u32,
    index: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, index, |reader| reader.find(pid)) }
}

/// Time since boot when reading the snapshot began, on the clock of start times. Nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_snapshot_began_ns(
    handle: *const Fastproc,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, value, |reader| Ok(reader.time()?.0)) }
}

/// How long reading the snapshot took. Nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_snapshot_took_ns(
    handle: *const Fastproc,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, value, |reader| Ok(reader.time()?.1)) }
}

/// Process id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_pid(
    handle: *const Fastproc,
    index: usize,
    value: *mut u32,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            reader.of_process(index, 0, Guard::Public, |process| Some(process.pid()))
        })
    }
}

/// State of the leading thread, a letter as in proc(5): R, S, D, T, t, X, Z, P or I.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_state(
    handle: *const Fastproc,
    index: usize,
    value: *mut c_char,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            reader.of_process(index, 0, Guard::Public, |process| {
                Some(process.state().letter() as c_char)
            })
        })
    }
}

/// Whether it is a kernel thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_is_kernel_thread(
    handle: *const Fastproc,
    index: usize,
    value: *mut bool,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            reader.of_process(index, 0, Guard::Public, |process| {
                Some(process.identity().is_kernel_thread())
            })
        })
    }
}

/// Whether the kernel shows this reader all values of the process: also those that are marked [guarded].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_shows_everything(
    handle: *const Fastproc,
    index: usize,
    value: *mut bool,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, value, |reader| reader.shows_everything_of(index)) }
}

/// Resident memory, exact if the kernel's own statm is: VmRSS. Bytes. [FASTPROC_MEMORY]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_rss_bytes(
    handle: *const Fastproc,
    index: usize,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            reader.of_process(index, FASTPROC_MEMORY, Guard::Public, |process| {
                process.memory().map(fastproc::record::Memory::rss)
            })
        })
    }
}

/// Resident memory that is not private by nature: the third number of statm. Bytes. [FASTPROC_MEMORY]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_shared_bytes(
    handle: *const Fastproc,
    index: usize,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            reader.of_process(index, FASTPROC_MEMORY, Guard::Public, |process| {
                process.memory().map(fastproc::record::Memory::shared)
            })
        })
    }
}

/// Supplementary group number n, from 0 to fastproc_credentials_ngroups() - 1, in the kernel's order. [FASTPROC_CREDENTIALS]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_supplementary_group(
    handle: *const Fastproc,
    index: usize,
    n: usize,
    value: *mut u32,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, value, |reader| reader.supplementary_group(index, n)) }
}

/// Its ids in pid namespace number n below that of `/proc`, from 0, the outermost, to fastproc_namespaces_level() - 1.
/// [FASTPROC_NAMESPACES]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_nested_ids(
    handle: *const Fastproc,
    index: usize,
    n: usize,
    value: *mut FastprocIds,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            let ids = reader.nested_ids(index, n)?;
            Ok(FastprocIds {
                tgid: ids.tgid,
                pid: ids.pid,
                pgrp: ids.pgrp,
                session: ids.session,
            })
        })
    }
}

/// The CPUs that the leading thread may run on: bit b stands for CPU 64 n + b. [FASTPROC_SCHEDULING_DETAILS]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cpus_allowed(
    handle: *const Fastproc,
    index: usize,
    n: usize,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, value, |reader| reader.allowed(index, n, false)) }
}

/// The memory nodes that it may allocate from: bit b stands for node 64 n + b. [FASTPROC_SCHEDULING_DETAILS]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_mems_allowed(
    handle: *const Fastproc,
    index: usize,
    n: usize,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, value, |reader| reader.allowed(index, n, true)) }
}

/// Name, as stat and status show it; for a kernel worker with its current work. Any bytes but NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_name(
    handle: *mut Fastproc,
    index: usize,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        hand_out(handle, text, length, |reader| {
            reader.text(Text::Name, index)
        })
    }
}

/// Command line: arguments, each followed by a NUL; no more than 128 KiB. Empty for a kernel thread or a zombie.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cmdline(
    handle: *mut Fastproc,
    index: usize,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        hand_out(handle, text, length, |reader| {
            reader.text(Text::Cmdline, index)
        })
    }
}

/// Path of the program; it ends in " (deleted)" if the file was removed. [guarded]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_exe(
    handle: *mut Fastproc,
    index: usize,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { hand_out(handle, text, length, |reader| reader.text(Text::Exe, index)) }
}

/// Path of the cgroup of version 2, from /proc. With FASTPROC_CGROUP among the fields, read once per cgroup.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_cgroup_path(
    handle: *mut Fastproc,
    index: usize,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        hand_out(handle, text, length, |reader| {
            reader.text(Text::Cgroup, index)
        })
    }
}

/// The text of /proc/PID/stat, as the kernel would print it for this reader. [FASTPROC_THREE_FILES]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_stat_text(
    handle: *mut Fastproc,
    index: usize,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        hand_out(handle, text, length, |reader| {
            reader.text(Text::Stat, index)
        })
    }
}

/// The text of /proc/PID/statm. [FASTPROC_THREE_FILES]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_statm_text(
    handle: *mut Fastproc,
    index: usize,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        hand_out(handle, text, length, |reader| {
            reader.text(Text::Statm, index)
        })
    }
}

/// The text of /proc/PID/status. [FASTPROC_THREE_FILES]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_status_text(
    handle: *mut Fastproc,
    index: usize,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        hand_out(handle, text, length, |reader| {
            reader.text(Text::Status, index)
        })
    }
}

/// The number of threads of all processes in the snapshot; 0 if there is none. [FASTPROC_THREADS]
///
/// The functions fastproc_thread_* take the place of a thread among these; fastproc_thread_tgid() returns its process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_thread_count(handle: *const Fastproc) -> usize {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { count(handle, Reader::thread_count) }
}

/// State of the thread, like fastproc_state(). [FASTPROC_THREADS]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_thread_state(
    handle: *const Fastproc,
    index: usize,
    value: *mut c_char,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe {
        get(handle, value, |reader| {
            reader.of_thread(index, 0, Guard::Public, |_, thread| {
                Some(fastproc::record::State::from_bits(thread.state_bits).letter() as c_char)
            })
        })
    }
}

/// Compares the snapshot with the one that was compared before, and keeps it for the next time.
///
/// Call it after fastproc_snapshot(). Then fastproc_change_*() return what each process did since, and
/// fastproc_gone_*() the processes that are gone. The first time there is nothing to compare with, and these return
/// FASTPROC_UNKNOWN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_difference(handle: *mut Fastproc) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { change(handle, Reader::compare) }
}

/// The number of processes that the earlier snapshot had and this one lacks; 0 if they were not compared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_gone_count(handle: *const Fastproc) -> usize {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { count(handle, Reader::gone_count) }
}

/// The process id of one of them, from 0 to fastproc_gone_count() - 1, in the order of the ids.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_gone_pid(
    handle: *const Fastproc,
    index: usize,
    value: *mut u32,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, value, |reader| Ok(reader.gone(index)?.pid)) }
}

/// When that process had started, after boot. Nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fastproc_gone_start_ns(
    handle: *const Fastproc,
    index: usize,
    value: *mut u64,
) -> c_int {
    // SAFETY: as every caller promises; see `handle`.
    unsafe { get(handle, value, |reader| Ok(reader.gone(index)?.start_ns)) }
}
