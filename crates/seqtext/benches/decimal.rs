//! Numbers to text in base ten: seqtext beside `itoa`, `lexical-core` and `core::fmt`.
//!
//! `cargo bench -p seqtext --bench decimal` prints the time for one text of 8,192 numbers, by the number of digits; 0
//! stands for an equal number of each length, in random order.

use std::fmt::Write as _;

use divan::{Bencher, black_box, counter::ItemsCount};
use seqtext::SeqBuf;

const NUMBERS: u32 = 8192;
const DIGITS: [u32; 5] = [0, 3, 6, 10, 20];

fn main() {
    divan::main();
}

/// The same in every run; too many for a branch predictor to learn their order.
fn numbers(digits: u32) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut number = || {
        let digits = if digits == 0 {
            1 + random() as u32 % 20
        } else {
            digits
        };
        let least = if digits == 1 {
            0
        } else {
            10_u64.pow(digits - 1)
        };
        // Only twenty digits go beyond what a u64 holds.
        let most = 10_u64
            .checked_pow(digits)
            .map_or(u64::MAX, |beyond| beyond - 1);
        least + random() % (most - least)
    };
    (0..NUMBERS).map(|_| number()).collect()
}

/// `append` writes a number at a place in memory, and returns where it ends.
fn bench(bencher: Bencher<'_, '_>, digits: u32, append: impl Fn(&mut [u8], usize, u64) -> usize) {
    let numbers = numbers(digits);
    let mut out = vec![0; 32 * numbers.len()];
    bencher
        .counter(ItemsCount::new(numbers.len()))
        .bench_local(|| {
            black_box(&numbers)
                .iter()
                .fold(0, |at, &n| append(&mut out, at, n))
        });
}

#[divan::bench(args = DIGITS)]
fn by_seqtext(bencher: Bencher<'_, '_>, digits: u32) {
    let numbers = numbers(digits);
    let mut out = vec![0; 32 * numbers.len()];
    bencher
        .counter(ItemsCount::new(numbers.len()))
        .bench_local(|| {
            let mut buf = SeqBuf::new(&mut out);
            for &n in black_box(&numbers) {
                buf.put_decimal_ull("", n);
            }
            buf.count()
        });
}

#[divan::bench(args = DIGITS)]
fn by_itoa(bencher: Bencher<'_, '_>, digits: u32) {
    bench(bencher, digits, |out, at, n| {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(n).as_bytes();
        out[at..at + text.len()].copy_from_slice(text);
        at + text.len()
    });
}

#[divan::bench(args = DIGITS)]
fn by_lexical_core(bencher: Bencher<'_, '_>, digits: u32) {
    bench(bencher, digits, |out, at, n| {
        at + lexical_core::write(n, &mut out[at..]).len()
    });
}

#[divan::bench(args = DIGITS)]
fn by_core_fmt(bencher: Bencher<'_, '_>, digits: u32) {
    let numbers = numbers(digits);
    let mut out = String::with_capacity(32 * numbers.len());
    bencher
        .counter(ItemsCount::new(numbers.len()))
        .bench_local(|| {
            out.clear();
            for n in black_box(&numbers) {
                // Writing to a string does not fail.
                let _ = write!(out, "{n}");
            }
            out.len()
        });
}
