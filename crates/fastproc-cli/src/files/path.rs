//! `--path`: which open files are this file, below this folder, or of the file system that is mounted there.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use fastproc::files::{Device, Fields, File};

/// A path that cannot be looked up.
#[derive(Debug, thiserror::Error)]
#[error("cannot look up {path}")]
pub struct PathError {
    path: String,
    source: io::Error,
}

/// A path, and what it leads to.
#[derive(Debug)]
pub struct Holds {
    path: PathBuf,
    device: Device,
    inode: u64,
    /// Whether a file system is mounted there: then every file of it counts, however it is named.
    is_mount: bool,
}

impl Holds {
    pub const FIELDS: Fields = Fields::FILES.union(Fields::PATHS).union(Fields::STAT);

    pub fn new(path: &Path) -> Result<Self, PathError> {
        let failed = |source| PathError {
            path: path.display().to_string(),
            source,
        };
        let path = fs::canonicalize(path).map_err(failed)?;
        let found = fs::metadata(&path).map_err(failed)?;
        let above = path
            .parent()
            .map(fs::metadata)
            .transpose()
            .map_err(failed)?;
        let number = found.dev();
        Ok(Self {
            device: Device {
                major: rustix::fs::major(number),
                minor: rustix::fs::minor(number),
            },
            inode: found.ino(),
            is_mount: found.is_dir() && above.is_none_or(|above| above.dev() != number),
            path,
        })
    }

    pub fn is_by(&self, file: File<'_>) -> bool {
        if file.device() == Some(self.device) && (self.is_mount || file.inode() == Some(self.inode))
        {
            return true;
        }
        let mut name = Vec::new();
        let path = self.path.as_os_str().as_bytes();
        let path = path.strip_suffix(b"/").unwrap_or(path);
        file.write_name(&mut name)
            && name.strip_prefix(path).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(b"/") || rest == b" (deleted)"
            })
    }
}
