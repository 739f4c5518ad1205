//! The printf way: `write!`.

use std::fmt::{self, Write as _};

use super::method::Method;

pub struct CoreFmt;

/// The least that formatting can write to: no allocation, and no error to carry but its own.
struct Text<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl fmt::Write for Text<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.at + text.len();
        self.out
            .get_mut(self.at..end)
            .ok_or(fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.at = end;
        Ok(())
    }
}

impl Method for CoreFmt {
    const CASE: &'static str = "core-fmt";

    #[inline(always)]
    fn append(out: &mut [u8], at: usize, n: u64) -> usize {
        let mut text = Text { out, at };
        // An error is a text that is too short, which is found.
        let _ = write!(text, "{n}");
        text.at
    }
}
