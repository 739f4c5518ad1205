//! The types of procps's library as its header declares them, and its functions.

use std::{
    ffi::{c_int, c_uint},
    ptr,
};

/// `struct pids_info`, opaque to callers.
#[repr(C)]
#[derive(Debug)]
pub struct Info {
    _opaque: [u8; 0],
}

/// `struct pids_result`. The union is represented by its widest member.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PidsResult {
    pub(crate) item: u32,
    pub(crate) value: u64,
}

/// `struct pids_stack`.
#[repr(C)]
#[derive(Debug)]
pub struct Stack {
    pub(crate) head: *mut PidsResult,
}

/// `struct pids_counts`: seven numbers, or six in the older library, which counts uninterruptible sleep as sleep.
pub(crate) type Counts = [c_int; 7];

/// `struct pids_fetch`.
#[repr(C)]
#[derive(Debug)]
pub struct Fetch {
    pub(crate) counts: *mut Counts,
    pub(crate) stacks: *mut *mut Stack,
}

/// `enum pids_fetch_type`.
pub(crate) const TASKS_ONLY: c_uint = 0;
pub(crate) const THREADS_TOO: c_uint = 1;

/// `enum pids_select_type`.
pub(crate) const SELECT_PID: c_uint = 0x10000;
pub(crate) const SELECT_UID: c_uint = 0x20000;
/// Added to either to select threads.
pub(crate) const WITH_THREADS: c_uint = 1;

/// The most ids that can be selected at a time.
pub(crate) const SELECT_MOST: usize = 255;

/// procps's functions: those of its own library, which we call, and ours, which its callers call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    pub(crate) new: unsafe extern "C" fn(*mut *mut Info, *mut c_uint, c_int) -> c_int,
    pub(crate) reference: unsafe extern "C" fn(*mut Info) -> c_int,
    pub(crate) unref: unsafe extern "C" fn(*mut *mut Info) -> c_int,
    pub(crate) get: unsafe extern "C" fn(*mut Info, c_uint) -> *mut Stack,
    pub(crate) reap: unsafe extern "C" fn(*mut Info, c_uint) -> *mut Fetch,
    pub(crate) reset: unsafe extern "C" fn(*mut Info, *mut c_uint, c_int) -> c_int,
    pub(crate) select: unsafe extern "C" fn(*mut Info, *mut c_uint, c_int, c_uint) -> *mut Fetch,
    pub(crate) sort:
        unsafe extern "C" fn(*mut Info, *mut *mut Stack, c_int, c_uint, c_int) -> *mut *mut Stack,
    pub(crate) fatal_proc_unmounted: unsafe extern "C" fn(*mut Info, c_int) -> *mut Stack,
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: the address of this thread's own errno.
    unsafe { *libc::__errno_location() = errno };
}

/// The processes that procps's own library has fetched, row by row.
#[derive(Debug)]
pub(crate) struct Rows {
    stacks: *mut *mut Stack,
}

impl Rows {
    /// # Safety
    /// `fetch` is null, or was returned by a function of procps and is read before the next call.
    pub(crate) unsafe fn from_fetch(fetch: *mut Fetch) -> Self {
        // SAFETY: not null, and so valid.
        let stacks = unsafe { fetch.as_ref() }.map_or(ptr::null_mut(), |fetch| fetch.stacks);
        Self { stacks }
    }
}

impl Iterator for Rows {
    type Item = *mut PidsResult;

    fn next(&mut self) -> Option<Self::Item> {
        if self.stacks.is_null() {
            return None;
        }
        // SAFETY: the array ends with a null pointer, and this never goes beyond that.
        let head = unsafe { self.stacks.read().as_ref() }?.head;
        // SAFETY: it was not the last.
        self.stacks = unsafe { self.stacks.add(1) };
        Some(head)
    }
}
