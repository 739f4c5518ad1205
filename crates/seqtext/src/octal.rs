//! Base eight in the form of `%#o`. It is rarely needed, and so not optimised.

/// The most digits there are: 64 bits and the leading zero.
pub(crate) const MAX: usize = 23;

/// The number of digits of `v` with its leading zero; 0 has only that.
#[inline]
pub(crate) fn digits(v: u64) -> usize {
    match v.checked_ilog2() {
        None => 1,
        Some(bit) => bit as usize / 3 + 2,
    }
}

/// Writes `v` with leading zeros to `len` digits.
///
/// # Safety
/// `at` is valid for writes of `len` bytes, and `len >= digits(v)`.
#[inline]
pub(crate) unsafe fn write(at: *mut u8, mut v: u64, len: usize) -> usize {
    for place in (0..len).rev() {
        // SAFETY: `place < len`.
        unsafe { at.add(place).write(b'0' + (v & 7) as u8) };
        v >>= 3;
    }
    len
}
