//! Names are bytes in the kernel, and UTF-8 in Parquet.

use std::{borrow::Cow, fmt::Write};

/// Writes bytes as UTF-8. A backslash becomes two, and what is not UTF-8 becomes `\xHH` for each byte: no two names have
/// the same text, and a name without either is its own text.
pub fn escaped(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains('\\')
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            let _ = write!(text, r"\x{byte:02x}");
        }
    }
    Cow::Owned(text)
}

/// The bytes that [`escaped`] wrote as this text. `None` if it writes no bytes so.
pub fn unescaped(text: &str) -> Option<Cow<'_, [u8]>> {
    if !text.contains('\\') {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        rest = if let Some(rest) = after.strip_prefix('\\') {
            bytes.push(b'\\');
            rest
        } else {
            let digits = after.strip_prefix('x')?.get(..2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            &after[3..]
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    // What is UTF-8 is never written by bytes.
    (escaped(&bytes) == text).then_some(Cow::Owned(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_utf8_and_a_backslash_are_escaped() {
        assert_eq!(escaped(b"na\xc3\xafve"), "na\u{ef}ve");
        assert_eq!(escaped(b"a\\x\xffb"), r"a\\x\xffb");
        for wrong in [r"\", r"\x", r"\xf", r"\xzz", r"\n", r"\x41", r"\x\xff"] {
            assert_eq!(unescaped(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn each_name_comes_back(bytes: Vec<u8>) {
            let text = escaped(&bytes).into_owned();
            let back = unescaped(&text);
            prop_assert_eq!(back.as_deref(), Some(bytes.as_slice()));
        }
    }
}
