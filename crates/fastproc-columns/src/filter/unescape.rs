//! Resolves the escapes in texts.

/// Resolves the escapes of columns and JSON. An error is the place of an invalid one.
pub(super) fn unescape(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        if byte != b'\\' {
            bytes.push(byte);
            at += 1;
            continue;
        }
        let (byte, length) = match text.as_bytes().get(at + 1) {
            Some(&same @ (b'\\' | b'\'' | b'"')) => (same, 2),
            Some(b'n') => (b'\n', 2),
            Some(b't') => (b'\t', 2),
            Some(b'r') => (b'\r', 2),
            Some(b'0') => (b'\0', 2),
            Some(b'b') => (b'\x08', 2),
            Some(b'f') => (b'\x0c', 2),
            Some(b'u') => {
                let (character, length) = unicode(&text[at + 2..]).ok_or(at)?;
                let mut utf8 = [0; 4];
                bytes.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
                at += 2 + length;
                continue;
            }
            Some(b'x') => {
                let digits = text
                    .get(at + 2..at + 4)
                    .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
                (
                    u8::from_str_radix(digits.ok_or(at)?, 16).map_err(|_| at)?,
                    4,
                )
            }
            _ => return Err(at),
        };
        bytes.push(byte);
        at += length;
    }
    Ok(bytes)
}

/// The character of `{1b}`, or of `001b` as in JSON, and the length of its escape.
fn unicode(text: &str) -> Option<(char, usize)> {
    let (digits, length) = match text.strip_prefix('{') {
        Some(rest) => {
            let digits = &rest[..rest.find('}')?];
            (digits, digits.len() + 2)
        }
        None => (text.get(..4)?, 4),
    };
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let number = u32::from_str_radix(digits, 16).ok()?;
    Some((char::from_u32(number)?, length))
}
