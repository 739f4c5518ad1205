//! Reads the whole text of a file that stays open.

use std::os::fd::AsFd;

use rustix::{
    buffer::spare_capacity,
    io::{Errno, pread},
};

/// Replaces `text` by that of the file. After an error it is empty.
pub fn read_whole(file: impl AsFd, text: &mut Vec<u8>) -> rustix::io::Result<()> {
    text.clear();
    loop {
        if text.len() == text.capacity() {
            text.reserve(8 << 10);
        }
        let at = text.len() as u64;
        match pread(&file, spare_capacity(text), at) {
            // A file of several records may give fewer bytes than there is room for, so only this is the end.
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                text.clear();
                return Err(error);
            }
        }
    }
}
