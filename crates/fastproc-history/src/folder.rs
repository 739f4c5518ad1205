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

use std::{
    ffi::CStr,
    fmt, fs,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use rustix::{
    fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags},
    io::Errno,
};

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
        /// Which one, below the folder.
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

/// Where a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the open hour.
    Open,
    /// In a sealed hour.
    Sealed {
        /// Seconds between rows of a process: 1, or more where it was thinned.
        tier: u32,
    },
}

/// A file of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of its table.
    pub table: Box<str>,
    /// The host that it is about, as in the name; empty for an open file if the folder does not say so.
    pub host: Box<str>,
    /// Where it is.
    pub place: Place,
    /// The first second that it covers, since 1970, UTC.
    pub from: i64,
    /// The second after the last one.
    pub to: i64,
    /// Its size.
    pub bytes: u64,
    /// Its path below the folder.
    pub path: PathBuf,
}

impl Entry {
    /// The entry of an open file. `None` if the name is wrong, or if it does not lie within one hour.
    fn open(host: &str, name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(".parquet")?.split('-');
        let (table, from, to) = (parts.next()?, parts.next()?, parts.next()?);
        let (from, to) = (second(from)?, second(to)?);
        let right = parts.next().is_none()
            && is_table(table)
            && from < to
            && from / HOUR == (to - 1) / HOUR;
        right.then(|| Self {
            table: table.into(),
            host: host.into(),
            place: Place::Open,
            from,
            to,
            bytes: 0,
            path: [OPEN, name].iter().collect(),
        })
    }

    /// The entry of a sealed file, by its name and those of the folders.
    fn sealed([host, date, hour, name]: [&str; 4]) -> Option<Self> {
        let table = name.strip_suffix(".parquet")?;
        let (table, tier) = match table.split_once('-') {
            Some((table, tier)) => {
                let tier = digits(tier.strip_suffix('s')?)?;
                (table, u32::try_from(tier).ok().filter(|&tier| tier > 1)?)
            }
            None => (table, 1),
        };
        let from = hour_of(date, hour)?;
        let host_name = host.strip_prefix("host=")?;
        (is_table(table) && is_host(host_name)).then(|| Self {
            table: table.into(),
            host: host_name.into(),
            place: Place::Sealed { tier },
            from,
            to: from + HOUR,
            bytes: 0,
            path: [host, date, hour, name].iter().collect(),
        })
    }

    /// Whether the other file has all rows of this one, or better ones.
    fn is_within(&self, other: &Self) -> bool {
        let covered = other.from <= self.from && self.to <= other.to;
        let host = self.host == other.host || self.host.is_empty();
        covered
            && host
            && match (self.place, other.place) {
                (Place::Open, Place::Open) => (self.from, self.to) != (other.from, other.to),
                (Place::Open, Place::Sealed { .. }) => true,
                (Place::Sealed { tier }, Place::Sealed { tier: other }) => other < tier,
                (Place::Sealed { .. }, Place::Open) => false,
            }
    }
}

/// The name of a table: small letters and underscores.
fn is_table(name: &str) -> bool {
    let letters = name
        .bytes()
        .all(|byte| byte == b'_' || byte.is_ascii_lowercase());
    letters && !name.is_empty() && name.len() <= 32
}

/// A host's name as [`host_name`] writes it.
fn is_host(name: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"._-%".contains(&byte);
    name.bytes().all(letters) && (1..=192).contains(&name.len())
}

/// A host's name for the name of a folder: what is no letter, digit, dot, hyphen or underscore is written as `%XX`, which
/// other engines read back.
pub fn host_name(bytes: &[u8]) -> String {
    let mut name = String::new();
    for &byte in bytes.iter().take(64) {
        match byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            true => name.push(byte.into()),
            false => name.push_str(&format!("%{byte:02X}")),
        }
    }
    match name.is_empty() {
        true => "unknown".into(),
        false => name,
    }
}

/// A number without signs, blanks and zeros in front.
fn digits(text: &str) -> Option<u64> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok())?
}

/// A second between 1970 and 9999.
fn second(text: &str) -> Option<i64> {
    let second = i64::try_from(digits(text)?).ok()?;
    (second <= Timestamp::MAX.as_second()).then_some(second)
}

/// The first second of an hour, by the names of its folders.
fn hour_of(date: &str, hour: &str) -> Option<i64> {
    let day: Date = date.strip_prefix("date=")?.parse().ok()?;
    let number = hour
        .strip_prefix("hour=")?
        .parse()
        .ok()
        .filter(|number| *number < 24)?;
    let from = day.at(number, 0, 0, 0).to_zoned(TimeZone::UTC).ok()?;
    let from = from.timestamp().as_second();
    // Names that mean the same are not the same.
    (from >= 0 && folders(from)? == [date, hour]).then_some(from)
}

/// The names of the folders of an hour.
fn folders(second: i64) -> Option<[String; 2]> {
    let time = Timestamp::from_second(second).ok()?.to_zoned(TimeZone::UTC);
    Some([
        format!("date={}", time.date()),
        format!("hour={:02}", time.hour()),
    ])
}

/// A folder, open.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    root: OwnedFd,
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

fn io_error(path: impl Into<PathBuf>) -> impl FnOnce(Errno) -> Error {
    let path = path.into();
    move |errno| Error::Io {
        path,
        source: errno.into(),
    }
}

impl Folder {
    /// Opens a folder that exists.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            path: path.into(),
            root: rustix::fs::open(path, FOLDER, Mode::empty()).map_err(io_error(path))?,
        })
    }

    /// Opens a folder to record to, for a host. Makes what is missing.
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
        if folder.host()?.as_deref() != Some(host) {
            let mut file = folder.pending(&[OPEN], HOST.into(), true)?;
            file.write_all(host.as_bytes())
                .map_err(|source| Error::Io {
                    path: HOST.into(),
                    source,
                })?;
            file.finish()?;
        }
        Ok(folder)
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
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
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
        listed.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
        Ok(listed)
    }

    /// What to read of a table for the seconds from `from` to before `to`: of what was recorded twice, what covers most, and
    /// the finest.
    pub fn chosen(&self, table: &str, from: i64, to: i64) -> Result<Vec<Entry>, Error> {
        let mut entries = self.list_of(from, to)?;
        entries.retain(|entry| &*entry.table == table && entry.from < to && from < entry.to);
        Ok(chosen(entries))
    }

    /// Files whose rows are in others, and that a crash left: the recorder removes them.
    pub fn superseded(&self) -> Result<Vec<Entry>, Error> {
        let all = self.list()?;
        let chosen = chosen(all.clone());
        Ok(all
            .into_iter()
            .filter(|entry| !chosen.contains(entry))
            .collect())
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
        let folder = self.descend(folders, false)?;
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
            [host, date, hour] => format!(".{host}-{date}-{hour}-{name}"),
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

    /// Opens a folder below this one, name by name: a link is not followed. Makes it if asked.
    fn descend(&self, names: &[&str], makes: bool) -> Result<OwnedFd, Error> {
        let mut path = PathBuf::from(".");
        let flags = FOLDER | OFlags::NOFOLLOW;
        let mut folder =
            rustix::fs::openat(&self.root, ".", flags, Mode::empty()).map_err(io_error("."))?;
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
    fn read_path(&self, path: &Path) -> Result<fs::File, Error> {
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
        match metadata.is_file() {
            true => Ok(file),
            false => Err(Error::NotRegular(path.into())),
        }
    }

    /// The size of a regular file. `None` if it is gone or something else.
    fn size(&self, path: &Path) -> Result<Option<u64>, Error> {
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
    fn names(&self, folders: &[&str], prefix: &str) -> Result<Vec<String>, Error> {
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
    fn each(
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

fn bound<T>(found: &[T]) -> Result<(), Error> {
    match found.len() > MOST_FILES {
        true => Err(Error::TooMany),
        false => Ok(()),
    }
}

fn key(entry: &Entry) -> (&str, &str, i64, i64, Place) {
    (&entry.table, &entry.host, entry.from, entry.to, entry.place)
}

/// What to read of these files: those whose rows are not in another one.
fn chosen(entries: Vec<Entry>) -> Vec<Entry> {
    let all = entries.clone();
    let mut entries = entries;
    entries.retain(|entry| {
        !all.iter()
            .any(|other| entry.table == other.table && entry.is_within(other))
    });
    entries
}

/// A file that is being written. Without [`Pending::finish`] it is removed.
pub struct Pending {
    file: fs::File,
    open: OwnedFd,
    temporary: String,
    folder: OwnedFd,
    name: String,
    replaces: bool,
    done: bool,
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
        let renamed = match self.replaces {
            true => rustix::fs::renameat(from, &*self.temporary, to, &*self.name),
            false => rustix::fs::renameat_with(
                from,
                &*self.temporary,
                to,
                &*self.name,
                RenameFlags::NOREPLACE,
            ),
        };
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
