//! Filters as Python passes them: names that are not UTF-8 are str with surrogates, as `os.fsdecode` makes them.

use std::{ffi::OsString, fmt::Write as _, os::unix::ffi::OsStringExt};

use pyo3::PyResult;

use crate::errors::FilterError;

/// The text of a filter. A byte that is not UTF-8 becomes the escape `\xHH`.
pub fn text(filter: OsString) -> PyResult<String> {
    let bytes = filter.into_vec();
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += chunk.valid();
        for byte in chunk.invalid() {
            if is_in_pattern(&text) {
                return Err(FilterError::new_err(format!(
                    "a regular expression has a byte that is not UTF-8; write it as (?-u:\\x{byte:02x})"
                )));
            }
            let backslashes = text.len() - text.trim_end_matches('\\').len();
            if backslashes % 2 == 1 {
                return Err(FilterError::new_err(format!(
                    "a backslash precedes the byte {byte:#04x}, which is not UTF-8; write two"
                )));
            }
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    Ok(text)
}

/// Whether the end of this text is in the value after `=~` or `!~`.
fn is_in_pattern(text: &str) -> bool {
    let (mut quote, mut is_escaped, mut is_pattern) = (None, false, false);
    let mut before = ' ';
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) => {
                if character == open && !is_escaped {
                    quote = None;
                }
                is_escaped = character == '\\' && !is_escaped;
            }
            (None, '"' | '\'') => quote = Some(character),
            (None, '~') if matches!(before, '=' | '!') => is_pattern = true,
            (None, '=' | '<' | '>' | '&' | '|') => is_pattern = false,
            _ => {}
        }
        before = character;
    }
    is_pattern
}
