//! Douglas W. Jones' method, which made Linux' conversion 2.5 times faster in 2007: five digits at a time by shifts,
//! additions and multiplications by small numbers, and one division for each five.
//!
//! A number below 100000 is cut into nibbles, `n3 * 4096 + n2 * 256 + n1 * 16 + n0`, where n3 may have more than four
//! bits. The decimal digits of the nibbles' weights give how much each adds to each decimal place; what exceeds ten in
//! one place is carried to the next. All sums stay below 400, where a division by ten is a multiplication by 205 and a
//! shift by 11.

use super::method::{Method, turn_round};

pub struct Jones;

/// Sum in one decimal place to its digit and what is carried.
#[inline]
fn split(sum: u32) -> (u8, u32) {
    let carry = (sum * 205) >> 11;
    (b'0' + (sum - 10 * carry) as u8, carry)
}

/// The places of a number below 100000 as sums, last first, without carries but for the last. The fifth is carry alone.
#[inline]
fn sums(n: u32) -> [u32; 4] {
    let (n3, n2, n1, n0) = (n >> 12, n >> 8 & 15, n >> 4 & 15, n & 15);
    [
        6 * (n3 + n2 + n1) + n0,
        9 * n3 + 5 * n2 + n1,
        2 * n2,
        4 * n3,
    ]
}

/// Five digits, last first.
#[inline]
fn all_five(n: u32, digits: &mut [u8; 5]) {
    let mut carry = 0;
    for (digit, sum) in digits.iter_mut().zip(sums(n)) {
        (*digit, carry) = split(sum + carry);
    }
    digits[4] = b'0' + carry as u8;
}

/// The digits that there are, last first, and their number.
#[inline]
fn leading(n: u32, digits: &mut [u8; 5]) -> usize {
    let sums = sums(n);
    let (digit, carry) = split(sums[0]);
    digits[0] = digit;
    let rest = sums[1] + carry;
    if rest == 0 {
        return 1;
    }
    let (digit, carry) = split(rest);
    digits[1] = digit;
    let rest = sums[2] + carry;
    if rest == 0 && sums[3] == 0 {
        return 2;
    }
    let (digit, carry) = split(rest);
    digits[2] = digit;
    let rest = sums[3] + carry;
    if rest == 0 {
        return 3;
    }
    let (digit, carry) = split(rest);
    digits[3] = digit;
    if carry == 0 {
        return 4;
    }
    digits[4] = b'0' + carry as u8;
    5
}

impl Method for Jones {
    const CASE: &'static str = "jones";

    // A call, as it is in the kernel.
    #[inline(never)]
    fn append(out: &mut [u8], at: usize, mut n: u64) -> usize {
        let mut digits = [[0; 5]; 4];
        let mut fives = 0;
        while n >= 100_000 && fives < 3 {
            all_five((n % 100_000) as u32, &mut digits[fives]);
            n /= 100_000;
            fives += 1;
        }
        let len = 5 * fives + leading(n as u32, &mut digits[fives]);
        turn_round(digits.as_flattened(), len, out, at)
    }
}
