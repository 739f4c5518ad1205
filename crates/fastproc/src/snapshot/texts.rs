//! Texts that a source returns with its records.

use std::time::Duration;

use bitflags::bitflags;

bitflags! {
    /// Texts of processes that are not in records. A collector passes on which of them the reader wants, so that a
    /// service, which keeps them, returns them with the records. [`Details`](crate::Details) returns them, and reads
    /// the others from `/proc`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Texts: u32 {
        /// Command lines.
        const CMDLINE = 1;
        /// Paths of programs.
        const EXE = 2;
    }
}

impl Texts {
    /// How old a kept command line may be in `ps` and `top`: see
    /// [`Builder::texts_max_age`](crate::Builder::texts_max_age). The limit matters only if another process
    /// overwrote the memory of an idle process. The path of a program changes when a file is renamed, so it
    /// is not kept.
    pub const MAX_AGE: Duration = Duration::from_secs(60);
}

/// The places of the texts of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TextEntry {
    /// When the older of the two was about to be read: nanoseconds since boot, on the clock of start times.
    pub read_ns: u64,
    /// The command line.
    pub cmdline: TextPlace,
    /// The path of the program.
    pub exe: TextPlace,
}

/// The place of one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TextPlace {
    /// First byte, counted from the beginning of all texts.
    pub at: u32,
    /// Length in bytes. `u32::MAX` means that the text is not here and must be read from `/proc`.
    pub len: u32,
}

impl TextPlace {
    /// No text.
    pub const NONE: Self = Self {
        at: 0,
        len: u32::MAX,
    };

    fn slice(self, bytes: &[u8]) -> Option<&[u8]> {
        let (at, len) = (self.at as usize, self.len as usize);
        bytes.get(at..at.checked_add(len)?)
    }
}

/// The texts of all processes of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextTable<'a> {
    /// One entry for each record, in their order, or no entries.
    pub(crate) entries: &'a [TextEntry],
    pub(crate) bytes: &'a [u8],
}

impl<'a> TextTable<'a> {
    /// The texts of the process whose record has this place.
    pub(crate) fn get(&self, at: usize) -> Option<ProcessTexts<'a>> {
        let entry = self.entries.get(at)?;
        Some(ProcessTexts {
            entry,
            bytes: self.bytes,
        })
    }
}

/// The texts of one process that came with its record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessTexts<'a> {
    entry: &'a TextEntry,
    bytes: &'a [u8],
}

impl<'a> ProcessTexts<'a> {
    pub(crate) fn cmdline(self) -> Option<&'a [u8]> {
        self.entry.cmdline.slice(self.bytes)
    }

    pub(crate) fn exe(self) -> Option<&'a [u8]> {
        self.entry.exe.slice(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_there_or_it_is_not() {
        let entries = [TextEntry {
            read_ns: 0,
            cmdline: TextPlace { at: 1, len: 2 },
            exe: TextPlace::NONE,
        }];
        let table = TextTable {
            entries: &entries,
            bytes: b"abc",
        };
        let texts = table.get(0).expect("an entry");
        assert_eq!(texts.cmdline(), Some(&b"bc"[..]));
        assert_eq!(texts.exe(), None);
        assert!(table.get(1).is_none());
        for (at, len) in [(1, 3), (4, 0), (u32::MAX, 1), (0, u32::MAX - 1)] {
            assert_eq!(TextPlace { at, len }.slice(b"abc"), None, "{at} {len}");
        }
        assert_eq!(TextPlace { at: 3, len: 0 }.slice(b"abc"), Some(&b""[..]));
    }
}
