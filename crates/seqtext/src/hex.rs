//! Base sixteen, lower case, eight digits in one 64-bit word.

use crate::store::store;

/// The eight hexadecimal digits of `v`, the first in the lowest byte.
#[inline(always)]
fn eight(v: u32) -> u64 {
    // Spread the bytes to 16 bits each, then the nibbles to bytes, most significant first.
    let v = u64::from(v.swap_bytes());
    let v = (v | v << 16) & 0x0000_ffff_0000_ffff;
    let v = (v | v << 8) & 0x00ff_00ff_00ff_00ff;
    let v = (v >> 4 | v << 8) & 0x0f0f_0f0f_0f0f_0f0f;
    // From 10 on the sixth bit of v + 6 is set, and the letters start 39 behind where the digits end.
    let letters = (v + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    v + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10)
}

/// The number of hexadecimal digits of `v`, at least 1.
#[inline]
pub(crate) fn digits(v: u64) -> usize {
    (v | 1).ilog2() as usize / 4 + 1
}

/// Writes exactly 8 digits.
///
/// # Safety
/// `at` is valid for writes of 8 bytes.
#[inline(always)]
pub(crate) unsafe fn write8(at: *mut u8, v: u32) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        store(at, eight(v).to_le_bytes());
        8
    }
}

/// Writes exactly 16 digits.
///
/// # Safety
/// `at` is valid for writes of 16 bytes.
#[inline(always)]
pub(crate) unsafe fn write16(at: *mut u8, v: u64) -> usize {
    // SAFETY: the caller's promise.
    unsafe { write8(at, (v >> 32) as u32) + write8(at.add(8), v as u32) }
}

/// Writes `v` without leading zeros.
///
/// # Safety
/// `at` is valid for writes of 16 bytes.
#[inline]
pub(crate) unsafe fn write(at: *mut u8, v: u64) -> usize {
    let len = digits(v);
    let high = eight((v >> 32) as u32);
    let low = eight(v as u32);
    // SAFETY: 16 bytes may be written; at most 8 digits stand in each half.
    unsafe {
        if len <= 8 {
            store(at, (low >> (64 - 8 * len)).to_le_bytes());
        } else {
            store(at, (high >> (128 - 8 * len)).to_le_bytes());
            store(at.add(len - 8), low.to_le_bytes());
        }
        len
    }
}
