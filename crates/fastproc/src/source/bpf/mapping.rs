//! The maps' memory, in this process.
//!
//! Every `unsafe` of the BPF sources is in this file.

use std::{ffi::c_void, io, os::fd::AsFd, ptr::NonNull, slice};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::record::{Record, ThreadRecord};

/// Plain data that a BPF program may write: every bit pattern is a value, there is no padding, no pointer, no `Drop`.
///
/// # Safety
/// The implementor must be `#[repr(C)]` (or a primitive) and made of integers only.
pub(crate) unsafe trait Plain: Copy + 'static {}

// SAFETY: `#[repr(C)]`, integers and arrays of integers; record.rs asserts that no byte is padding.
unsafe impl Plain for Record {}
// SAFETY: as above.
unsafe impl Plain for ThreadRecord {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: `#[repr(C)]`, integers only.
unsafe impl Plain for super::object::Run {}
// SAFETY: `#[repr(C)]`, integers only.
unsafe impl Plain for super::object::Settings {}

/// The memory of a `BPF_F_MMAPABLE` array map, as a slice.
///
/// The kernel side writes to it only while one of our programs runs, and every run takes `&mut` of what holds this
/// mapping: no reference is alive then.
#[derive(Debug)]
pub(crate) struct Mapping<T: Plain> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: the mapping is memory of this process, owned by this value, and may be used from any thread.
unsafe impl<T: Plain> Send for Mapping<T> {}
// SAFETY: through `&Mapping` it can only be read.
unsafe impl<T: Plain> Sync for Mapping<T> {}

impl<T: Plain> Mapping<T> {
    /// Maps `len` elements of the map behind `fd`. Each element of the map must be as large as `T`.
    pub(crate) fn new(fd: impl AsFd, len: usize) -> io::Result<Self> {
        const {
            assert!(
                size_of::<T>().is_multiple_of(8),
                "array maps round elements up to eight bytes"
            );
        };
        let bytes = Self::bytes(len);
        let flags = MapFlags::SHARED;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
                fd,
                0,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, len })
    }

    fn bytes(len: usize) -> usize {
        let page = rustix::param::page_size();
        (len * size_of::<T>()).next_multiple_of(page)
    }

    /// The elements.
    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: `new` mapped `len` elements; any bytes are a valid `T`; nobody writes while `&self` is held.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The elements, to be changed by the library.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as for `as_slice`; `&mut self` makes this the only reference.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; no reference outlives `self`.
        // It can only fail for an address that was never mapped; there is nobody to tell.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), Self::bytes(self.len)) };
    }
}

/// The bytes of a plain value, to be put into a map before it is loaded.
pub(crate) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: a plain value has no padding, so all of its bytes are initialised.
    unsafe { slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}
