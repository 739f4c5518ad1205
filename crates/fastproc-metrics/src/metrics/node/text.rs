//! Text files of the kernel that are kept open, and numbers in them.

use std::{fs::File, os::unix::fs::FileExt};

use fastproc::proc_root;

/// A file that is read again each time by one descriptor.
#[derive(Debug)]
pub(super) struct TextFile {
    path: &'static str,
    file: Option<File>,
    text: Vec<u8>,
}

impl TextFile {
    pub(super) const fn new(path: &'static str) -> Self {
        Self {
            path,
            file: None,
            text: Vec::new(),
        }
    }

    /// Reads the file. If it does not exist or cannot be read, the text is empty.
    pub(super) fn read(&mut self) {
        self.text.clear();
        if self.file.is_none() {
            self.file = File::open(proc_root::path(self.path)).ok();
        }
        let Some(file) = &self.file else { return };
        if self.text.capacity() == 0 {
            self.text.reserve(4096);
        }
        loop {
            let length = self.text.len();
            let room = (self.text.capacity() - length).max(4096);
            self.text.resize(length + room, 0);
            let read = file.read_at(&mut self.text[length..], length as u64);
            let count = read.as_ref().copied().unwrap_or(0);
            self.text.truncate(length + count);
            match read {
                Ok(0) => return,
                Ok(_) => {}
                Err(_) => {
                    // It may exist again, or be readable, the next time.
                    self.text.clear();
                    self.file = None;
                    return;
                }
            }
        }
    }

    /// The last text; empty if there is none.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The words of each line.
    pub(super) fn lines(&self) -> impl Iterator<Item = std::str::SplitAsciiWhitespace<'_>> {
        self.text().lines().map(str::split_ascii_whitespace)
    }

    /// The first number.
    pub(super) fn number(&self) -> Option<u64> {
        self.text().split_ascii_whitespace().next()?.parse().ok()
    }
}

/// A decimal fraction in units of 1e-9.
pub(super) fn nano(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut nano = whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    let mut unit = 100_000_000;
    for digit in fraction.chars().take(9) {
        nano += u64::from(digit.to_digit(10)?) * unit;
        unit /= 10;
    }
    Some(nano)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact() {
        for (text, expected) in [
            ("11.34", Some(11_340_000_000)),
            ("0.05", Some(50_000_000)),
            ("7", Some(7_000_000_000)),
            ("x", None),
            ("1.x", None),
        ] {
            assert_eq!(nano(text), expected, "{text}");
        }
    }

    #[test]
    fn a_file_is_read_anew_each_time() {
        let mut file = TextFile::new("/proc/self/stat");
        for _ in 0..2 {
            file.read();
            assert_eq!(file.number(), Some(std::process::id().into()));
        }
        let mut none = TextFile::new("/proc/no/such/file");
        none.read();
        assert_eq!(none.text(), "");
    }
}
