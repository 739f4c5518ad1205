//! Plain data: what a BPF program and the library can both read and write.

use std::slice;

/// Plain data that a BPF program may write: every bit pattern is a value, there is no padding, no pointer, no `Drop`.
///
/// # Safety
/// The implementor must be `#[repr(C)]` or a primitive, made of integers only, and without padding.
#[doc(hidden)]
pub unsafe trait Plain: Copy + 'static {}

// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}

/// The bytes of a plain value, to be written to a map before it is loaded.
pub(crate) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: a plain value has no padding, so all of its bytes are initialised.
    unsafe { slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Reads a value that a program wrote at the start of these bytes, at any alignment. `None` if there are too few
/// bytes.
pub(crate) fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: there are as many initialised bytes as the value has, and any bytes are one.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A plain value as words.
pub fn words<T: Plain>(value: &T) -> &[u64] {
    const { assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() == 8) };
    // SAFETY: a plain value has no padding, so all of its bytes are initialised; its length is a multiple of a word's,
    // and its alignment is the same.
    unsafe { slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>() / 8) }
}

/// A plain value as mutable words.
pub fn words_mut<T: Plain>(value: &mut T) -> &mut [u64] {
    const { assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() == 8) };
    // SAFETY: as above; it is borrowed for as long, and any words are a value.
    unsafe { slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>() / 8) }
}
