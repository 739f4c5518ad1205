//! A folder, of which the answers are read.

use std::{
    io,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use super::Error;
use crate::{
    file::{self, File},
    folder::{self, Entry, Folder, Place, host_name},
    rows::Rows,
    table::{self, Table},
};

/// A history of one host.
#[derive(Debug)]
pub struct History {
    folder: Folder,
    host: Box<str>,
    damaged: Vec<Damage>,
}

/// A file that is damaged, or one of its row groups.
#[derive(Debug)]
pub struct Damage {
    /// The file, below the folder.
    pub path: PathBuf,
    /// What is wrong.
    pub error: file::Error,
}

/// A file that was listed, until its reader has opened it.
const TRIES: usize = 5;

impl History {
    /// Opens a folder. `host` names one of several hosts.
    pub fn open(path: &Path, host: Option<&str>) -> Result<Self, Error> {
        let (folder, hosts) = opened(path)?;
        let named = host.and_then(|asked| hosts.iter().find(|has| is_called(has, asked)));
        let found = match (named, host, &hosts[..]) {
            (_, _, []) => return Err(Error::Empty(path.into())),
            (Some(host), ..) | (None, None, [host]) => host.clone(),
            (None, asked, _) => {
                let has = hosts.iter().map(ToString::to_string).collect();
                return Err(match asked {
                    None => Error::Hosts(has),
                    Some(asked) => Error::NoHost {
                        asked: asked.into(),
                        has,
                    },
                });
            }
        };
        Ok(Self {
            folder,
            host: found,
            damaged: Vec::new(),
        })
    }

    /// The hosts of a folder.
    pub fn hosts(path: &Path) -> Result<Vec<Box<str>>, Error> {
        Ok(opened(path)?.1)
    }

    /// The name of the host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The folder.
    pub const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// What was found to be damaged so far, once each.
    pub fn damaged(&self) -> &[Damage] {
        &self.damaged
    }

    /// All files of this host, those that others cover too.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut entries = self.folder.list()?;
        entries.retain(|entry| entry.host == self.host);
        Ok(entries)
    }

    /// The files to read of a table for a time in seconds, `to` exclusive: of what was recorded twice the best.
    pub fn chosen(&self, table: &Table, from: i64, to: i64) -> Result<Vec<Entry>, Error> {
        let mut entries = self.folder.chosen(table.name, from, to)?;
        entries.retain(|entry| entry.host == self.host);
        entries.sort_by_key(|entry| entry.from);
        Ok(entries)
    }

    /// Opens them all, because the recorder replaces files of the open hour by others.
    fn files(
        &mut self,
        table: &'static Table,
        from: i64,
        to: i64,
    ) -> Result<Vec<(Entry, File)>, Error> {
        let mut files = Vec::new();
        'again: for left in (0..TRIES).rev() {
            files.clear();
            for entry in self.chosen(table, from, to)? {
                let opened = match self.folder.read(&entry) {
                    Err(folder::Error::Io { source, .. })
                        if source.kind() == io::ErrorKind::NotFound && left > 0 =>
                    {
                        continue 'again;
                    }
                    opened => File::open(opened?, table),
                };
                match opened {
                    Ok(file) => files.push((entry, file)),
                    Err(error) => self.add_damage(&entry, error),
                }
            }
            break;
        }
        Ok(files)
    }

    fn add_damage(&mut self, entry: &Entry, error: file::Error) {
        let is_same = |known: &Damage| {
            known.path == entry.path && known.error.to_string() == error.to_string()
        };
        if !self.damaged.iter().any(is_same) {
            self.damaged.push(Damage {
                path: entry.path.clone(),
                error,
            });
        }
    }

    /// The error of what needs a file that was found to be damaged after `from` others.
    pub(super) fn broken_by(&mut self, from: usize) -> Error {
        let mut found = self.damaged.drain(from..);
        match found.next() {
            Some(Damage { path, error }) => Error::Damaged {
                path,
                source: error,
            },
            None => Error::Empty(self.folder.path().into()),
        }
    }

    /// Reads columns of the row groups that have rows of a time, in microseconds since 1970, both inclusive.
    pub(super) fn groups<B>(
        &mut self,
        table: &'static Table,
        time: (i64, i64),
        wanted: &[&str],
        mut each: impl FnMut(&Entry, &Rows) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.each_group(table, time, |entry, file, group| {
            Ok(each(entry, &file.read(group, wanted)?))
        })
    }

    /// Calls for the row groups that have rows of a time.
    pub(super) fn each_group<B>(
        &mut self,
        table: &'static Table,
        (from, to): (i64, i64),
        mut each: impl FnMut(&Entry, &File, usize) -> Result<ControlFlow<B>, file::Error>,
    ) -> Result<Option<B>, Error> {
        let seconds = (second(from), second(to) + 1);
        for (entry, file) in self.files(table, seconds.0, seconds.1)? {
            for group in 0..file.groups() {
                let covers = file
                    .span(group)
                    .is_none_or(|span| span.from <= to && from <= span.to);
                if !covers {
                    continue;
                }
                match each(&entry, &file, group) {
                    Ok(ControlFlow::Break(found)) => return Ok(Some(found)),
                    Ok(ControlFlow::Continue(())) => {}
                    Err(error) => self.add_damage(&entry, error),
                }
            }
        }
        Ok(None)
    }

    /// Reads columns of all rows of a table from a time to before another one, in microseconds since 1970: no row twice,
    /// whatever the recorder or a crash has left. File by file, by time; each is sorted as its table says.
    pub fn read(
        &mut self,
        table: &'static Table,
        (from, to): (i64, i64),
        wanted: &[&str],
        mut each: impl FnMut(&Rows),
    ) -> Result<(), Error> {
        self.each_group(table, (from, to.saturating_sub(1)), |_, file, group| {
            let times = file.read(group, &["time"])?;
            let is_within = |time: &Option<i64>| time.is_some_and(|time| from <= time && time < to);
            let times = times.numbers("time").iter().enumerate();
            let within = times.filter_map(|(row, time)| is_within(time).then_some(row));
            each(&file.read_rows(group, wanted, &within.collect::<Vec<_>>())?);
            Ok(ControlFlow::<()>::Continue(()))
        })?;
        Ok(())
    }

    /// What is wrong with this file, or with a row group of it, as one error each.
    pub fn check(&self, entry: &Entry) -> Result<Vec<file::Error>, Error> {
        let Some(table) = table::all()
            .into_iter()
            .find(|table| table.name == &*entry.table)
        else {
            return Ok(Vec::new());
        };
        let all: Vec<_> = table.columns.iter().map(|column| column.name).collect();
        Ok(match File::open(self.folder.read(entry)?, table) {
            Ok(file) => (0..file.groups())
                .filter_map(|group| file.read(group, &all).err())
                .collect(),
            Err(error) => vec![error],
        })
    }

    /// How many rows a file has, if its footer is intact.
    pub fn rows(&self, entry: &Entry) -> Option<u64> {
        let table = table::all()
            .into_iter()
            .find(|table| table.name == &*entry.table)?;
        let file = File::open(self.folder.read(entry).ok()?, table).ok()?;
        Some((0..file.groups()).map(|group| file.rows(group)).sum())
    }
}

/// Whether a host has this name, which may be written as that of its folder.
fn is_called(host: &str, asked: &str) -> bool {
    host == asked || host == host_name(asked.as_bytes())
}

fn opened(path: &Path) -> Result<(Folder, Vec<Box<str>>), Error> {
    let folder = match Folder::open(path) {
        Err(folder::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(Error::Empty(path.into()));
        }
        folder => folder?,
    };
    let hosts = folder.hosts()?;
    Ok((folder, hosts))
}

/// The time between rows of a process in a file, in seconds.
pub(super) const fn tier(entry: &Entry) -> u32 {
    match entry.place {
        Place::Sealed { tier } => tier,
        Place::Open => 1,
    }
}

pub(super) const fn second(time: i64) -> i64 {
    time.div_euclid(1_000_000)
}
