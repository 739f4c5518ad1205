//! Names of the kernel, which are bytes, as text.

use std::{borrow::Cow, fmt::Write};

/// The name as text. Different names have different texts, so that no two series are the same.
///
/// A name that is UTF-8 stays as it is. In another one, each byte that is not UTF-8 becomes `\xff`, and each backslash
/// `\\`. So does a backslash of a name that another name has become by this.
pub(crate) fn text(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if !is_taken(text) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(name)),
    }
}

fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(2 * name.len());
    for chunk in name.utf8_chunks() {
        text += &chunk.valid().replace('\\', r"\\");
        for byte in chunk.invalid() {
            write!(text, r"\x{byte:02x}").expect("a string takes everything");
        }
    }
    text
}

/// Whether a name that is not UTF-8 becomes this text, or becomes it if it is escaped several times.
fn is_taken(text: &str) -> bool {
    if !text.contains('\\') {
        return false;
    }
    let Some(name) = unescaped(text).filter(|name| escaped(name) == text) else {
        return false;
    };
    std::str::from_utf8(&name).map_or(true, is_taken)
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        name.extend_from_slice(plain.as_bytes());
        if let Some(after) = escape.strip_prefix('\\') {
            name.push(b'\\');
            rest = after;
        } else {
            let digits = escape.strip_prefix('x')?.get(..2)?;
            name.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &escape[3..];
        }
    }
    name.extend_from_slice(rest.as_bytes());
    Some(name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_are_not_utf_8_are_escaped() {
        for (name, expected) in [
            (&b"kworker/0:1"[..], "kworker/0:1"),
            ("größe".as_bytes(), "größe"),
            (br"mnt-caf\xc3\xa9.mount", r"mnt-caf\xc3\xa9.mount"),
            (br"a\x2db\", r"a\x2db\"),
            (b"w\xd0", r"w\xd0"),
            (b"w\xd1", r"w\xd1"),
            (b"\\w\xd0", r"\\w\xd0"),
            (br"w\xd0", r"w\\xd0"),
            (br"w\\xd0", r"w\\\\xd0"),
        ] {
            assert_eq!(text(name), expected);
        }
    }

    #[test]
    fn different_names_have_different_texts() {
        // All names of up to six of these bytes.
        let mut names = vec![Vec::new()];
        let mut begin = 0;
        for _ in 0..6 {
            let end = names.len();
            for at in begin..end {
                for byte in *b"\\xff\xff" {
                    let name = [&names[at][..], &[byte]].concat();
                    names.push(name);
                }
            }
            begin = end;
        }
        names.sort();
        names.dedup();
        let mut by_text = HashMap::new();
        for name in &names {
            let other = by_text.insert(text(name).into_owned(), name);
            assert_eq!(other, None, "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn no_name_makes_it_panic(name in prop::collection::vec(any::<u8>(), 0..40)) {
            text(&name);
        }
    }
}
