//! Handles, and the calls between C and safe code.
//!
//! The caller of any function promises: pointers are NULL or point to their type; a handle was returned by
//! `fastproc_open()`, `fastproc_open_cgroups()` or `fastproc_open_files()`, and is used by one thread at a time. A closed handle is recognized: its
//! memory is never freed, but used for a handle that is opened much later.

use std::{
    cell::{Cell, UnsafeCell},
    collections::VecDeque,
    ffi::{c_char, c_int},
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    ptr,
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
};

use crate::{cgroups, constants::FASTPROC_OK, failure::Failure, files, reader};

/// A source of snapshots of processes, cgroups or open files, and the last one.
#[derive(Debug)]
pub struct Fastproc {
    status: AtomicU8,
    /// How many times the process that opened it had been forked.
    forks: AtomicU32,
    reader: UnsafeCell<Option<Reader>>,
}

/// What is behind a handle.
#[derive(Debug)]
pub(crate) enum Reader {
    Processes(Box<reader::Reader>),
    Cgroups(Box<cgroups::Reader>),
    Files(Box<files::Reader>),
}

impl Reader {
    pub(crate) fn processes(&mut self) -> Result<&mut reader::Reader, Failure> {
        match self {
            Self::Processes(reader) => Ok(reader),
            _ => Err(Failure::OtherKind),
        }
    }

    pub(crate) fn cgroups(&mut self) -> Result<&mut cgroups::Reader, Failure> {
        match self {
            Self::Cgroups(reader) => Ok(reader),
            _ => Err(Failure::OtherKind),
        }
    }

    pub(crate) fn files(&mut self) -> Result<&mut files::Reader, Failure> {
        match self {
            Self::Files(reader) => Ok(reader),
            _ => Err(Failure::OtherKind),
        }
    }
}

const OPEN: u8 = 1;
const CLOSED: u8 = 2;
const BROKEN: u8 = 3;

/// How many times this process and its ancestors have been forked.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Closed handles, the first to be closed first.
struct Free(VecDeque<*mut Fastproc>);

// SAFETY: no other code uses the handles that they point to.
unsafe impl Send for Free {}

static FREE: Mutex<Free> = Mutex::new(Free(VecDeque::new()));

/// This many handles are closed before one is used again.
const RESTING: usize = 256;

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Runs once, before the first call.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A panic of ours is caught and returned as an error.
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !IN_CALL.try_with(Cell::get).unwrap_or(true) {
                others(panic);
            }
        }));
        // SAFETY: the handler only adds to a number. If there is no memory for it, the next snapshot detects a fork.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
}

thread_local! {
    /// Whether this thread is in a function of the library.
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`; nothing is printed if it panics.
fn catch<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let enter = |now| IN_CALL.try_with(|in_call| in_call.set(now));
    // An exiting thread can no longer store it.
    let _ = enter(true);
    let result = catch_unwind(AssertUnwindSafe(body));
    let _ = enter(false);
    result.unwrap_or(Err(Failure::Panicked))
}

/// Runs `body`; a failure or a panic is recorded and becomes an error number.
fn guarded(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match catch(body) {
        Ok(()) => FASTPROC_OK,
        Err(failure) => failure.report(),
    }
}

impl Fastproc {
    fn check(&self) -> Result<(), Failure> {
        match self.status.load(Ordering::Relaxed) {
            OPEN if self.forks.load(Ordering::Relaxed) == FORKS.load(Ordering::Relaxed) => Ok(()),
            OPEN => Err(Failure::Forked),
            BROKEN => Err(Failure::Panicked),
            _ => Err(Failure::Closed),
        }
    }

    #[allow(
        clippy::mut_from_ref,
        reason = "the caller promises what the compiler cannot see"
    )]
    fn reader(&self) -> Result<&mut Reader, Failure> {
        self.check()?;
        // SAFETY: the caller uses the handle in one thread at a time, and no reference lives longer than a call.
        unsafe { &mut *self.reader.get() }
            .as_mut()
            .ok_or(Failure::Closed)
    }

    /// Like [`guarded`]. After a panic the handle can only be closed.
    fn guarded(&self, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
        match catch(body) {
            Ok(()) => FASTPROC_OK,
            Err(failure) => {
                if matches!(failure, Failure::Panicked) {
                    self.status.store(BROKEN, Ordering::Relaxed);
                }
                failure.report()
            }
        }
    }
}

/// Opens a reader, and a handle for it.
///
/// # Safety
/// As for all functions.
pub(crate) unsafe fn open(
    handle: *mut *mut Fastproc,
    open: impl FnOnce() -> Result<Reader, Failure>,
) -> c_int {
    prepare();
    // SAFETY: NULL, or a place for a pointer.
    let Some(handle) = (unsafe { handle.as_mut() }) else {
        return Failure::Null.report();
    };
    *handle = ptr::null_mut();
    guarded(|| {
        let reader = open()?;
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let used = if free.0.len() > RESTING {
            free.0.pop_front()
        } else {
            None
        };
        drop(free);
        let opened = used.unwrap_or_else(|| {
            Box::into_raw(Box::new(Fastproc {
                status: AtomicU8::new(CLOSED),
                forks: AtomicU32::new(0),
                reader: UnsafeCell::new(None),
            }))
        });
        // SAFETY: from a box that is never dropped.
        let new = unsafe { &*opened };
        // SAFETY: it is closed, so no other code uses it.
        unsafe { *new.reader.get() = Some(reader) };
        new.forks
            .store(FORKS.load(Ordering::Relaxed), Ordering::Relaxed);
        new.status.store(OPEN, Ordering::Relaxed);
        *handle = opened;
        Ok(())
    })
}

/// Closes a handle. NULL does nothing.
///
/// # Safety
/// As for all functions.
pub(crate) unsafe fn close(handle: *mut Fastproc) -> c_int {
    // SAFETY: NULL, or a handle.
    let Some(of) = (unsafe { handle.as_ref() }) else {
        return FASTPROC_OK;
    };
    guarded(|| {
        let was = of.status.swap(CLOSED, Ordering::Relaxed);
        if was == CLOSED {
            return Err(Failure::Closed);
        }
        // SAFETY: it was open until now, and its caller is the only one that uses it.
        let reader = unsafe { (*of.reader.get()).take() };
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.0.push_back(handle);
        drop(free);
        drop(reader);
        Ok(())
    })
}

/// Calls `body` with what is behind a handle.
///
/// # Safety
/// As for all functions.
pub(crate) unsafe fn call(
    handle: *mut Fastproc,
    body: impl FnOnce(&mut Reader) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: NULL, or a handle.
    match unsafe { handle.as_ref() } {
        Some(handle) => handle.guarded(|| body(handle.reader()?)),
        None => Failure::Null.report(),
    }
}

/// Writes the result of `get` to `value`; if it fails, what means that nothing is known.
///
/// # Safety
/// As for all functions.
pub(crate) unsafe fn get<T>(
    handle: *mut Fastproc,
    value: *mut T,
    unknown: T,
    get: impl FnOnce(&mut Reader) -> Result<T, Failure>,
) -> c_int {
    if value.is_null() {
        return Failure::Null.report();
    }
    let mut found = unknown;
    // SAFETY: as the caller promises.
    let result = unsafe {
        call(handle, |reader| {
            found = get(reader)?;
            Ok(())
        })
    };
    // SAFETY: not NULL, so a place for a value.
    unsafe { value.write(found) };
    result
}

/// Returns a text that ends in a NUL, which its length does not count; an empty one on failure.
///
/// # Safety
/// As for all functions.
pub(crate) unsafe fn hand_out(
    handle: *mut Fastproc,
    text: *mut *const c_char,
    length: *mut usize,
    find: impl FnOnce(&mut Reader) -> Result<&[u8], Failure>,
) -> c_int {
    // SAFETY: NULL, or a place for a pointer.
    let Some(text) = (unsafe { text.as_mut() }) else {
        return Failure::Null.report();
    };
    let mut found = (c"".as_ptr(), 0);
    // SAFETY: as the caller promises.
    let result = unsafe {
        call(handle, |reader| {
            let bytes = find(reader)?;
            found = (bytes.as_ptr().cast(), bytes.len().saturating_sub(1));
            Ok(())
        })
    };
    *text = found.0;
    // SAFETY: NULL, or a place for a number.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = found.1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{constants::*, exports::*, failure::last, structures::*};

    #[test]
    fn a_panic_leaves_a_handle_that_can_only_be_closed() {
        let mut handle = ptr::null_mut::<Fastproc>();
        let source = c"procfs".as_ptr();
        let mut taken = FastprocSnapshot::default();
        // SAFETY: as the functions require.
        unsafe {
            let opened = fastproc_open(&raw mut handle, 0, source, 0, SIZES);
            assert_eq!(opened, FASTPROC_OK);
            assert_eq!(fastproc_snapshot(handle, &raw mut taken), FASTPROC_OK);
            assert!(taken.count > 0);
            let panicked = call(handle, |_| panic!("as a test does"));
            assert_eq!(panicked, FASTPROC_ERROR_INTERNAL);
            assert_eq!(
                fastproc_snapshot(handle, &raw mut taken),
                FASTPROC_ERROR_INTERNAL
            );
            assert_eq!(taken.count, 0);
            assert!(
                std::ffi::CStr::from_ptr(last())
                    .to_bytes()
                    .starts_with(b"a defect")
            );
            assert_eq!(fastproc_close(handle), FASTPROC_OK);
            assert_eq!(fastproc_close(handle), FASTPROC_ERROR_CLOSED);
        }
    }
}
