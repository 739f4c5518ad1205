//! The folder of a history: names, what to read for a time, and how files come into it.
//!
//! - `open/TABLE-FROM-TO.parquet`: parts and quarters of the open hour, FROM and TO in seconds since 1970, TO exclusive.
//! - `open/host`: the name of the host that records here.
//! - `host=NAME/date=YYYY-MM-DD/hour=HH/TABLE.parquet` (UTC): a sealed hour, which never changes; `TABLE-10s.parquet` has a
//!   row each 10 seconds.
//!
//! Each file is complete: it is written under a name that is not read, synced, and renamed; then its folder is synced. A
//! crash leaves a file beside those that replace it, and [`Folder::chosen`] reads no row twice. Folders come from other
//! people: names are checked, links are not followed, and only regular files are read.

mod below;
mod name;
mod pending;
#[cfg(test)]
mod tests;

use std::{
    fs,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};

use self::{
    below::{FOLDER, io_error},
    name::{folders, hour_of, is_host},
};
pub use self::{
    name::{Entry, Place, host_name},
    pending::Pending,
};

/// Where a recorder writes to, and where a reader looks, if nobody names another folder.
pub const USUAL: &str = "/var/lib/fastproc/history";
/// A folder has at most so many files.
pub const MOST_FILES: usize = 1 << 20;

const OPEN: &str = "open";
const HOST: &str = "host";
const HOUR: i64 = 3600;

/// Why a folder is not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read or written.
    #[error("{path}: cannot be read or written")]
    Io {
        /// Which one; a file is named as below the folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a link, a pipe, a device or the like.
    #[error("{0}: it is not a regular file")]
    NotRegular(PathBuf),
    /// There are more than [`MOST_FILES`] files.
    #[error(
        "the folder has more than {MOST_FILES} files: name one of a single host, or read it by DuckDB"
    )]
    TooMany,
    /// A name that no file may have here.
    #[error("no file may have this name: {0}")]
    Name(String),
}

impl Error {
    /// Whether there is no such file or folder: the recorder removes files while others read.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// A folder, open.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    root: OwnedFd,
}

impl Folder {
    /// Opens a folder that exists.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            path: path.into(),
            root: rustix::fs::open(path, FOLDER, Mode::empty()).map_err(io_error(path))?,
        })
    }

    /// Opens a folder to record to, for a host. Makes what is missing. The open hour may be of an earlier host.
    pub fn create(path: &Path, host: &str) -> Result<Self, Error> {
        if !is_host(host) {
            return Err(Error::Name(host.into()));
        }
        fs::create_dir_all(path).map_err(|source| Error::Io {
            path: path.into(),
            source,
        })?;
        let folder = Self::open(path)?;
        folder.descend(&[OPEN], true)?;
        if folder.host()?.is_none() {
            folder.set_host(host)?;
        }
        Ok(folder)
    }

    /// Names the host that records here from now on.
    pub(crate) fn set_host(&self, host: &str) -> Result<(), Error> {
        let mut file = self.pending(&[OPEN], HOST.into(), true)?;
        file.write_all(host.as_bytes())
            .map_err(|source| Error::Io {
                path: HOST.into(),
                source,
            })?;
        file.finish()
    }

    /// Keeps others from recording here, as long as this is open. Returns whether nobody does.
    pub fn lock(&self) -> Result<bool, Error> {
        let lock = FlockOperation::NonBlockingLockExclusive;
        match rustix::fs::flock(&self.root, lock) {
            Err(Errno::WOULDBLOCK) => Ok(false),
            locked => locked.map(|()| true).map_err(io_error(&self.path)),
        }
    }

    /// Bytes of the file system that are free for this user, and all of them.
    pub fn space(&self) -> Result<(u64, u64), Error> {
        let space = rustix::fs::fstatvfs(&self.root).map_err(io_error(&self.path))?;
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        Ok((bytes(space.f_bavail), bytes(space.f_blocks)))
    }

    /// Its path, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The host that records here. `None` if nobody does.
    pub fn host(&self) -> Result<Option<Box<str>>, Error> {
        let path: PathBuf = [OPEN, HOST].iter().collect();
        let mut name = String::new();
        let read = match self.read_path(&path) {
            Ok(file) => file.take(256).read_to_string(&mut name),
            Err(error) if error.is_absence() => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok((read.is_ok() && is_host(&name)).then(|| name.into()))
    }

    /// All files, sorted by table, host, time and place. Names that no version writes are left out.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        self.list_of(i64::MIN, i64::MAX)
    }

    /// The hosts of which there are files.
    pub fn hosts(&self) -> Result<Vec<Box<str>>, Error> {
        let mut hosts: Vec<Box<str>> = Vec::new();
        let mut open = false;
        self.each(&[OPEN], FileType::RegularFile, |name| {
            open |= Entry::open("", name).is_some();
            Ok(())
        })?;
        hosts.extend(self.host()?.or_else(|| Some("".into())).filter(|_| open));
        for name in self.names(&[], "host=")? {
            hosts.extend(
                name.strip_prefix("host=")
                    .filter(|name| is_host(name))
                    .map(Into::into),
            );
        }
        hosts.sort_unstable();
        hosts.dedup();
        Ok(hosts)
    }

    /// The files that cover any of these seconds, `to` exclusive. Others cost nothing.
    fn list_of(&self, from: i64, to: i64) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        let is_of = |date: &str, hour: &str, seconds: i64| {
            hour_of(date, hour).is_some_and(|first| first < to && first + seconds > from)
        };
        let host = self.host()?.unwrap_or_default();
        self.each(&[OPEN], FileType::RegularFile, |name| {
            entries.extend(Entry::open(&host, name));
            bound(&entries)
        })?;
        for host in self.names(&[], "host=")? {
            let dates = self.names(&[&host], "date=")?;
            for date in dates
                .iter()
                .filter(|date| is_of(date, "hour=00", 24 * HOUR))
            {
                let hours = self.names(&[&host, date], "hour=")?;
                for hour in hours.iter().filter(|hour| is_of(date, hour, HOUR)) {
                    self.each(&[&host, date, hour], FileType::RegularFile, |name| {
                        entries.extend(Entry::sealed([&host, date, hour, name]));
                        bound(&entries)
                    })?;
                }
            }
        }
        let mut listed = Vec::with_capacity(entries.len());
        for mut entry in entries {
            // The recorder removes files meanwhile.
            if let Some(bytes) = self.size(&entry.path)? {
                entry.bytes = bytes;
                listed.push(entry);
            }
        }
        name::sort(&mut listed);
        Ok(listed)
    }

    /// What to read of a table for the seconds from `from` to before `to`: of what was recorded twice, what covers most, and
    /// the finest.
    pub fn chosen(&self, table: &str, from: i64, to: i64) -> Result<Vec<Entry>, Error> {
        let mut entries = self.list_of(from, to)?;
        entries.retain(|entry| &*entry.table == table && entry.from < to && from < entry.to);
        let mut chosen = name::chosen(&entries).into_iter();
        entries.retain(|_| chosen.next() == Some(true));
        Ok(entries)
    }

    /// Files whose rows are in others, and that a crash left: the recorder removes them.
    pub fn superseded(&self) -> Result<Vec<Entry>, Error> {
        let mut entries = self.list()?;
        let mut chosen = name::chosen(&entries).into_iter();
        entries.retain(|_| chosen.next() == Some(false));
        Ok(entries)
    }

    /// Opens a file to read it.
    pub fn read(&self, entry: &Entry) -> Result<fs::File, Error> {
        self.read_path(&entry.path)
    }

    /// Begins a file of the open hour. [`Pending::finish`] gives it its name.
    pub fn begin_open(&self, table: &str, from: i64, to: i64) -> Result<Pending, Error> {
        let name = format!("{table}-{from}-{to}.parquet");
        match Entry::open("", &name) {
            Some(_) => self.pending(&[OPEN], name, true),
            None => Err(Error::Name(name)),
        }
    }

    /// Begins a sealed file: of this host, and of the hour of this second. There must be none yet.
    pub fn begin_sealed(
        &self,
        table: &str,
        host: &str,
        second: i64,
        tier: u32,
    ) -> Result<Pending, Error> {
        let name = match tier {
            1 => format!("{table}.parquet"),
            tier => format!("{table}-{tier}s.parquet"),
        };
        let [date, hour] = folders(second).ok_or_else(|| Error::Name(name.clone()))?;
        let host = format!("host={host}");
        match Entry::sealed([&host, &date, &hour, &name]) {
            Some(_) => self.pending(&[&host, &date, &hour], name, false),
            None => Err(Error::Name(name)),
        }
    }

    /// Removes a file, and the folders of its hour and day if they are empty then.
    pub fn remove(&self, entry: &Entry) -> Result<(), Error> {
        let names: Vec<_> = entry.path.iter().filter_map(|name| name.to_str()).collect();
        let Some((name, folders)) = names.split_last() else {
            return Err(Error::Name(String::new()));
        };
        let folder = match self.descend(folders, false) {
            Err(error) if error.is_absence() => return Ok(()),
            folder => folder?,
        };
        match rustix::fs::unlinkat(&folder, *name, AtFlags::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            removed => removed.map_err(io_error(&entry.path))?,
        }
        rustix::fs::fsync(&folder).map_err(io_error(&entry.path))?;
        for depth in (1..folders.len()).rev() {
            let parent = self.descend(&folders[..depth], false)?;
            if rustix::fs::unlinkat(&parent, folders[depth], AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Removes what a crash left half written. No [`Pending`] may be in use.
    pub fn remove_pending(&self) -> Result<(), Error> {
        let mut names = Vec::new();
        self.each(&[OPEN], FileType::RegularFile, |name| {
            if name.starts_with('.') {
                names.push(name.to_owned());
            }
            Ok(())
        })?;
        let folder = self.descend(&[OPEN], false)?;
        for name in names {
            rustix::fs::unlinkat(&folder, &*name, AtFlags::empty()).map_err(io_error(&name))?;
        }
        Ok(())
    }

    /// A new file in `open/` that will get this name in this folder.
    fn pending(&self, folders: &[&str], name: String, replaces: bool) -> Result<Pending, Error> {
        let open = self.descend(&[OPEN], true)?;
        let folder = self.descend(folders, true)?;
        let temporary = match folders {
            [_, date, hour] => format!(".{date}-{hour}-{name}"),
            _ => format!(".{name}"),
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o640);
        let file =
            rustix::fs::openat(&open, &*temporary, flags, mode).map_err(io_error(&temporary))?;
        Ok(Pending {
            file: file.into(),
            open,
            temporary,
            folder,
            name,
            replaces,
            done: false,
        })
    }
}

fn bound<T>(found: &[T]) -> Result<(), Error> {
    if found.len() > MOST_FILES {
        return Err(Error::TooMany);
    }
    Ok(())
}
