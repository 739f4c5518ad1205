//! Compares base ten with an independent slow conversion, on edges and sweeps. All u32 take minutes and need an
//! optimised build: `cargo test --release -p seqtext --test all -- --ignored`.

use seqtext::{Dec, DecWidth, Piece, SeqBuf};

/// One digit after the other.
fn slow(mut n: u128) -> Vec<u8> {
    let mut digits = Vec::new();
    loop {
        digits.push(b"0123456789"[(n % 10) as usize]);
        n /= 10;
        if n == 0 {
            digits.reverse();
            return digits;
        }
    }
}

fn signed(n: i128) -> Vec<u8> {
    let mut text = if n < 0 { vec![b'-'] } else { Vec::new() };
    text.extend(slow(n.unsigned_abs()));
    text
}

/// By the call with the inline conversion.
#[track_caller]
fn check_call(n: u64, expected: &[u8]) {
    let mut memory = [0xa5; 64];
    let mut buf = SeqBuf::new(&mut memory);
    assert_eq!(buf.put_decimal_ull("", n).text(), Ok(expected));
}

#[track_caller]
fn check(piece: impl Piece, expected: &[u8]) {
    let mut memory = [0xa5; 64];
    let mut buf = SeqBuf::new(&mut memory);
    assert_eq!(buf.put(piece).text(), Ok(expected));
}

/// Checks a number by itself, and by each of these types that it fits.
macro_rules! check_types {
    ($n:ident, $text:expr, $($type:ty)*) => {
        check(Dec($n), $text);
        $(if let Ok(n) = <$type>::try_from($n) {
            check(Dec(n), $text);
        })*
    };
}

/// `n` by every type that it fits.
fn check_all(n: u128) {
    let text = slow(n);
    check_types!(n, &text, u8 u16 u32 u64 usize i8 i16 i32 i64 isize i128);
    if let Ok(n) = u64::try_from(n) {
        check_call(n, &text);
        let padding = vec![b' '; 8_usize.saturating_sub(text.len())];
        check(DecWidth::<8>(n), &[padding, text].concat());
    }
}

fn check_signed(n: i128) {
    check_types!(n, &signed(n), i8 i16 i32 i64 isize);
}

/// 0 to 9, the powers of 10 and of 2 and their neighbours, and numbers with runs of zeros and nines.
fn edges() -> Vec<u128> {
    let tens: Vec<u128> = (0..39).map(|power| 10_u128.pow(power)).collect();
    let twos: Vec<u128> = (0..128).map(|power| 1_u128 << power).collect();
    let mut edges: Vec<u128> = [&tens[..], &twos]
        .concat()
        .into_iter()
        .flat_map(|n| [n - 1, n, n + 1])
        .collect();
    edges.extend(0..=9);
    edges.extend([u128::MAX, u128::MAX - 1]);
    // Miri takes minutes for what follows, and has seen every path by now.
    if !cfg!(miri) {
        for a in &tens {
            edges.extend((2..=9).filter_map(|digit| a.checked_mul(digit)));
            edges.extend(tens.iter().flat_map(|b| [a + b, a.abs_diff(*b)]));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

#[test]
fn edges_of_every_type() {
    for n in edges() {
        check_all(n);
        check_signed(n as i128);
        check_signed((n as i128).wrapping_neg());
    }
    check_signed(i128::MIN);
    for n in [
        i8::MIN.into(),
        i16::MIN.into(),
        i32::MIN.into(),
        i128::from(i64::MIN),
    ] {
        check_signed(n);
    }
}

#[test]
fn short_numbers_all() {
    let all = if cfg!(miri) { 200 } else { 110_000 };
    for n in 0..all {
        check_all(n);
    }
}

#[test]
#[ignore = "minutes, in an optimised build"]
fn every_u32() {
    // Counts like an odometer, which is faster than converting slowly.
    let (mut drums, mut start) = ([b'0'; 10], 9);
    for n in 0..=u32::MAX {
        let mut memory = [0; 64];
        let mut buf = SeqBuf::new(&mut memory);
        assert_eq!(buf.put(Dec(n)).text(), Ok(&drums[start..]));
        check_call(n.into(), &drums[start..]);
        let Some(at) = drums.iter().rposition(|&drum| drum < b'9') else {
            break;
        };
        drums[at] += 1;
        drums[at + 1..].fill(b'0');
        start = start.min(at);
    }
    assert_eq!(drums, *b"4294967296");
}

#[test]
fn a_sparse_sweep_of_u32() {
    // A prime, so that the steps meet every residue of every group of digits.
    let step = if cfg!(miri) { 200_000_033 } else { 4_001 };
    for n in (0..=u32::MAX).step_by(step) {
        check(Dec(n), &slow(n.into()));
    }
}

#[test]
fn random_numbers_of_every_length() {
    // xorshift64*: the numbers only need to be spread out, and the same each time.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let draws = if cfg!(miri) { 100 } else { 200_000 };
    for _ in 0..draws {
        let n = random() >> (random() % 64);
        check(Dec(n), &slow(n.into()));
        check_call(n, &slow(n.into()));
        check(Dec(n as i64), &signed((n as i64).into()));
        let n = (u128::from(random()) << 64 | u128::from(random())) >> (random() % 128);
        check(Dec(n), &slow(n));
    }
}
