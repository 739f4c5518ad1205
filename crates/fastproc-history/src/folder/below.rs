//! What is below a folder, without following links.

use std::{
    ffi::CStr,
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags},
    io::Errno,
};

use super::{Error, Folder, bound};

pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

pub(super) fn io_error(path: impl Into<PathBuf>) -> impl FnOnce(Errno) -> Error {
    let path = path.into();
    move |errno| Error::Io {
        path,
        source: errno.into(),
    }
}

impl Folder {
    /// Opens a folder below this one, name by name: a link is not followed. Makes it if asked.
    pub(super) fn descend(&self, names: &[&str], makes: bool) -> Result<OwnedFd, Error> {
        let mut path = self.path.clone();
        let flags = FOLDER | OFlags::NOFOLLOW;
        let mut folder =
            rustix::fs::openat(&self.root, ".", flags, Mode::empty()).map_err(io_error(&path))?;
        for &name in names {
            path.push(name);
            if makes {
                let mode = Mode::from_raw_mode(0o750);
                match rustix::fs::mkdirat(&folder, name, mode) {
                    Err(Errno::EXIST) => {}
                    made => {
                        made.and_then(|()| rustix::fs::fsync(&folder))
                            .map_err(io_error(&path))?;
                    }
                }
            }
            folder =
                rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(io_error(&path))?;
        }
        Ok(folder)
    }

    /// Opens a regular file below this folder.
    pub(super) fn read_path(&self, path: &Path) -> Result<fs::File, Error> {
        let names: Vec<_> = path.iter().filter_map(|name| name.to_str()).collect();
        let (name, folders) = names
            .split_last()
            .ok_or_else(|| Error::Name(String::new()))?;
        let folder = self.descend(folders, false)?;
        let flags =
            OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match rustix::fs::openat(&folder, *name, flags, Mode::empty()) {
            Err(Errno::LOOP | Errno::NXIO) => return Err(Error::NotRegular(path.into())),
            opened => fs::File::from(opened.map_err(io_error(path))?),
        };
        let metadata = file.metadata().map_err(|source| Error::Io {
            path: path.into(),
            source,
        })?;
        if metadata.is_file() {
            Ok(file)
        } else {
            Err(Error::NotRegular(path.into()))
        }
    }

    /// The size of a regular file. `None` if it is gone or something else.
    pub(super) fn size(&self, path: &Path) -> Result<Option<u64>, Error> {
        let found = rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW);
        match found {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {
                Ok(Some(found.st_size as u64))
            }
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(io_error(path)(errno)),
        }
    }

    /// The folders in a folder whose name begins so, sorted.
    pub(super) fn names(&self, folders: &[&str], prefix: &str) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        self.each(folders, FileType::Directory, |name| {
            if name.starts_with(prefix) {
                names.push(name.to_owned());
            }
            bound(&names)
        })?;
        Ok(names)
    }

    /// Calls for each name of a kind in a folder. A folder that does not exist, or is a link, is empty.
    pub(super) fn each(
        &self,
        folders: &[&str],
        kind: FileType,
        mut with: impl FnMut(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let path: PathBuf = folders.iter().collect();
        let folder = match self.descend(folders, false) {
            Ok(folder) => folder,
            Err(Error::Io { source, .. })
                if matches!(
                    Errno::from_io_error(&source),
                    Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
                ) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for entry in Dir::read_from(folder).map_err(io_error(&path))? {
            let entry = entry.map_err(io_error(&path))?;
            let unknown = entry.file_type() == FileType::Unknown;
            if (unknown || entry.file_type() == kind)
                && let Ok(name) = CStr::to_str(entry.file_name())
            {
                with(name)?;
            }
        }
        Ok(())
    }
}
