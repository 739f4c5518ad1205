//! Base ten.
//!
//! A number below 1000 is one load from a table and one store: the entry holds its digits, left-aligned, and how many
//! they are. Up to twelve digits are one such leading group and groups of exactly three from a second table. Of longer
//! numbers the last 16 digits come from parallel lanes (`sixteen`). Every part depends only on the number, never on
//! another part or on the place it goes to, so that a processor computes them, and those of the next numbers, side by
//! side; and there is one branch for three or more lengths, because lengths are what a branch predictor cannot know.
//!
//! These were slower on the numbers of real `/proc` files and on every length: tables of two digits with a branch for
//! each length, eight digits in a chain of 64-bit multiplications (its latency fills the scheduler), groups of three
//! for more than twelve digits, counting digits by comparisons, and Jones' five digits at a time. `benches/decimal.rs`
//! compares with other implementations.
//!
//! All functions here write left-aligned at `at`, in stores of a fixed width that may reach past the last digit.

use crate::{sixteen::sixteen, store::store};

/// For 0..=999: the digits without leading zeros in the low bytes, their number in the highest.
const LEADING: &[u32; 1000] = &leading_groups();

/// For 0..=999: three digits with leading zeros in the low bytes.
const FULL: &[u32; 1000] = &full_groups();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn full_groups() -> [u32; 1000] {
    let mut groups = [0; 1000];
    let mut n = 0;
    while n < 1000 {
        let digits = [
            b'0' + (n / 100) as u8,
            b'0' + (n / 10 % 10) as u8,
            b'0' + (n % 10) as u8,
            0,
        ];
        groups[n] = u32::from_le_bytes(digits);
        n += 1;
    }
    groups
}

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn leading_groups() -> [u32; 1000] {
    let mut groups = full_groups();
    let mut n = 0;
    while n < 1000 {
        let len = if n < 10 {
            1
        } else if n < 100 {
            2
        } else {
            3
        };
        groups[n] = groups[n] >> (8 * (3 - len)) | len << 24;
        n += 1;
    }
    groups
}

/// Writes `n` without leading zeros.
///
/// # Safety
/// `n < 1000`; `at` is valid for writes of 4 bytes.
#[inline(always)]
unsafe fn leading(at: *mut u8, n: u32) -> usize {
    // SAFETY: the table has 1000 entries.
    let group = unsafe { *LEADING.get_unchecked(n as usize) };
    // SAFETY: the caller's promise.
    unsafe { store(at, group.to_le_bytes()) };
    (group >> 24) as usize
}

/// Writes `n` as exactly three digits.
///
/// # Safety
/// `n < 1000`; `at` is valid for writes of 4 bytes.
#[inline(always)]
unsafe fn full(at: *mut u8, n: u32) -> usize {
    // SAFETY: the table has 1000 entries.
    let group = unsafe { *FULL.get_unchecked(n as usize) };
    // SAFETY: the caller's promise.
    unsafe { store(at, group.to_le_bytes()) };
    3
}

/// Writes `n` without leading zeros.
///
/// # Safety
/// `n < 10^6`; `at` is valid for writes of 7 bytes.
#[inline(always)]
unsafe fn leading6(at: *mut u8, n: u32) -> usize {
    let thousands = n / 1000;
    // SAFETY: quotient and remainder by 1000; the last store covers at most bytes 3 to 6.
    unsafe {
        if n < 1000 {
            return leading(at, n);
        }
        let len = leading(at, thousands);
        len + full(at.add(len), n - thousands * 1000)
    }
}

/// Writes `n` as exactly six digits.
///
/// # Safety
/// `n < 10^6`; `at` is valid for writes of 7 bytes.
#[inline(always)]
unsafe fn full6(at: *mut u8, n: u32) -> usize {
    let thousands = n / 1000;
    // SAFETY: quotient and remainder by 1000; the last store covers bytes 3 to 6.
    unsafe { full(at, thousands) + full(at.add(3), n - thousands * 1000) }
}

/// Writes `n` without leading zeros.
///
/// # Safety
/// `n < 10^9`; `at` is valid for writes of 10 bytes.
#[inline(always)]
unsafe fn leading9(at: *mut u8, n: u32) -> usize {
    let millions = n / 1_000_000;
    // SAFETY: quotient and remainder by 10^6; the last store covers at most bytes 6 to 9.
    unsafe {
        if n < 1_000_000 {
            return leading6(at, n);
        }
        let len = leading(at, millions);
        len + full6(at.add(len), n - millions * 1_000_000)
    }
}

/// Writes `n` as exactly nine digits.
///
/// # Safety
/// `n < 10^9`; `at` is valid for writes of 10 bytes.
#[inline(always)]
unsafe fn full9(at: *mut u8, n: u32) -> usize {
    let millions = n / 1_000_000;
    // SAFETY: quotient and remainder by 10^6; the last store covers bytes 6 to 9.
    unsafe { full(at, millions) + full6(at.add(3), n - millions * 1_000_000) }
}

/// Writes `n` as exactly 18 digits.
///
/// # Safety
/// `n < 10^18`; `at` is valid for writes of 19 bytes.
#[inline]
unsafe fn full18(at: *mut u8, n: u64) -> usize {
    let billions = n / 1_000_000_000;
    // SAFETY: quotient and remainder by 10^9.
    unsafe { full9(at, billions as u32) + full9(at.add(9), (n - billions * 1_000_000_000) as u32) }
}

/// # Safety
/// `at` is valid for writes of the digits of `n` and one byte, at least of 4 bytes.
#[inline(always)]
pub(crate) unsafe fn write_u32(at: *mut u8, n: u32) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        if n < 1000 {
            at.add(leading(at, n))
        } else {
            write_long_u32(at, n)
        }
    }
}

/// # Safety
/// `at` is valid for writes of the digits of `n` and one byte, at least of 4 bytes.
#[inline(never)]
unsafe fn write_long_u32(at: *mut u8, n: u32) -> *mut u8 {
    // SAFETY: each branch has the range that its function requires, and touches one byte behind the digits.
    unsafe {
        if n < 1_000_000_000 {
            at.add(leading9(at, n))
        } else {
            let billions = n / 1_000_000_000;
            let at = at.add(leading(at, billions));
            at.add(full9(at, n - billions * 1_000_000_000))
        }
    }
}

/// The most bytes that the conversion of a u64 touches.
pub(crate) const TOUCHES_U64: usize = 20;

/// The whole conversion inline, for a loop.
///
/// # Safety
/// `at` is valid for writes of [`TOUCHES_U64`] bytes.
#[inline(always)]
pub(crate) unsafe fn write_u64_in_line(at: *mut u8, n: u64) -> usize {
    const E8: u64 = 100_000_000;
    // SAFETY: each branch has the range that its function requires; four digits and 16 are the most that is touched.
    unsafe {
        if n < 1000 {
            return leading(at, n as u32);
        }
        if n < 1_000_000 {
            return leading6(at, n as u32);
        }
        if n < 1_000_000_000 {
            return leading9(at, n as u32);
        }
        if n < 1_000_000_000_000 {
            let billions = n / 1_000_000_000;
            let len = leading(at, billions as u32);
            return len + full9(at.add(len), (n - billions * 1_000_000_000) as u32);
        }
        if n < E8 * E8 {
            let high = n / E8;
            let (first, second) = sixteen(high as u32, (n - high * E8) as u32);
            let len = digits(high);
            store(at, (first >> (64 - 8 * len)).to_le_bytes());
            store(at.add(len), second.to_le_bytes());
            return len + 8;
        }
        let top = n / (E8 * E8);
        let rest = n - top * (E8 * E8);
        let high = rest / E8;
        let (first, second) = sixteen(high as u32, (rest - high * E8) as u32);
        let len = leading6(at, top as u32);
        store(at.add(len), first.to_le_bytes());
        store(at.add(len + 8), second.to_le_bytes());
        len + 16
    }
}

/// The same for many call sites: short numbers inline, the rest by a call.
///
/// # Safety
/// `at` is valid for writes of [`TOUCHES_U64`] bytes.
#[inline(always)]
pub(crate) unsafe fn write_u64(at: *mut u8, n: u64) -> *mut u8 {
    // SAFETY: there are more than four bytes; otherwise the caller's promise.
    unsafe {
        if n < 1000 {
            at.add(leading(at, n as u32))
        } else {
            write_long_u64(at, n)
        }
    }
}

/// # Safety
/// `at` is valid for writes of [`TOUCHES_U64`] bytes.
#[inline(never)]
unsafe fn write_long_u64(at: *mut u8, n: u64) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { at.add(write_u64_in_line(at, n)) }
}

/// # Safety
/// `at` is valid for writes of 40 bytes: 39 digits and one byte.
#[inline]
pub(crate) unsafe fn write_u128(at: *mut u8, n: u128) -> *mut u8 {
    // SAFETY: remainders of 10^18 go to `full18`; 2^128 / 10^36 < 1000; 39 digits and a byte are the most that is touched.
    unsafe {
        if let Ok(n) = u64::try_from(n) {
            return write_u64(at, n);
        }
        let (high, low) = div_rem_1e18(n);
        let at = if let Ok(high) = u64::try_from(high) {
            write_u64(at, high)
        } else {
            let (top, middle) = div_rem_1e18(high);
            let at = at.add(leading(at, top as u32));
            at.add(full18(at, middle))
        };
        at.add(full18(at, low))
    }
}

/// Quotient and remainder by 10^18, by one multiplication: the compiler would call its division of 128 bits.
fn div_rem_1e18(n: u128) -> (u128, u64) {
    const E18: u128 = 1_000_000_000_000_000_000;
    // 10^18 = 2^18 * FIVES, and n / 2^18 has 110 bits. The reciprocal of FIVES, rounded up at 152 bits, is too great by
    // less than 2^-152, hence the product by less than 2^-42 < 1 / FIVES: not enough to reach the next whole number.
    const FIVES: u128 = 5_u128.pow(18);
    const WHOLE: u128 = (1 << 127) / FIVES;
    const REST: u128 = (1 << 127) % FIVES;
    const RECIPROCAL: u128 = (WHOLE << 25) + (REST << 25) / FIVES + 1;
    const _: () = assert!(FIVES < 1 << 42);
    let quotient = mul_high(n >> 18, RECIPROCAL) >> 24;
    (quotient, (n - quotient * E18) as u64)
}

/// The upper 128 bits of a product. Neither factor may exceed 2^111, so that no sum overflows.
fn mul_high(a: u128, b: u128) -> u128 {
    let (a1, a0) = (a >> 64, a & u128::from(u64::MAX));
    let (b1, b0) = (b >> 64, b & u128::from(u64::MAX));
    let carry = (a0 * b0) >> 64;
    let middle = a1 * b0 + a0 * b1 + carry;
    a1 * b1 + (middle >> 64)
}

/// The number of decimal digits of `n`, at least 1.
#[inline]
pub(crate) fn digits(n: u64) -> usize {
    // By the position b of the highest bit: [2^b, 2^(b+1)) contains at most one power of ten, 10^k. The number of
    // digits is that of 2^b, plus one from 10^k on.
    const LEAST: &[u64; 64] = &thresholds();
    const AT_LEAST: &[u8; 64] = &lengths();
    let bit = (n | 1).ilog2() as usize & 63;
    // SAFETY: an index of six bits into 64 entries.
    let (least, len) = unsafe { (*LEAST.get_unchecked(bit), *AT_LEAST.get_unchecked(bit)) };
    usize::from(len) + usize::from(n >= least)
}

/// The digits of 2^b.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn lengths() -> [u8; 64] {
    let mut lengths = [0; 64];
    let mut bit = 0;
    while bit < 64 {
        lengths[bit] = (1_u64 << bit).ilog10() as u8 + 1;
        bit += 1;
    }
    lengths
}

/// The least number with one digit more than 2^b.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn thresholds() -> [u64; 64] {
    let lengths = lengths();
    let mut thresholds = [0; 64];
    let mut bit = 0;
    while bit < 64 {
        thresholds[bit] = 10_u64.pow(lengths[bit] as u32);
        bit += 1;
    }
    thresholds
}
