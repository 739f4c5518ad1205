//! The directory of one process in `/proc`: everything that is read through it belongs to that process.

use std::{
    ffi::CStr,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    buffer::spare_capacity,
    fs::{Dir, Mode, OFlags},
    io::Errno,
    path::DecInt,
};

use super::DetailError;
use crate::base::{error::Error, host::Host, proc_root};

/// The longest command line that is read. A process chooses the length of its own, up to all its memory.
pub(super) const LONGEST: u64 = 128 * 1024;
/// The longest path that is read from a file; the kernel itself shows at most a page.
const LONGEST_PATH: u64 = 64 * 1024;

/// Opens directories of processes, by pid and start time.
#[derive(Debug)]
pub struct Directories {
    proc: OwnedFd,
    tick_ns: u64,
    boot_offset_ns: i64,
}

impl Directories {
    /// Opens `/proc`.
    ///
    /// # Errors
    /// `/proc` cannot be opened.
    pub fn open(host: &Host) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::open(&*proc_root::path("/proc"), flags, Mode::empty());
        let proc = proc.map_err(|source| Error::unreadable("/proc", source.into()))?;
        Ok(Self {
            proc,
            tick_ns: 1_000_000_000 / host.ticks_per_second.max(1),
            boot_offset_ns: host.boot_offset_ns,
        })
    }

    /// Opens the directory of the process with this pid and start time:
    /// [`Identity::start_ns`](crate::record::Identity).
    ///
    /// # Errors
    /// The process has exited, or is hidden from this reader.
    pub fn get(&self, pid: u32, start_ns: u64) -> Result<Directory, DetailError> {
        const WHAT: &str = "directory";
        let failed = |error: io::Error| failed(pid, WHAT, error);
        let fd = rustix::fs::openat(
            &self.proc,
            DecInt::new(pid),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|error| failed(error.into()))?;
        let mut stat = [0; 2048];
        let len = open(fd.as_fd(), c"stat")
            .and_then(|file| Ok(rustix::io::read(file, &mut stat)?))
            .map_err(failed)?;
        let ticks = start_ticks(&stat[..len]).ok_or_else(|| {
            failed(io::Error::other(
                "its stat is not what the kernel writes there",
            ))
        })?;
        // The text is rounded down to a tick.
        let shown_ns = i128::from(start_ns) + i128::from(self.boot_offset_ns);
        if shown_ns.div_euclid(self.tick_ns.into()) == i128::from(ticks) {
            Ok(Directory { fd, pid })
        } else {
            Err(DetailError::Gone { pid })
        }
    }
}

/// The directory of a process.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    pid: u32,
}

impl Directory {
    /// Reads the command line, but at most 128 KiB of it. Returns whether it is longer.
    ///
    /// It comes from one read(2). The kernel reads the memory that the process has at that time; by a second
    /// read the process may have executed another program.
    ///
    /// # Errors
    /// The process has exited.
    pub fn cmdline(&self, into: &mut Vec<u8>) -> Result<bool, DetailError> {
        into.clear();
        into.reserve(LONGEST as usize + 1);
        open(self.fd.as_fd(), c"cmdline")
            .and_then(|file| Ok(rustix::io::read(file, spare_capacity(into))?))
            .map_err(|error| failed(self.pid, "command line", error))?;
        let cut = into.len() as u64 > LONGEST;
        into.truncate(LONGEST as usize);
        Ok(cut)
    }

    /// Reads as much of the command line as fits into `into`, and returns the number of bytes. It comes from one
    /// read(2), as with [`cmdline`](Self::cmdline).
    ///
    /// # Errors
    /// The process has exited.
    pub fn beginning_of_cmdline(&self, into: &mut [u8]) -> Result<usize, DetailError> {
        open(self.fd.as_fd(), c"cmdline")
            .and_then(|file| Ok(rustix::io::read(file, into)?))
            .map_err(|error| failed(self.pid, "command line", error))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// The target of the link `exe`.
    ///
    /// # Errors
    /// The process has exited or has no program, or the kernel does not show it to this reader.
    pub fn exe(&self) -> Result<Vec<u8>, DetailError> {
        const WHAT: &str = "program";
        let exe = rustix::fs::readlinkat(&self.fd, c"exe", Vec::new()).map_err(|error| {
            // The kernel gives this answer for an exited process, too.
            if error == Errno::NOENT && open(self.fd.as_fd(), c"stat").is_ok() {
                DetailError::Absent {
                    pid: self.pid,
                    what: WHAT,
                }
            } else {
                failed(self.pid, WHAT, error.into())
            }
        })?;
        Ok(exe.into_bytes())
    }

    pub(super) fn file(
        &self,
        path: &CStr,
        what: &'static str,
        into: &mut Vec<u8>,
    ) -> Result<(), DetailError> {
        self.read(path, what, LONGEST_PATH, into)
    }

    pub(super) fn link(&self, path: &CStr) -> Result<Vec<u8>, DetailError> {
        let target = rustix::fs::readlinkat(&self.fd, path, Vec::new())
            .map_err(|error| failed(self.pid, "link", error.into()))?;
        Ok(target.into_bytes())
    }

    /// The descriptors, at most `most`, in the order of their numbers, each with the target of its link.
    pub(super) fn open_files(&self, most: usize) -> Result<Vec<(u32, Vec<u8>)>, DetailError> {
        let failed = |error: Errno| failed(self.pid, "open files", error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.fd, c"fd", flags, Mode::empty()).map_err(failed)?;
        let mut files = Vec::new();
        for entry in Dir::read_from(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some(number) = name.to_str().ok().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if files.len() == most {
                break;
            }
            // Skip a descriptor that was closed meanwhile.
            if let Ok(target) = rustix::fs::readlinkat(&folder, name, Vec::new()) {
                files.push((number, target.into_bytes()));
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    /// Reads a file, but at most `most` bytes.
    fn read(
        &self,
        path: &CStr,
        what: &'static str,
        most: u64,
        into: &mut Vec<u8>,
    ) -> Result<(), DetailError> {
        into.clear();
        open(self.fd.as_fd(), path)
            .and_then(|file| std::fs::File::from(file).take(most).read_to_end(into))
            .map_err(|error| failed(self.pid, what, error))?;
        Ok(())
    }
}

pub(super) fn failed(pid: u32, what: &'static str, source: io::Error) -> DetailError {
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::SRCH) => DetailError::Gone { pid },
        Some(Errno::ACCESS | Errno::PERM) => DetailError::Hidden { pid, what },
        _ => DetailError::Read { pid, what, source },
    }
}

pub(super) fn open(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(
        directory,
        name,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// `starttime`, the 22nd field of `/proc/PID/stat`. The second, the name, ends at the last parenthesis.
pub(super) fn start_ticks(stat: &[u8]) -> Option<u64> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let field = stat.get(end + 2..)?.split(|&byte| byte == b' ').nth(19)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}
