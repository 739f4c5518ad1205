//! Texts that a source brings along with its records.

use std::time::Duration;

use bitflags::bitflags;

bitflags! {
    /// Texts of processes that no record holds. A collector is told of them so that a service, which keeps them, brings
    /// them along; [`Details`](crate::Details) hands them out, and reads from `/proc` what did not come.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Texts: u32 {
        /// Command lines.
        const CMDLINE = 1;
        /// Paths of programs.
        const EXE = 2;
    }
}

impl Texts {
    /// How old a kept command line may be for `ps` and `top`: see
    /// [`Builder::texts_max_age`](crate::Builder::texts_max_age). Only what somebody else wrote by force into the memory of
    /// a process that rests is shown so late. The path of a program changes when a file is renamed: that is kept no time.
    pub const MAX_AGE: Duration = Duration::from_secs(60);
}

/// Where the texts of one process stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TextEntry {
    /// When the older of them was about to be read: time since boot, in nanoseconds, on the clock of start times.
    pub read_ns: u64,
    /// The command line.
    pub cmdline: TextPlace,
    /// The path of the program.
    pub exe: TextPlace,
}

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TextPlace {
    /// First byte, counted from the beginning of all texts.
    pub at: u32,
    /// Bytes, or `u32::MAX`: it is not here, and `/proc` is to be asked.
    pub len: u32,
}

impl TextPlace {
    /// No text.
    pub const NONE: Self = Self {
        at: 0,
        len: u32::MAX,
    };

    fn of(self, bytes: &[u8]) -> Option<&[u8]> {
        let (at, len) = (self.at as usize, self.len as usize);
        bytes.get(at..at.checked_add(len)?)
    }
}

/// The texts of all processes of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextTable<'a> {
    /// One for each record, in their order; or none at all.
    pub(crate) entries: &'a [TextEntry],
    pub(crate) bytes: &'a [u8],
}

impl<'a> TextTable<'a> {
    /// The texts of the process whose record has this place.
    pub(crate) fn of(&self, at: usize) -> Option<ProcessTexts<'a>> {
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
        self.entry.cmdline.of(self.bytes)
    }

    pub(crate) fn exe(self) -> Option<&'a [u8]> {
        self.entry.exe.of(self.bytes)
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
        let texts = table.of(0).expect("an entry");
        assert_eq!(texts.cmdline(), Some(&b"bc"[..]));
        assert_eq!(texts.exe(), None);
        assert!(table.of(1).is_none());
        for (at, len) in [(1, 3), (4, 0), (u32::MAX, 1), (0, u32::MAX - 1)] {
            assert_eq!(TextPlace { at, len }.of(b"abc"), None, "{at} {len}");
        }
        assert_eq!(TextPlace { at: 3, len: 0 }.of(b"abc"), Some(&b""[..]));
    }
}
