//! What the program could not read comes from the kernel's text: descriptors that always changed, names of unknown forms, and what
//! stat(2) shows otherwise.

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, openat},
};

use super::{
    descriptor::{Seen, read_descriptor, read_other},
    groups::{Fields, Kind},
    name,
    object::layout::{CWD, DELETED, NO_TEXT, PROGRAM, ROOT, Record, STATED, TORN},
    tables::{Names, Tables},
    trusted::is_trusted,
};
use crate::base::proc_root;

/// The most bytes of names that are kept of the text: more are not known.
const MOST_NAMES: usize = 16 << 20;

/// Whether the text must tell something of this record.
fn wants(record: &Record, fields: Fields) -> bool {
    let is_torn = u32::from(record.state) & TORN != 0;
    let has_name = [Kind::Socket, Kind::Pipe]
        .map(Kind::number)
        .contains(&record.kind);
    let lacks_name = fields.contains(Fields::PATHS) && !has_name && name::is_missing(record);
    let is_stated = u32::from(record.state) & STATED != 0 || is_trusted(record.magic);
    is_torn || lacks_name || fields.contains(Fields::STAT) && !is_stated
}

/// Completes the records of a walk. Returns the completed ones, and their places.
pub(super) fn complete(
    tables: Tables<'_>,
    fields: Fields,
    names: &mut Names,
) -> Vec<(usize, Record)> {
    let mut found = Vec::new();
    if !fields.intersects(Fields::FILES | Fields::SOCKETS) {
        return found;
    }
    let mut text = Vec::new();
    let mut room = MOST_NAMES;
    for process in tables.processes {
        let first = process.first as usize;
        let records = first..first + process.records as usize;
        let mut wanted = records
            .filter(|&at| wants(&tables.records[at], fields))
            .peekable();
        let folders = wanted.peek().and_then(|_| Folders::open(process.tgid));
        let Some(folders) = folders else {
            continue;
        };
        for at in wanted {
            let record = &tables.records[at];
            let Seen::Open(seen, name) = folders.read(record.fd, fields, &mut text) else {
                continue;
            };
            let has_name = u32::from(seen.state) & NO_TEXT == 0;
            let Some(new) = completed(record, seen, || is_named(record, tables, &name)) else {
                continue;
            };
            if has_name && fields.contains(Fields::PATHS) && room >= name.len() {
                room -= name.len();
                names.insert(at as u32, name.into());
            }
            found.push((at, new));
        }
    }
    found
}

/// The record with what the text says. `None`: another file has this number now.
fn completed(record: &Record, seen: Record, is_named: impl Fn() -> bool) -> Option<Record> {
    if u32::from(record.state) & TORN != 0 {
        return Some(seen);
    }
    if (seen.kind, seen.mode) != (record.kind, record.mode) || !is_named() {
        return None;
    }
    Some(Record {
        dev: seen.dev,
        ino: seen.ino,
        size: seen.size,
        state: record.state & !(NO_TEXT as u8)
            | STATED as u8
            | seen.state & (DELETED | NO_TEXT) as u8,
        ..*record
    })
}

/// Whether the text has the name that the program read, if it read one.
fn is_named(record: &Record, tables: Tables<'_>, name: &[u8]) -> bool {
    if record.text_len == 0 || name::is_missing(record) {
        return true;
    }
    let start = record.text as usize;
    let text = tables.texts.get(start..start + record.text_len as usize);
    let mut known = Vec::new();
    name::write(record, text.unwrap_or_default(), &mut known);
    known == name
}

/// The folders of a process.
struct Folders {
    process: OwnedFd,
    descriptors: OwnedFd,
}

impl Folders {
    fn open(pid: u32) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = proc_root::path(&format!("/proc/{pid}")).into_owned();
        let process = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let descriptors = openat(&process, "fd", flags, Mode::empty()).ok()?;
        Some(Self {
            process,
            descriptors,
        })
    }

    fn read(&self, number: u32, fields: Fields, text: &mut Vec<u8>) -> Seen {
        let other = match number {
            CWD => "cwd",
            ROOT => "root",
            PROGRAM => "exe",
            _ => {
                return read_descriptor(
                    &self.process,
                    &self.descriptors,
                    number,
                    fields | Fields::FILES,
                    text,
                );
            }
        };
        read_other(&self.process, number, other)
    }
}
