//! Names of terminals, if they are certain.

use std::{collections::HashMap, os::unix::fs::MetadataExt};

/// Major number of Unix98 pseudo terminals.
const PTS: u32 = 136;

/// The terminals of one fetch.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    known: HashMap<i32, bool>,
}

/// The name of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminal {
    None,
    /// `/dev/pts/` and this number.
    Pts(u32),
    /// procps's own library must find the name.
    Other,
}

impl Terminals {
    pub(crate) fn clear(&mut self) {
        self.known.clear();
    }

    /// The terminal with this number of `/proc/PID/stat`.
    pub(crate) fn terminal(&mut self, tty: i32) -> Terminal {
        if tty == 0 {
            return Terminal::None;
        }
        let device = tty as u32;
        let (major, minor) = (
            (device >> 8) & 0xfff,
            (device & 0xff) | ((device >> 12) & 0xf_ff00),
        );
        let is_there = major == PTS
            && *self.known.entry(tty).or_insert_with(|| {
                let file = std::fs::metadata(format!("/dev/pts/{minor}"));
                file.is_ok_and(|file| file.rdev() == libc::makedev(major, minor))
            });
        if is_there {
            Terminal::Pts(minor)
        } else {
            Terminal::Other
        }
    }
}
