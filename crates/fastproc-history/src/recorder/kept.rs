//! What is kept in the folder: parts and row groups of open hours, sealed hours, thinned ones, within bounds.

use std::io::{self, Write as _};

use fastproc::error_chain;

use super::{
    cells::{EVERYWHERE, place},
    group::Group,
    taken::Taken,
    thin::thin,
    writing::{Event, Job, Place},
};
use crate::{
    file::{self, File, Writer},
    folder::{self, Entry, Folder, Place as Where},
    rows::{Cells, Columns as _},
    table::{self, CGROUPS, EVENTS, MACHINE, PROCESSES, THINNED, Table, WAITS},
};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600;
/// A longer open file is a row group of the hour, rather than a part of one. In seconds.
const MOST_PART: i64 = 60;
/// There is room for so many row groups at least: the present one, its parts, and some before it.
const GROUPS: u64 = 8;
/// What a sealed file may have more than what it is made of, in bytes.
const SLACK: u64 = 64 << 10;

/// How much is kept, and how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Bytes of all files.
    pub size: u64,
    /// The part of the file system that stays free, from 0 to 1.
    pub leave: f64,
    /// Seconds for which every walk is kept.
    pub every: i64,
    /// Seconds until what is kept has a row each ten seconds.
    pub each_10: i64,
    /// Seconds until it has one each minute; then it is removed.
    pub each_60: i64,
}

impl Default for Bounds {
    fn default() -> Self {
        const DAY: i64 = 24 * HOUR;
        Self {
            size: 2 << 30,
            leave: 0.1,
            every: DAY,
            each_10: 7 * DAY,
            each_60: 28 * DAY,
        }
    }
}

/// Why something is not kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] folder::Error),
    /// A file.
    #[error(transparent)]
    File(#[from] file::Error),
    /// It cannot be written.
    #[error("cannot write to the folder")]
    Write(#[from] io::Error),
    /// There is nothing left to remove.
    #[error("there is no room within the size and the free space to leave, and nothing to remove")]
    Full,
    /// Another recorder is there.
    #[error("another recorder records to {0}: end it, or name another folder")]
    Locked(String),
}

/// Keeps what is recorded in a folder.
#[derive(Debug)]
pub struct Kept {
    folder: Folder,
    host: String,
    pub(super) bounds: Bounds,
    /// Bytes of all files.
    used: u64,
    /// Whether the part that began the present row group was removed: without it the next ones tell nothing.
    lacks_beginning: bool,
}

impl Kept {
    /// Takes a folder, which nobody else may record to, and finishes what an earlier run left at this second. Returns the
    /// times that it has as well.
    ///
    /// # Errors
    /// Another recorder is there, or it cannot be read or written. The open hour of an earlier host is sealed first, as that
    /// host's.
    pub fn take(
        folder: Folder,
        host: String,
        bounds: Bounds,
        now: i64,
    ) -> Result<(Self, Taken, Vec<Event>), Error> {
        if !folder.lock()? {
            return Err(Error::Locked(folder.path().display().to_string()));
        }
        folder.remove_pending()?;
        let mut kept = Self {
            folder,
            host,
            bounds,
            used: 0,
            lacks_beginning: false,
        };
        for entry in kept.folder.superseded()? {
            if *entry.host == *kept.host || entry.host.is_empty() {
                kept.folder.remove(&entry)?;
            }
        }
        let mut told = Vec::new();
        told.extend(kept.cut_off(now)?);
        let earlier = kept.folder.host()?;
        if let Some(earlier) = earlier.filter(|host| **host != *kept.host) {
            let host = std::mem::replace(&mut kept.host, earlier.into());
            kept.seal_hours(i64::MAX, &mut told)?;
            kept.folder.set_host(&host)?;
            kept.host = host;
        }
        // A full disk is no reason not to begin.
        if let Err(error) = kept.tidy(now, &mut told) {
            told.push(failed(&error));
        }
        let mut taken = Taken::default();
        for entry in kept.own()? {
            taken.add(entry.from * SECOND, entry.to * SECOND);
        }
        Ok((kept, taken, told))
    }

    /// Tells at this second if the run before did not write its end.
    fn cut_off(&self, now: i64) -> Result<Option<Event>, Error> {
        let entries = self.own()?;
        let events = entries.iter().filter(|entry| *entry.table == *EVENTS.name);
        let Some(newest) = events.max_by_key(|entry| entry.to) else {
            return Ok(None);
        };
        let read = File::open(self.folder.read(newest)?, &EVENTS)
            .and_then(|file| file.read(file.groups().saturating_sub(1), &["event"]));
        // Of a damaged one others tell.
        let last = read
            .ok()
            .and_then(|rows| rows.texts("event").last()?.clone());
        let until = entries.iter().map(|entry| entry.to).max();
        Ok(last.filter(|event| **event != *"stopped").map(|_| Event {
            event: "cut_off",
            since: until.map(|until| until * SECOND),
            until: Some(now * SECOND),
            detail: "the run before wrote no more: it was killed, the machine went down, or the disk took nothing".into(),
        }))
    }

    /// The files of this host.
    fn own(&self) -> Result<Vec<Entry>, Error> {
        let mut entries = self.folder.list()?;
        entries.retain(|entry| *entry.host == *self.host || entry.host.is_empty());
        Ok(entries)
    }

    fn write_open(&mut self, job: &Job, told: &mut Vec<Event>) -> Result<(), Error> {
        let (Job::Part(group) | Job::Group(group)) = job;
        let (from, to) = group.seconds();
        let mut files = Vec::new();
        for store in group.tables() {
            let begin = if to - from > MOST_PART {
                Writer::new
            } else {
                Writer::part
            };
            let mut writer = begin(Vec::new(), store.table())?;
            writer.group(store)?;
            files.push((store.table(), writer.finish()?));
        }
        let bytes = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        self.make_room(bytes, from, told)?;
        self.lacks_beginning &= matches!(job, Job::Part(_)) && !begins(group);
        if self.lacks_beginning {
            files.retain(|(table, _)| *table.name == *EVENTS.name);
            told.push(dropped(group.from, group.to));
        }
        for (table, bytes) in files {
            if let Err(error) = self.write_file(table, (from, to), &bytes) {
                // Its tables go together: the next try writes all of them. The first error tells more.
                let _ = self.remove_open(|entry| (entry.from, entry.to) == (from, to));
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_file(
        &mut self,
        table: &Table,
        (from, to): (i64, i64),
        bytes: &[u8],
    ) -> Result<(), Error> {
        let mut file = self.folder.begin_open(table.name, from, to)?;
        file.write_all(bytes)?;
        file.finish()?;
        self.used += bytes.len() as u64;
        Ok(())
    }

    /// Removes the open files of this host that are chosen.
    fn remove_open(&mut self, chosen: impl Fn(&Entry) -> bool) -> Result<(), Error> {
        for entry in self.own()? {
            if entry.place == Where::Open && chosen(&entry) {
                self.folder.remove(&entry)?;
                self.used = self.used.saturating_sub(entry.bytes);
            }
        }
        Ok(())
    }

    /// Removes the oldest until there is room for as many bytes. What begins at `from` or later stays, and so do the events of
    /// the open hour, which tell what was removed.
    fn make_room(&mut self, bytes: u64, from: i64, told: &mut Vec<Event>) -> Result<(), Error> {
        let mut removed: Option<(i64, i64)> = None;
        let result = loop {
            let (free, all) = self.folder.space()?;
            let leave = (all as f64 * self.bounds.leave) as u64;
            if self.used + bytes <= self.bounds.size && free >= leave.saturating_add(bytes) {
                break Ok(());
            }
            let entries = self.own()?;
            self.used = entries.iter().map(|entry| entry.bytes).sum();
            if self.used + bytes <= self.bounds.size && free >= leave.saturating_add(bytes) {
                break Ok(());
            }
            let sealed = |entry: &&Entry| entry.place != Where::Open;
            let oldest = entries.iter().filter(sealed).min_by_key(|entry| entry.from);
            let before = |entry: &&Entry| {
                entry.place == Where::Open && entry.to <= from && *entry.table != *EVENTS.name
            };
            let mut open: Vec<_> = entries.iter().filter(before).collect();
            open.sort_by_key(|entry| entry.from);
            let (first, end) = match (oldest, open.first()) {
                (Some(oldest), _) => {
                    open = entries.iter().filter(sealed).collect();
                    (oldest.from, oldest.to)
                }
                (None, Some(oldest)) => {
                    let mut next = open.iter().filter(|entry| entry.from > oldest.from);
                    let next = next.find(|entry| self.begins(entry));
                    self.lacks_beginning |= next.is_none();
                    (oldest.from, next.map_or(from, |next| next.from))
                }
                (None, None) => break Err(Error::Full),
            };
            let mut until = first;
            for entry in open
                .iter()
                .filter(|entry| (first..end).contains(&entry.from))
            {
                self.folder.remove(entry)?;
                self.used = self.used.saturating_sub(entry.bytes);
                until = until.max(entry.to);
            }
            let (since, before) = removed.unwrap_or((first, until));
            removed = Some((since.min(first), before.max(until)));
        };
        told.extend(removed.map(|(since, until)| dropped(since * SECOND, until * SECOND)));
        result
    }

    /// Whether the row group of an open file begins with it.
    fn begins(&self, entry: &Entry) -> bool {
        let whole = || -> Result<bool, Error> {
            let file = File::open(self.folder.read(entry)?, &MACHINE)?;
            let rows = file.read(0, &["whole"])?;
            Ok(rows.numbers("whole").contains(&Some(1)))
        };
        entry.to - entry.from > MOST_PART
            || *entry.table == *MACHINE.name && whole().unwrap_or(false)
    }

    /// Seals hours that are over at this second, thins what is old, and removes what is too old.
    fn tidy(&mut self, now: i64, told: &mut Vec<Event>) -> Result<(), Error> {
        let entries = self.seal_hours(now, told)?;
        for entry in &entries {
            if entry.place != Where::Open && now - entry.to >= self.bounds.each_60 {
                self.folder.remove(entry)?;
                self.used = self.used.saturating_sub(entry.bytes);
            }
        }
        self.thin_one(&entries, now, told)
    }

    /// Seals the open hours that are over at this second. Returns the files that there were.
    fn seal_hours(&mut self, now: i64, told: &mut Vec<Event>) -> Result<Vec<Entry>, Error> {
        let entries = self.own()?;
        self.used = entries.iter().map(|entry| entry.bytes).sum();
        let hour = |entry: &Entry| entry.from - entry.from.rem_euclid(HOUR);
        let open = entries.iter().filter(|entry| entry.place == Where::Open);
        let mut hours: Vec<i64> = open.map(hour).filter(|hour| hour + HOUR <= now).collect();
        hours.sort_unstable();
        hours.dedup();
        for hour in hours {
            for table in table::all() {
                self.seal(table, hour, told)?;
            }
        }
        Ok(entries)
    }

    /// Seals an hour of a table, without decoding it.
    fn seal(
        &mut self,
        table: &'static Table,
        hour: i64,
        told: &mut Vec<Event>,
    ) -> Result<(), Error> {
        let mut entries = self.folder.chosen(table.name, hour, hour + HOUR)?;
        entries.retain(|entry| *entry.host == *self.host || entry.host.is_empty());
        if entries.iter().all(|entry| entry.place == Where::Open) && !entries.is_empty() {
            let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
            self.make_room(bytes + SLACK, hour, told)?;
            let pending = self.folder.begin_sealed(table.name, &self.host, hour, 1)?;
            let mut writer = Writer::new(pending, table)?;
            let mut copied = 0;
            for entry in &entries {
                match self.copy(entry, table, &mut writer, told) {
                    Ok(groups) => copied += groups,
                    Err(Error::File(error)) if is_damage(&error) => {
                        told.push(damaged(entry, &error));
                    }
                    Err(error) => return Err(error),
                }
            }
            if copied > 0 {
                writer.finish()?.finish()?;
                self.used += bytes;
            }
        }
        // Those that the sealed hour hides, also if a crash left them.
        self.remove_open(|entry| {
            *entry.table == *table.name && (hour..hour + HOUR).contains(&entry.from)
        })
    }

    fn copy<W: io::Write + Send>(
        &self,
        entry: &Entry,
        table: &'static Table,
        writer: &mut Writer<W>,
        told: &mut Vec<Event>,
    ) -> Result<usize, Error> {
        let file = File::open(self.folder.read(entry)?, table)?;
        let mut copied = 0;
        for group in 0..file.groups() {
            match writer.copy_group(&file, group) {
                Ok(()) => copied += 1,
                Err(error @ file::Error::Group { .. }) => told.push(damaged(entry, &error)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(copied)
    }

    /// Thins the oldest hour that has more rows than it shall have.
    fn thin_one(
        &mut self,
        entries: &[Entry],
        now: i64,
        told: &mut Vec<Event>,
    ) -> Result<(), Error> {
        let bounds = self.bounds;
        let wanted = |entry: &Entry| match now - entry.to {
            age if age < bounds.every => 1,
            age if age < bounds.each_10 => 10,
            _ => 60,
        };
        let is_finer = |entry: &&Entry| match entry.place {
            Where::Sealed { tier } => {
                let is_kept = now - entry.to < bounds.each_60;
                is_kept && tier < wanted(entry) && thinned(&entry.table).is_some()
            }
            Where::Open => false,
        };
        let oldest = entries
            .iter()
            .filter(is_finer)
            .min_by_key(|entry| entry.from);
        let Some(first) = oldest.map(|entry| entry.from) else {
            return Ok(());
        };
        for entry in entries.iter().filter(is_finer) {
            let (Some(table), true) = (thinned(&entry.table), entry.from == first) else {
                continue;
            };
            self.make_room(entry.bytes + SLACK, entry.from, told)?;
            let tier = wanted(entry);
            let name = entry.table.as_ref();
            let pending = self
                .folder
                .begin_sealed(name, &self.host, entry.from, tier)?;
            let tell = |error: &file::Error| told.push(damaged(entry, error));
            let thinned = File::open(self.folder.read(entry)?, table)
                .and_then(|file| thin(&file, table, tier, pending, tell));
            match thinned {
                Ok(pending) => pending.finish()?,
                Err(error) if is_damage(&error) => told.push(damaged(entry, &error)),
                Err(error) => return Err(error.into()),
            }
            self.folder.remove(entry)?;
        }
        self.used = self.own()?.iter().map(|entry| entry.bytes).sum();
        Ok(())
    }
}

/// The table of a thinned file, if it is thinned.
fn thinned(name: &str) -> Option<&'static Table> {
    if name == PROCESSES.name {
        return Some(&THINNED);
    }
    let others: [&Table; 3] = [&MACHINE, &CGROUPS, &WAITS];
    others.into_iter().find(|table| table.name == name)
}

fn is_damage(error: &file::Error) -> bool {
    !matches!(error, file::Error::Io(_) | file::Error::Parquet(_))
}

fn failed(error: &Error) -> Event {
    Event {
        event: "failed",
        detail: error_chain(error),
        ..Event::default()
    }
}

fn dropped(since: i64, until: i64) -> Event {
    Event {
        event: "dropped",
        since: Some(since),
        until: Some(until),
        detail: "the oldest made room: see --size and --leave".into(),
    }
}

/// Whether a part has the first walk of a row group.
fn begins(part: &Group) -> bool {
    let mut tables = part.tables();
    let machine = tables.find(|store| *store.table().name == *MACHINE.name);
    let whole = machine.map(|store| store.column(EVERYWHERE + place(&MACHINE, "whole")));
    matches!(whole, Some(Cells::Numbers(whole)) if whole.contains(&Some(1)))
}

fn damaged(entry: &Entry, error: &file::Error) -> Event {
    Event {
        event: "damaged",
        since: Some(entry.from * SECOND),
        until: Some(entry.to * SECOND),
        detail: format!("{}: {}", entry.path.display(), error_chain(error)),
    }
}

impl Place for Kept {
    type Error = Error;

    fn most_of_group(&self) -> usize {
        usize::try_from(self.bounds.size / GROUPS).unwrap_or(usize::MAX)
    }

    fn write(&mut self, job: &Job, told: &mut Vec<Event>) -> Result<(), Error> {
        match job {
            Job::Part(_) => self.write_open(job, told),
            Job::Group(group) => {
                self.write_open(job, told)?;
                let (from, to) = group.seconds();
                self.remove_open(|entry| {
                    let is_within = from <= entry.from && entry.to <= to;
                    is_within && (entry.from, entry.to) != (from, to)
                })?;
                // The row group is written.
                if let Err(error) = self.tidy(to, told) {
                    told.push(failed(&error));
                }
                Ok(())
            }
        }
    }
}
