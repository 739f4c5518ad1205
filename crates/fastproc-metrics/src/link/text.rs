//! Texts that one process passes to the other: files in memory.

use std::{
    fs::File,
    io::{self, Write},
    os::{fd::OwnedFd, unix::fs::FileExt},
    path::Path,
};

use fastproc::{
    mapping::file_in_memory,
    regular_file::{self, Refused},
};
use rustix::{
    fs::{SealFlags, fcntl_add_seals, fcntl_get_seals},
    io::Errno,
};

/// The longest text that is accepted from the other process.
pub const LONGEST: u64 = 16 << 20;

/// Puts a text into memory that nobody can change, for a receiver that reads it at any time.
pub fn lend(text: &[u8]) -> io::Result<OwnedFd> {
    let memory = file_in_memory(c"fastproc-text")?;
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

/// The text of a regular file, unless it is longer than [`LONGEST`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    regular_file::read(path, LONGEST)
}

/// The words of an answer that there is no text: the number of the system's error, or one of these.
const NOT_REGULAR: u64 = u64::MAX;
const TOO_LONG: u64 = u64::MAX - 1;

/// The word for why there is no text.
pub fn refusal(error: &io::Error) -> u64 {
    match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(Refused::NotRegular) => NOT_REGULAR,
        Some(Refused::TooLong(_)) => TOO_LONG,
        _ => error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()) as u64,
    }
}

/// What [`refusal`] said.
pub fn refused(word: u64) -> io::Error {
    match word {
        NOT_REGULAR => Refused::NotRegular.into(),
        TOO_LONG => Refused::TooLong(LONGEST).into(),
        errno => io::Error::from_raw_os_error(errno as i32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_and_unsealed_memory_are_refused() {
        let (pipe, _end) = io::pipe().unwrap();
        take(pipe.into()).unwrap_err();
        let changing = file_in_memory(c"a").unwrap();
        take(changing).unwrap_err();
    }
    #[test]
    fn tells_the_reader_why_there_is_no_text() {
        for error in [
            Refused::NotRegular.into(),
            Refused::TooLong(LONGEST).into(),
            io::Error::from_raw_os_error(13),
        ] {
            assert_eq!(refused(refusal(&error)).to_string(), error.to_string());
        }
    }
}
