//! Lines and words of the machine-wide files.

use super::cursor::Cursor;
use crate::base::error::parse::ParseError;

/// The text of a file, for errors that refer to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) file: &'static str,
    pub(super) text: &'a [u8],
}

impl<'a> Source<'a> {
    /// An error at the beginning of `part`, if it is a part of the text; otherwise at its end.
    #[cold]
    pub(super) fn wrong(&self, part: &[u8], expected: &'static str) -> ParseError {
        let at = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let at = if part.is_empty() || at > self.text.len() {
            self.text.len()
        } else {
            at
        };
        Cursor::new(self.file, self.text).error_at(at, expected)
    }

    /// The lines, without their ends.
    pub(super) fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.text
            .strip_suffix(b"\n")
            .unwrap_or(self.text)
            .split(|&byte| byte == b'\n')
    }

    /// A number as the kernel prints it: only digits.
    pub(super) fn number<N: TryFrom<u64>>(
        &self,
        word: Option<&[u8]>,
        line: &[u8],
    ) -> Result<N, ParseError> {
        let number = word
            .and_then(digits)
            .and_then(|number| N::try_from(number).ok());
        number.ok_or_else(|| self.wrong(word.unwrap_or(line), "a number"))
    }
}

/// A number as the kernel prints it.
pub(super) fn digits(word: &[u8]) -> Option<u64> {
    if word.is_empty() || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The words of a line, which the kernel separates by one or more spaces.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
}
