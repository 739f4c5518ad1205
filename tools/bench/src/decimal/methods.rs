//! All that are measured.

use super::{
    core_fmt::CoreFmt, digit_loop::DigitLoop, itoa::Itoa, jones::Jones,
    kernel_two_digit::KernelTwoDigit, lexical_core::LexicalCore, method::Converter,
    seqtext::Seqtext,
};

/// All of them, the one in question last.
pub const METHODS: [Converter; 7] = [
    Converter::of::<DigitLoop>(),
    Converter::of::<Jones>(),
    Converter::of::<KernelTwoDigit>(),
    Converter::of::<Itoa>(),
    Converter::of::<LexicalCore>(),
    Converter::of::<CoreFmt>(),
    Converter::of::<Seqtext>(),
];
