//! Texts that one process passes to the other: files in memory.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::fs::FileExt},
    path::Path,
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
}
