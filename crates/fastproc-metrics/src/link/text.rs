//! Texts that one process passes to the other: files in memory.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::Path,
    sync::Arc,
};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};

/// The longest text that is accepted from the other process.
pub const LONGEST: u64 = 16 << 20;

/// Puts a text into memory that nobody can change, for a receiver that reads it at any time.
pub fn lend(text: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = memfd_create("fastproc-text", flags)?;
    File::from(memory.try_clone()?).write_all(text)?;
    fcntl_add_seals(&memory, SEALS)?;
    Ok(memory)
}

const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::WRITE);

/// Reads a text that [`lend`] made. Other descriptors are refused: reading them might block or never end.
pub fn take(memory: OwnedFd) -> io::Result<Vec<u8>> {
    let seals = fcntl_get_seals(&memory)?;
    let file = File::from(memory);
    let length = file.metadata()?.len();
    if !seals.contains(SEALS) || length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, 0)?;
    Ok(text)
}

/// The text of a file, unless it is longer than [`LONGEST`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

/// Memory that holds one text after the other, for a reader that cannot write to it.
#[derive(Debug)]
pub struct Page {
    memory: Arc<File>,
    shown: OwnedFd,
}

impl Page {
    /// Creates an empty page.
    pub fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("fastproc-metrics", flags)?;
        // So that the reader may map it.
        fcntl_add_seals(&memory, SealFlags::SHRINK)?;
        // Opened again, only for reading.
        let shown = File::open(format!("/proc/self/fd/{}", memory.as_raw_fd()))?;
        Ok(Self {
            memory: Arc::new(memory.into()),
            shown: shown.into(),
        })
    }

    /// The descriptor for the reader.
    pub fn shown(&self) -> BorrowedFd<'_> {
        self.shown.as_fd()
    }

    /// The file for the next text, which overwrites the last one: the reader must not need that any more.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_hold_a_reader_up_is_not_read() {
        let (pipe, _end) = io::pipe().unwrap();
        take(pipe.into()).unwrap_err();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let changing = memfd_create("a", flags).unwrap();
        take(changing).unwrap_err();
    }

    #[test]
    fn who_reads_a_page_cannot_write_to_it() {
        let page = Page::new().unwrap();
        page.file().write_all_at(b"the first", 0).unwrap();
        page.file().write_all_at(b"another", 0).unwrap();
        let shown = File::from(page.shown().try_clone_to_owned().unwrap());
        let mut text = [0; 7];
        shown.read_exact_at(&mut text, 0).unwrap();
        assert_eq!(&text, b"another");
        shown.write_all_at(b"x", 0).unwrap_err();
        shown.set_len(1).unwrap_err();
    }
}
