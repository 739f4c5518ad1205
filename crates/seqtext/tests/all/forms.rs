//! Compares every call with `format!`, with enough memory and with too little.

use crate::model::{Call, check};
use proptest::{collection::vec, option, prelude::*};

/// Numbers of all lengths equally; a uniform one is nearly always long.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        (any::<u64>(), 0_u32..64).prop_map(|(n, shift)| n >> shift),
        (0_u32..20, 0_u64..3)
            .prop_map(|(power, above)| (10_u64.pow(power) + above).wrapping_sub(1)),
    ]
}

fn wide() -> impl Strategy<Value = u128> {
    (any::<u128>(), 0_u32..128).prop_map(|(n, shift)| n >> shift)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(
        prop_oneof![
            any::<u8>(),
            prop::sample::select(&b"\0\x07\t\n\x0b\x0c\r\x1b\"\\ a"[..])
        ],
        0..40,
    )
}

fn words() -> impl Strategy<Value = Vec<u64>> {
    vec(
        prop_oneof![Just(0), Just(u64::MAX), number(), any::<u64>()],
        0..5,
    )
}

fn call() -> impl Strategy<Value = Call> {
    let text = || ".{0,9}";
    prop_oneof![
        any::<u8>().prop_map(Call::Putc),
        text().prop_map(Call::Puts),
        bytes().prop_map(Call::Write),
        (text(), number()).prop_map(|(d, n)| Call::DecimalUll(d, n)),
        (text(), number(), 0_u8..50).prop_map(|(d, n, w)| Call::DecimalUllWidth(d, n, w)),
        (text(), number(), any::<bool>()).prop_map(|(d, n, sign)| Call::DecimalLl(
            d,
            if sign {
                (n as i64).wrapping_neg()
            } else {
                n as i64
            }
        )),
        (text(), number(), 0_u8..50).prop_map(|(d, n, w)| Call::HexLl(d, n, w)),
        number().prop_map(Call::Sigset),
        (text(), number(), 0_u8..50).prop_map(|(d, n, w)| Call::Octal(d, n, w)),
        (words(), 0_u16..400).prop_map(|(w, n)| Call::Bitmap(w, n)),
        (words(), 0_u16..400).prop_map(|(w, n)| Call::BitmapList(w, n)),
        (bytes(), bytes()).prop_map(|(t, c)| Call::Escape(t, c)),
        (bytes(), any::<u8>(), bytes()).prop_map(|(t, f, c)| Call::EscapeStr(t, f, c)),
        (number(), wide()).prop_map(|(n, w)| Call::Unsigned(n, w)),
        (number(), wide()).prop_map(|(n, w)| Call::Signed(n as i64, w as i128)),
        number().prop_map(Call::Padded),
        number().prop_map(Call::Based),
        (
            any::<[u8; 16]>(),
            0_usize..=16,
            option::of(any::<[u8; 5]>())
        )
            .prop_map(|(mut comm, len, other)| {
                comm[len..].fill(0);
                Call::Labels(comm, other)
            }),
    ]
}

/// No file: failures are printed, and Miri has no files.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { cases / 64 } else { cases },
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(config(4096))]

    #[test]
    fn each_call_is_its_format(call in call()) {
        check(&[call], 2000);
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn a_text_fits_or_overflows_at_every_size(calls in vec(call(), 1..4)) {
        let needed = calls.iter().flat_map(Call::expected).count();
        // Miri checks every byte that each of them compares.
        for size in (0..needed + 70).step_by(if cfg!(miri) { 17 } else { 1 }) {
            check(&calls, size);
        }
    }
}
