//! Keeps a window for good, outside of what a recorder removes.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use super::{
    Error,
    history::{History, second},
};
use crate::{folder::Place, table};

impl History {
    /// Saves the files of a time in microseconds since 1970 as `saved/NAME` of the folder, which is a history as well: from the
    /// last walk with all processes on, without which others say little. Sealed hours are whole there; they are the same
    /// files, where the file system can do that, and copies elsewhere. Returns the new folder.
    pub fn save(&mut self, (from, to): (i64, i64), name: &str) -> Result<PathBuf, Error> {
        if to <= from {
            return Err(Error::Backwards);
        }
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(letters) {
            return Err(Error::Name(name.into()));
        }
        let from = match self.walk_at(from) {
            Ok((_, whole)) => whole.time,
            // The part that was recorded is saved, and the one that is damaged.
            Err(_) => from,
        };
        let root = self.folder().path().join("saved");
        let (path, unfinished) = (root.join(name), root.join(format!(".{name}")));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Save { path, source }
        };
        if fs::symlink_metadata(&path).is_ok() {
            return Err(Error::Saved(path));
        }
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&unfinished)(error));
            }
            _ => {}
        }
        let mut is_empty = true;
        let mut folders = vec![root.clone(), unfinished.clone()];
        for table in table::all() {
            for entry in self.chosen(table, second(from), second(to) + 1)? {
                let target = unfinished.join(&entry.path);
                if let Some(folder) = target.parent() {
                    make(folder).map_err(failed(folder))?;
                    folders.push(folder.into());
                }
                let source = self.folder().path().join(&entry.path);
                if fs::hard_link(source, &target).is_err() {
                    let mut source = self.folder().read(&entry)?;
                    copy(&mut source, &target).map_err(failed(&target))?;
                }
                if entry.place == Place::Open && !entry.host.is_empty() {
                    // Says whose they are.
                    let host = target.with_file_name("host");
                    copy(&mut entry.host.as_bytes(), &host).map_err(failed(&host))?;
                }
                is_empty = false;
            }
        }
        if is_empty {
            return Err(Error::Nothing);
        }
        fs::rename(&unfinished, &path).map_err(failed(&unfinished))?;
        folders.sort_unstable();
        folders.dedup();
        for folder in folders {
            let folder = folder
                .strip_prefix(&unfinished)
                .map_or_else(|_| folder.clone(), |below| path.join(below));
            let synced = fs::File::open(&folder).and_then(|folder| folder.sync_all());
            synced.map_err(failed(&folder))?;
        }
        Ok(path)
    }
}

fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o750).create(folder)
}

fn copy(from: &mut impl io::Read, to: &Path) -> io::Result<()> {
    let mut to = fs::File::create(to)?;
    io::copy(from, &mut to)?;
    to.sync_all()
}
