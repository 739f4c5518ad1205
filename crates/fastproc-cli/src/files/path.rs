//! `--path`: which open files are this file, below this folder, or of the file system that is mounted there.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use fastproc::{
    files::{Device, Fields, File, Holder},
    proc_root,
};
use rustix::fs::{AtFlags, CWD, major, minor, statat};

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
    is_folder: bool,
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
            device: device(number),
            inode: found.ino(),
            is_folder: found.is_dir(),
            is_mount: found.is_dir() && above.is_none_or(|above| above.dev() != number),
            path,
        })
    }

    /// Whether the file is the one that was named, or below it. A name alone says nothing: in another mount namespace it is that of another file, and a
    /// removed file may have a successor.
    pub fn is_by(&self, holder: Holder<'_>, file: File<'_>) -> bool {
        let is_of_device = file.device() == Some(self.device);
        if is_of_device && (self.is_mount || file.inode() == Some(self.inode)) {
            return true;
        }
        self.is_folder && self.is_named_below(holder, file)
    }

    fn is_named_below(&self, holder: Holder<'_>, file: File<'_>) -> bool {
        let mut name = Vec::new();
        let folder = self.path.as_os_str().as_bytes();
        let folder = folder.strip_suffix(b"/").unwrap_or(folder);
        let is_below = file.write_name(&mut name)
            && name
                .strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with(b"/"));
        is_below
            && match file.is_deleted() {
                Some(true) => is_in_own_mount_namespace(holder.pid()),
                _ => leads_to(&name, file),
            }
    }
}

fn is_in_own_mount_namespace(pid: u32) -> bool {
    let own = fs::read_link(proc_root::path("/proc/self/ns/mnt"));
    let other = fs::read_link(proc_root::path(&format!("/proc/{pid}/ns/mnt")));
    matches!((own, other), (Ok(own), Ok(other)) if own == other)
}

/// Whether this name leads to the file from here.
fn leads_to(name: &[u8], file: File<'_>) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statat(CWD, name, flags).is_ok_and(|found| {
        let numbers = (device(found.st_dev), found.st_ino);
        file.device().zip(file.inode()) == Some(numbers)
    })
}

fn device(number: u64) -> Device {
    Device {
        major: major(number),
        minor: minor(number),
    }
}
