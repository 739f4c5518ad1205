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

/// A blank within an argument.
const BLANK: &str = r"\x20";
/// A command line of one argument without a character: that of a process without arguments is the text without one.
const EMPTY: &str = r"\x00";

/// Joins arguments, each of which ends with a NUL, by blanks. [`arguments`] finds each of them in the text.
pub fn joined(line: &[u8]) -> Cow<'_, str> {
    let arguments = line.strip_suffix(b"\0").unwrap_or(line);
    if arguments.is_empty() {
        return if line.is_empty() { "" } else { EMPTY }.into();
    }
    if !arguments.contains(&0) && !arguments.contains(&b' ') {
        return escaped(arguments);
    }
    let each = arguments.split(|&byte| byte == 0);
    let each = each.map(|argument| escaped(argument).replace(' ', BLANK));
    each.collect::<Vec<_>>().join(" ").into()
}

/// The arguments that [`joined`] wrote as this text, each with a NUL. `None` if it writes none so.
pub fn arguments(text: &str) -> Option<Vec<u8>> {
    let mut line = Vec::with_capacity(text.len() + 1);
    if text == EMPTY {
        line.push(0);
    } else if !text.is_empty() {
        for argument in text.split(' ') {
            // Of two backslashes the second begins nothing.
            let mut parts = argument.split(r"\\").map(|part| part.replace(BLANK, " "));
            let first = parts.next().unwrap_or_default();
            let whole = parts.fold(first, |all, part| all + r"\\" + &part);
            line.extend_from_slice(&unescaped(&whole)?);
            line.push(0);
        }
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_and_backslashes_are_escaped() {
        assert_eq!(escaped(b"na\xc3\xafve"), "na\u{ef}ve");
        assert_eq!(escaped(b"a\\x\xffb"), r"a\\x\xffb");
        for wrong in [r"\", r"\x", r"\xf", r"\xzz", r"\n", r"\x41", r"\x\xff"] {
            assert_eq!(unescaped(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn arguments_are_joined_and_each_is_found_again() {
        for (line, text) in [
            (
                b"sh\0-c\0a b\n\0\0\xff\0".as_slice(),
                "sh -c a\\x20b\n  \\xff",
            ),
            (b"", ""),
            (b"\0", r"\x00"),
            (b"a\0\0", "a "),
            (b"\\x20\0 \0", r"\\x20 \x20"),
        ] {
            assert_eq!(joined(line), text);
            assert_eq!(arguments(text).as_deref(), Some(line));
        }
        // A process may have overwritten the last NUL.
        assert_eq!(
            arguments(&joined(b"idle: a b")).as_deref(),
            Some(b"idle: a b\0".as_slice())
        );
        assert_eq!(arguments(r"a \"), None);
    }

    proptest! {
        #[test]
        fn each_argument_comes_back(mut line: Vec<u8>) {
            line.push(0);
            let text = joined(&line).into_owned();
            let back = arguments(&text);
            prop_assert_eq!(back.as_deref(), Some(line.as_slice()));
        }

        #[test]
        fn each_name_comes_back(bytes: Vec<u8>) {
            let text = escaped(&bytes).into_owned();
            let back = unescaped(&text);
            prop_assert_eq!(back.as_deref(), Some(bytes.as_slice()));
        }
    }
}
