//! Text files of the kernel that are kept open, and numbers in them.

use std::{fs::File, str::FromStr};

use fastproc::{proc_root, read_whole};

use crate::sys_root;

/// A file that is read again each time by one descriptor. A file of process 1 that cannot be opened is replaced by that of
/// this process.
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
            self.file = self.open();
        }
        let Some(file) = &self.file else { return };
        if read_whole(file, &mut self.text).is_err() {
            // It may exist again, or be readable, the next time.
            self.file = None;
        }
    }

    fn open(&self) -> Option<File> {
        let path = self.path;
        File::open(sys_root::path(path))
            .or_else(|error| match path.strip_prefix("/proc/1/") {
                Some(own) => File::open(proc_root::path(&format!("/proc/self/{own}"))),
                None => Err(error),
            })
            .ok()
    }

    /// The last text; empty if there is none.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// The same of a file without names that others choose.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The words of each line of a file with names.
    pub(super) fn words(&self) -> impl Iterator<Item = impl Iterator<Item = &[u8]>> {
        self.text.split(|&byte| byte == b'\n').map(words)
    }

    /// The words of each line of a file without names.
    pub(super) fn lines(&self) -> impl Iterator<Item = std::str::SplitAsciiWhitespace<'_>> {
        self.text().lines().map(str::split_ascii_whitespace)
    }

    /// The first number.
    pub(super) fn number(&self) -> Option<u64> {
        self.text().split_ascii_whitespace().next()?.parse().ok()
    }
}

/// The words of a line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = line.split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty())
}

/// A number.
pub(super) fn number<T: FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
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
    fn words_are_bytes_between_blanks() {
        let file = TextFile {
            path: "",
            file: None,
            text: b"  a\xff 1\tx\n\n".to_vec(),
        };
        let lines: Vec<Vec<_>> = file.words().map(Iterator::collect).collect();
        assert_eq!(lines[0], [&b"a\xff"[..], b"1", b"x"]);
        assert!(lines[1].is_empty());
        assert_eq!(number(b"7"), Some(7));
        assert_eq!(number::<u64>(b"\xff"), None);
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
