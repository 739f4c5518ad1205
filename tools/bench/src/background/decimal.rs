//! Conversion to base ten by the kernel's methods over the years, and by seqtext.

use seqtext::SeqBuf;

/// Writes the digits of all numbers, one after the other, and returns the end. There is room for 32 bytes each.
pub type All = fn(&[u64], &mut [u8]) -> usize;

/// Before 2007, from 2007 on, since 2015 ([`KERNEL`]), and fastproc's.
pub const METHODS: [(&str, All); 4] = [
    ("a digit at a time", |all, out| fold(all, out, digits)),
    ("five digits, as in 2007", |all, out| fold(all, out, fives)),
    (KERNEL, |all, out| fold(all, out, pairs)),
    ("seqtext", |all, out| {
        let mut buf = SeqBuf::new(out);
        for &n in all {
            buf.put_decimal_ull("", n);
        }
        buf.count()
    }),
];
/// Today's kernel.
pub const KERNEL: &str = "pairs, today's kernel";

#[inline]
fn fold(numbers: &[u64], out: &mut [u8], append: fn(&mut [u8], usize, u64) -> usize) -> usize {
    numbers.iter().fold(0, |at, &n| append(out, at, n))
}

/// Copies the first `len` of `digits`, last first, to `at`, and returns the end.
#[inline]
fn turn_round(digits: &[u8], len: usize, out: &mut [u8], at: usize) -> usize {
    let end = at + len;
    for (to, from) in out[at..end].iter_mut().zip(digits[..len].iter().rev()) {
        *to = *from;
    }
    end
}

/// A division by ten for each digit. This is a call, as in the kernel; so are the other two methods.
#[inline(never)]
fn digits(out: &mut [u8], at: usize, mut n: u64) -> usize {
    let mut digits = [0; 20];
    let mut len = 0;
    for digit in &mut digits {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
        len += 1;
        if n == 0 {
            break;
        }
    }
    turn_round(&digits, len, out, at)
}

// Douglas W. Jones' method, which made Linux' conversion 2.5 times faster in 2007: five digits at a time by shifts,
// additions and multiplications by small numbers, and one division for each five.
//
// A number below 100000 is split into nibbles, `n3 * 4096 + n2 * 256 + n1 * 16 + n0`, where n3 may have more than four
// bits. The decimal digits of the nibbles' weights give how much each adds to each decimal place; a sum above nine in
// one place is carried to the next. All sums stay below 400, where a division by ten is a multiplication by 205 and a
// shift by 11.

/// Splits the sum of one decimal place into its digit and the carry.
#[inline]
fn split(sum: u32) -> (u8, u32) {
    let carry = (sum * 205) >> 11;
    (b'0' + (sum - 10 * carry) as u8, carry)
}

/// The decimal places of a number below 100000 as sums, last first, without carries except in the last. The fifth is
/// only the carry.
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

/// The digits without leading zeros, last first, and their number.
#[inline]
fn leading_five(n: u32, digits: &mut [u8; 5]) -> usize {
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

/// Five digits at a time.
#[inline(never)]
fn fives(out: &mut [u8], at: usize, mut n: u64) -> usize {
    let mut digits = [[0; 5]; 4];
    let mut fives = 0;
    while n >= 100_000 && fives < 3 {
        all_five((n % 100_000) as u32, &mut digits[fives]);
        n /= 100_000;
        fives += 1;
    }
    let len = 5 * fives + leading_five(n as u32, &mut digits[fives]);
    turn_round(digits.as_flattened(), len, out, at)
}

// The kernel's method since 2015: two digits at a time from a table, the last first, by multiplications with
// reciprocals, and the digits reversed; 0 to 9 have their own path.

/// For 0..=99: both digits, the last first.
static PAIRS: [[u8; 2]; 100] = all_pairs();

const fn all_pairs() -> [[u8; 2]; 100] {
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
fn split_pair(n: u32) -> (u32, [u8; 2]) {
    // 2^32 / 100, rounded up.
    let quotient = ((u64::from(n) * 42_949_673) >> 32) as u32;
    (quotient, PAIRS[(n - 100 * quotient) as usize])
}

/// Eight digits, last first.
#[inline]
fn all_eight(mut n: u32, digits: &mut [u8; 8]) {
    for pair in digits.as_chunks_mut().0 {
        (n, *pair) = split_pair(n);
    }
}

/// The digits without leading zeros, last first, and their number.
#[inline]
fn leading_eight(mut n: u32, digits: &mut [u8; 8]) -> usize {
    let mut len = 0;
    for pair in digits.as_chunks_mut().0 {
        if n < 100 {
            *pair = PAIRS[n as usize];
            return len + if n < 10 { 1 } else { 2 };
        }
        (n, *pair) = split_pair(n);
        len += 2;
    }
    len
}

/// Two digits at a time.
#[inline(never)]
fn pairs(out: &mut [u8], at: usize, mut n: u64) -> usize {
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
    let len = 8 * eights + leading_eight(n as u32, &mut digits[eights]);
    turn_round(digits.as_flattened(), len, out, at)
}
