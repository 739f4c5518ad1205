//! A file on its way into the folder.

use std::{
    fmt, fs,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
};

use rustix::fs::{AtFlags, RenameFlags};

use super::Error;

/// A file that is being written. Without [`Pending::finish`] it is removed.
pub struct Pending {
    pub(super) file: fs::File,
    pub(super) open: OwnedFd,
    /// Its name in `open`, until it is finished.
    pub(super) temporary: String,
    pub(super) folder: OwnedFd,
    /// Its name in `folder`.
    pub(super) name: String,
    /// Whether another file may have that name.
    pub(super) replaces: bool,
    pub(super) done: bool,
}

impl Pending {
    /// Syncs it, gives it its name, and syncs the folder.
    pub fn finish(mut self) -> Result<(), Error> {
        let failed = |source| Error::Io {
            path: self.name.clone().into(),
            source,
        };
        self.file.sync_all().map_err(failed)?;
        let (from, to) = (self.open.as_fd(), self.folder.as_fd());
        let flags = if self.replaces {
            RenameFlags::empty()
        } else {
            RenameFlags::NOREPLACE
        };
        let renamed = rustix::fs::renameat_with(from, &*self.temporary, to, &*self.name, flags);
        renamed.map_err(|errno| failed(errno.into()))?;
        rustix::fs::fsync(to).map_err(|errno| failed(errno.into()))?;
        self.done = true;
        Ok(())
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.done {
            let _ = rustix::fs::unlinkat(&self.open, &*self.temporary, AtFlags::empty());
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pending")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
