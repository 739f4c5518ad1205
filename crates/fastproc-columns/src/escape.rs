//! Arbitrary bytes as text that changes nothing but the place where it is shown.

use std::io::Write;

/// Appends `bytes` so that they cannot move the cursor, break a line, change the direction of writing, or pass for
/// other bytes.
///
/// Printable characters stay. A backslash becomes `\\`; a control, formatting, combining or unassigned character
/// becomes an escape as in Rust: `\n`, `\t`, `\r`, `\u{202e}`; and a byte that is not part of valid UTF-8 becomes
/// `\xff`. Nothing else contains a backslash, so the bytes can be restored.
pub fn escape(bytes: &[u8], to: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        escape_text(chunk.valid(), to);
        for &byte in chunk.invalid() {
            escape_byte(byte, to);
        }
    }
}

/// Appends a byte as `\xff`.
pub fn escape_byte(byte: u8, to: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS[usize::from(nibble & 15)];
    to.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte)]);
}

fn escape_text(text: &str, to: &mut Vec<u8>) {
    let plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'\\';
    if text.as_bytes().iter().all(plain) {
        to.extend_from_slice(text.as_bytes());
        return;
    }
    for character in text.chars() {
        let mut utf8 = [0; 4];
        let utf8 = character.encode_utf8(&mut utf8);
        // `escape_debug` also escapes quotes, which are printable.
        if matches!(character, '\'' | '"') || character.escape_debug().len() == 1 {
            to.extend_from_slice(utf8.as_bytes());
        } else {
            write!(to, "{}", character.escape_debug()).expect("a vector takes everything");
        }
    }
}

/// Whether the text contains letters that are written from right to left (Hebrew, Arabic and similar scripts). They
/// change the order of the text beside them. They are printable, so [`escape`] does not change them.
pub fn is_right_to_left(text: &str) -> bool {
    // The blocks that Unicode reserves for these scripts, in the Basic Multilingual Plane and beyond.
    let is_of_them = |character| {
        matches!(
            character,
            '\u{590}'..='\u{8ff}'
                | '\u{fb1d}'..='\u{fdff}'
                | '\u{fe70}'..='\u{feff}'
                | '\u{10800}'..='\u{10fff}'
                | '\u{1e800}'..='\u{1efff}'
        )
    };
    !text.is_ascii() && text.contains(is_of_them)
}

/// Restores the bytes from which [`escape`] made this text. `None` if it cannot have made it.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at + 1..];
        let (character, length) = match *escape.as_bytes().first()? {
            b'\\' => ('\\', 1),
            b'n' => ('\n', 1),
            b'r' => ('\r', 1),
            b't' => ('\t', 1),
            b'0' => ('\0', 1),
            b'x' => {
                bytes.push(u8::from_str_radix(escape.get(1..3)?, 16).ok()?);
                rest = &escape[3..];
                continue;
            }
            b'u' => {
                let end = escape.find('}')?;
                let number = u32::from_str_radix(escape.get(2..end)?, 16).ok()?;
                (char::from_u32(number)?, end + 1)
            }
            _ => return None,
        };
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(bytes: &[u8]) -> String {
        let mut text = Vec::new();
        escape(bytes, &mut text);
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn printable_text_is_not_escaped() {
        assert_eq!(
            escaped(b"sd-pam (it's \"a\" name)"),
            "sd-pam (it's \"a\" name)"
        );
        assert_eq!(escaped("größe 进程 🦀".as_bytes()), "größe 进程 🦀");
    }

    #[test]
    fn terminal_controls_are_escaped() {
        assert_eq!(
            escaped(b"\x1b[2Ja\nb\rc\td\x7f\0"),
            r"\u{1b}[2Ja\nb\rc\td\u{7f}\0"
        );
        assert_eq!(escaped("\u{9b}2J".as_bytes()), r"\u{9b}2J");
        assert_eq!(
            escaped("a\u{202e}b\u{2066}c\u{200b}\u{feff}\u{2028}".as_bytes()),
            r"a\u{202e}b\u{2066}c\u{200b}\u{feff}\u{2028}"
        );
        assert_eq!(
            escaped("e\u{301}\u{ad}\u{e0041}".as_bytes()),
            r"e\u{301}\u{ad}\u{e0041}"
        );
        assert_eq!(escaped(b"\xff\xc3(\\"), r"\xff\xc3(\\");
    }

    #[test]
    fn scripts_from_right_to_left_are_known() {
        for text in ["שלום", "abc سلام", "ܫܠܡܐ", "ߒߞߏ", "𐤀𐤁", "𞤀𞤣𞤤", "ﷺ"]
        {
            assert!(is_right_to_left(text), "{text}");
        }
        for text in ["", "abc", "größe", "进程", "привет", "🦀", "नमस्ते"] {
            assert!(!is_right_to_left(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_bytes_can_be_had_back(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let text = escaped(&bytes);
            prop_assert!(!text.contains(char::is_control));
            prop_assert_eq!(unescape(&text), Some(bytes));
        }

        #[test]
        fn so_can_any_text(text in ".{0,40}") {
            prop_assert_eq!(unescape(&escaped(text.as_bytes())), Some(text.into_bytes()));
        }
    }
}
