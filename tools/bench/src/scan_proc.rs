//! Reads every process by `/proc`, in the usual way.
//!
//! It stops when the kernel's bytes are in a buffer. It does not parse the text, as a program must, which favours it.

use std::{ffi::CStr, mem::MaybeUninit, os::fd::OwnedFd};

use rustix::{
    fs::{Mode, OFlags, RawDir, SeekFrom, open, openat, seek},
    io::{Errno, read},
};

use super::measure::Failure;

/// `PID/FILE` for openat, written without allocating.
struct Path([u8; 32]);

impl Path {
    /// A pid has at most ten digits, and the names of the files are short.
    fn set(&mut self, pid: &[u8], file: &[u8]) -> &CStr {
        let Self(bytes) = self;
        let end = pid.len() + 1 + file.len();
        bytes[..pid.len()].copy_from_slice(pid);
        bytes[pid.len()] = b'/';
        bytes[pid.len() + 1..end].copy_from_slice(file);
        bytes[end] = 0;
        CStr::from_bytes_until_nul(bytes).unwrap_or_default()
    }
}

/// `proc-3files`: the method of `top`, `ps` and metrics agents. It lists the directory, and opens, reads at once and
/// closes `stat`, `statm` and `status` of each process. Paths are relative to an open `/proc`, and nothing is
/// allocated: the best form of this loop.
pub struct ThreeFiles {
    proc: OwnedFd,
    listing: Box<[MaybeUninit<u8>]>,
    text: Box<[u8]>,
}

impl ThreeFiles {
    /// Opens `/proc`.
    pub fn open() -> Result<Self, Failure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            proc: open("/proc", flags, Mode::empty())?,
            listing: vec![MaybeUninit::uninit(); 256 << 10].into(),
            text: vec![0; 64 << 10].into(),
        })
    }

    /// Reads all processes. Returns their number.
    pub fn scan(&mut self) -> Result<usize, Failure> {
        seek(&self.proc, SeekFrom::Start(0))?;
        let mut entries = RawDir::new(&self.proc, &mut self.listing);
        let (mut path, mut count) = (Path([0; 32]), 0);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            // Only pids begin with a digit.
            if name[0].is_ascii_digit() {
                count += usize::from(read_three(&self.proc, &mut path, name, &mut self.text)?);
            }
        }
        Ok(count)
    }
}

/// Reads the three files of a process. Returns whether it was there to the end.
fn read_three(proc: &OwnedFd, path: &mut Path, pid: &[u8], text: &mut [u8]) -> Result<bool, Errno> {
    for file in [&b"stat"[..], b"statm", b"status"] {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = openat(proc, path.set(pid, file), flags, Mode::empty());
        match opened.and_then(|file| read(&file, &mut *text)) {
            Ok(_) => {}
            // The process is gone, which is not a failure of the reader.
            Err(Errno::NOENT | Errno::SRCH) => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}
