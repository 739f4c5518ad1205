//! What the kernel does since 2015: two digits at a time from a table, the last first, by multiplications with
//! reciprocals, and the digits turned round; 0 to 9 go a way of their own.

use super::method::{Method, turn_round};

pub struct KernelTwoDigit;

/// For 0..=99: both digits, the last first.
static PAIRS: [[u8; 2]; 100] = pairs();

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n % 10) as u8, b'0' + (n / 10) as u8];
        n += 1;
    }
    pairs
}

/// Quotient and last two digits, for n below 10^8.
#[inline]
fn split(n: u32) -> (u32, [u8; 2]) {
    // 2^32 / 100, rounded up.
    let quotient = ((u64::from(n) * 42_949_673) >> 32) as u32;
    (quotient, PAIRS[(n - 100 * quotient) as usize])
}

/// Eight digits, last first.
#[inline]
fn all_eight(mut n: u32, digits: &mut [u8; 8]) {
    for pair in digits.as_chunks_mut().0 {
        (n, *pair) = split(n);
    }
}

/// The digits that there are, last first, and their number.
#[inline]
fn leading(mut n: u32, digits: &mut [u8; 8]) -> usize {
    let mut len = 0;
    for pair in digits.as_chunks_mut().0 {
        if n < 100 {
            *pair = PAIRS[n as usize];
            return len + if n < 10 { 1 } else { 2 };
        }
        (n, *pair) = split(n);
        len += 2;
    }
    len
}

impl Method for KernelTwoDigit {
    const CASE: &'static str = "kernel-two-digit";

    // A call, as it is in the kernel.
    #[inline(never)]
    fn append(out: &mut [u8], at: usize, mut n: u64) -> usize {
        let mut digits = [[0; 8]; 3];
        if n < 10 {
            digits[0][0] = b'0' + n as u8;
            return turn_round(digits.as_flattened(), 1, out, at);
        }
        let mut eights = 0;
        while n >= 100_000_000 && eights < 2 {
            all_eight((n % 100_000_000) as u32, &mut digits[eights]);
            n /= 100_000_000;
            eights += 1;
        }
        let len = 8 * eights + leading(n as u32, &mut digits[eights]);
        turn_round(digits.as_flattened(), len, out, at)
    }
}
