//! Reads whole files below `/proc`, with one descriptor of the folder and one buffer.

use std::{ffi::CStr, fmt, path::Path};

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, RawDir, SeekFrom, openat, readlinkat_raw, seek},
    io::{Errno, pread},
};
use seqtext::{Dec, SeqBuf};

use crate::base::{error::procfs::Error, frozen};

/// The folder and the buffers.
pub(super) struct Files {
    directory: OwnedFd,
    root: Box<Path>,
    text: Vec<u8>,
    entries: Vec<u8>,
}

/// Result of reading a file of a process.
#[derive(Debug)]
pub(super) enum Found<T> {
    /// Its text, or a value made from it.
    Text(T),
    /// The file or its process does not exist, or is completely hidden.
    Nothing,
    /// The reader may not see it.
    Denied,
}

impl<T> Found<T> {
    pub(super) const fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Converts the text.
    pub(super) fn try_map<U, E>(self, make: impl FnOnce(T) -> Result<U, E>) -> Result<Found<U>, E> {
        Ok(match self {
            Self::Text(text) => Found::Text(make(text)?),
            Self::Nothing => Found::Nothing,
            Self::Denied => Found::Denied,
        })
    }
}

/// A path below the folder: `PID/NAME`, or `PID/task/TID/NAME`.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilePath {
    pub(super) pid: u32,
    pub(super) tid: Option<u32>,
    pub(super) name: &'static str,
}

impl FilePath {
    /// More than two ids and the longest name need.
    const MAX: usize = 64;

    /// Calls `f` with the path. The names are short literals, so the path always fits.
    fn with<T>(self, f: impl FnOnce(&CStr) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut memory = [0; Self::MAX];
        let mut path = SeqBuf::new(&mut memory);
        path.put((Dec(self.pid), b"/"));
        if let Some(tid) = self.tid {
            path.put((b"task/", Dec(tid), b"/"));
        }
        path.puts(self.name).putc(0);
        let path = path
            .text()
            .ok()
            .and_then(|path| CStr::from_bytes_with_nul(path).ok());
        f(path.ok_or(Errno::NAMETOOLONG)?)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, tid, name } = self;
        match tid {
            Some(tid) => write!(f, "{pid}/task/{tid}/{name}"),
            None => write!(f, "{pid}/{name}"),
        }
    }
}

impl Files {
    /// Longer than nearly every file that is read here.
    const TEXT_SIZE: usize = 16 << 10;
    const ENTRIES_SIZE: usize = 32 << 10;

    pub(super) fn new(directory: OwnedFd, root: &Path) -> Self {
        Self {
            directory,
            root: root.into(),
            text: vec![0; Self::TEXT_SIZE],
            entries: Vec::with_capacity(Self::ENTRIES_SIZE),
        }
    }

    /// Reads a whole file: the one that was kept open, or else the one at this path.
    pub(super) fn read(
        &mut self,
        path: FilePath,
        kept: Option<&OwnedFd>,
    ) -> Result<Found<&[u8]>, Error> {
        let len = match kept {
            Some(file) => read_whole(file, &mut self.text),
            None => self
                .open(path)
                .and_then(|file| read_whole(&file, &mut self.text)),
        };
        match len {
            Ok(0) => Ok(Found::Nothing),
            Ok(len) => Ok(Found::Text(&self.text[..len])),
            Err(error) => self.failed(path, error),
        }
    }

    /// Whether a link can be followed. Does not return its target.
    pub(super) fn follow(&self, path: FilePath) -> Result<Found<()>, Error> {
        match path.with(|path| readlinkat_raw(&self.directory, path, &mut [0; 1])) {
            Ok(_) => Ok(Found::Text(())),
            Err(error) => self.failed(path, error),
        }
    }

    fn failed<T>(&self, path: FilePath, error: Errno) -> Result<Found<T>, Error> {
        match error {
            Errno::NOENT | Errno::SRCH => Ok(Found::Nothing),
            Errno::ACCESS | Errno::PERM => Ok(Found::Denied),
            error => Err(Error::Read {
                path: self.full(path),
                source: error.into(),
            }),
        }
    }

    /// Opens a file.
    pub(super) fn open(&self, path: FilePath) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        path.with(|path| openat(&self.directory, path, flags, Mode::empty()))
    }

    /// Lists the folders with a number for a name: the processes, or the threads of one.
    pub(super) fn list(
        &mut self,
        threads_of: Option<u32>,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Error> {
        numbers.clear();
        let result = match threads_of {
            None => seek(&self.directory, SeekFrom::Start(0))
                .and_then(|_| list_numbers(&self.directory, &mut self.entries, numbers)),
            Some(pid) => {
                let path = FilePath {
                    pid,
                    tid: None,
                    name: "task",
                };
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                path.with(|path| openat(&self.directory, path, flags, Mode::empty()))
                    .and_then(|directory| list_numbers(&directory, &mut self.entries, numbers))
            }
        };
        match (result, threads_of) {
            (Ok(()), _)
            | (Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM), Some(_)) => Ok(()),
            (Err(error), _) => {
                let mut path = self.root.to_path_buf();
                path.extend(threads_of.map(|pid| format!("{pid}/task")));
                Err(Error::List {
                    path: path.display().to_string(),
                    source: error.into(),
                })
            }
        }
    }

    fn full(&self, path: FilePath) -> String {
        format!("{}/{path}", self.root.display())
    }
}

fn read_whole(file: &OwnedFd, text: &mut Vec<u8>) -> Result<usize, Errno> {
    let mut len = 0;
    loop {
        len += pread(file, &mut text[len..], len as u64)?;
        // The kernel fills the buffer as far as the text goes, so a shorter result means the end.
        if len < text.len() {
            return Ok(len);
        }
        text.resize(2 * len, 0);
    }
}

fn list_numbers(
    directory: &OwnedFd,
    buffer: &mut Vec<u8>,
    numbers: &mut Vec<u32>,
) -> Result<(), Errno> {
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        numbers.extend(number(entry?.file_name().to_bytes()));
    }
    frozen::sort(numbers);
    Ok(())
}

fn number(name: &[u8]) -> Option<u32> {
    name.iter().try_fold(0_u32, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            number.checked_mul(10)?.checked_add(digit.into())
        } else {
            None
        }
    })
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
