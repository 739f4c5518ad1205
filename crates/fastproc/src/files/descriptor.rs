//! One descriptor from the kernel's text: readlink(2) and stat(2) of `/proc/PID/fd/N`, and `/proc/PID/fdinfo/N`.

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, Mode, OFlags, Stat, openat, readlinkat, statat},
    io::Errno,
};

use super::{
    groups::{Fields, Kind},
    object::layout::{DELETED, NO_TEXT, Record, STATED, WHOLE},
    snapshot::Device,
};
use crate::base::{frozen, whole_file::read_whole};

/// How often a descriptor is read that changes meanwhile.
const TRIES: u32 = 4;
const DELETED_SUFFIX: &[u8] = b" (deleted)";

/// A descriptor, and its name.
#[derive(Debug)]
pub(super) enum Seen {
    /// It is open. Without a name it has the state `NO_TEXT`.
    Open(Record, Vec<u8>),
    /// It is not, or the kernel does not show it, or it changed whenever it was read.
    Unknown,
}

/// Reads a descriptor. `descriptors` is the folder `fd` of the process's folder.
pub(super) fn read_descriptor(
    folder: &OwnedFd,
    descriptors: &OwnedFd,
    number: u32,
    fields: Fields,
    text: &mut Vec<u8>,
) -> Seen {
    let entry = number.to_string();
    for _ in 0..TRIES {
        let Some((mut record, name)) = read_link(descriptors, &entry, number) else {
            return Seen::Unknown;
        };
        if fields.contains(Fields::FILES)
            && read_fdinfo(folder, &entry, &mut record, text).is_none()
        {
            return Seen::Unknown;
        }
        let again = read_name(descriptors, &entry);
        if again.is_ok_and(|again| again.unwrap_or_default() == name) {
            return Seen::Open(record, name);
        }
    }
    Seen::Unknown
}

/// Reads the current directory, the root directory or the program of a process.
pub(super) fn read_other(folder: &OwnedFd, number: u32, entry: &str) -> Seen {
    match read_link(folder, entry, number) {
        Some((record, name)) => Seen::Open(record, name),
        None => Seen::Unknown,
    }
}

/// The links of a frozen machine lead nowhere.
fn follow() -> AtFlags {
    frozen::folder().map_or(AtFlags::empty(), |_| AtFlags::SYMLINK_NOFOLLOW)
}

/// The name of an open descriptor. `None`: it is a path that is too long for the kernel to show.
fn read_name(folder: &OwnedFd, entry: &str) -> Result<Option<Vec<u8>>, Errno> {
    match readlinkat(folder, entry, Vec::new()) {
        Ok(name) => Ok(Some(name.into_bytes())),
        Err(Errno::NAMETOOLONG) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Stands for a path that is not known.
const SOME_PATH: &[u8] = b"/";

/// What a descriptor is, for a count. Of objects without a path the name says it. `None`: it is not open or not shown.
pub(super) fn read_kind(descriptors: &OwnedFd, number: u32, follows: bool) -> Option<Kind> {
    let entry = &*number.to_string();
    let name = read_name(descriptors, entry).ok()?;
    let name = name.as_deref().unwrap_or(SOME_PATH);
    kind_of_object(name).or_else(|| {
        if !follows {
            return Some(Kind::Other);
        }
        match statat(descriptors, entry, follow()) {
            Ok(stat) => Some(kind(name, stat.st_mode)),
            Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => None,
            // It is open, on a file system that is dead.
            Err(_) => Some(Kind::Other),
        }
    })
}

fn read_link(folder: &OwnedFd, entry: &str, number: u32) -> Option<(Record, Vec<u8>)> {
    let name = read_name(folder, entry).ok()?;
    let stat = statat(folder, entry, follow()).ok()?;
    let shown = name.as_deref().unwrap_or(SOME_PATH);
    let device = |number| Device::from_stat(number).to_kernel();
    let mut record = Record {
        ino: stat.st_ino,
        size: stat.st_size as u64,
        fd: number,
        dev: device(stat.st_dev),
        rdev: device(stat.st_rdev),
        mode: stat.st_mode,
        kind: kind(shown, stat.st_mode).number(),
        state: (STATED | if name.is_some() { WHOLE } else { NO_TEXT }) as u8,
        ..Record::default()
    };
    let is_deleted = match &name {
        Some(name) => is_deleted(name, &stat),
        None => record.kind == Kind::File.number() && stat.st_nlink == 0,
    };
    if is_deleted {
        record.state |= DELETED as u8;
    }
    Some((record, name.unwrap_or_default()))
}

/// Adds the position and the flags.
fn read_fdinfo(
    folder: &OwnedFd,
    entry: &str,
    record: &mut Record,
    text: &mut Vec<u8>,
) -> Option<()> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let path = format!("fdinfo/{entry}");
    let file = openat(folder, path, flags, Mode::empty()).ok()?;
    read_whole(&file, text).ok()?;
    (record.pos, record.flags) = position_and_flags(text)?;
    Some(())
}

fn position_and_flags(text: &[u8]) -> Option<(u64, u32)> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let mut value = |name: &[u8]| {
        let line = lines.next()?.strip_prefix(name)?;
        Some(std::str::from_utf8(line).ok()?.trim())
    };
    // Some devices have positions from the upper half of the numbers.
    let position = value(b"pos:")?.parse::<i64>().ok()? as u64;
    let flags = u32::from_str_radix(value(b"flags:")?, 8).ok()?;
    Some((position, flags))
}

/// What a link with this name and mode leads to. Only objects without a path have a name that does not begin with a slash.
fn kind(name: &[u8], mode: u32) -> Kind {
    const S_IFMT: u32 = 0o170_000;
    let has_path = name.starts_with(b"/");
    if let Some(kind) = kind_of_object(name) {
        return kind;
    }
    match mode & S_IFMT {
        0o100_000 if !has_path => Kind::Namespace,
        0o100_000 => Kind::File,
        0o040_000 => Kind::Directory,
        0o020_000 => Kind::Character,
        0o060_000 => Kind::Block,
        0o010_000 => Kind::Fifo,
        0o140_000 => Kind::Bound,
        0o120_000 => Kind::Link,
        _ => Kind::Other,
    }
}

/// The same of an object without a path, if its name alone says it.
fn kind_of_object(name: &[u8]) -> Option<Kind> {
    const NAMES: [(&[u8], Kind); 4] = [
        (b"socket:", Kind::Socket),
        (b"pipe:", Kind::Pipe),
        (b"anon_inode:[pidfd]", Kind::Pidfd),
        (b"anon_inode:", Kind::Anonymous),
    ];
    let found = NAMES.iter().find(|(start, _)| name.starts_with(start));
    found.map(|&(_, kind)| kind)
}

/// Whether a name ends as one that was removed, and is not that of a file that is there under this name.
fn is_deleted(name: &[u8], stat: &Stat) -> bool {
    name.starts_with(b"/")
        && name.ends_with(DELETED_SUFFIX)
        && (stat.st_nlink == 0 || !is_there(name, stat))
}

fn is_there(name: &[u8], stat: &Stat) -> bool {
    let found = statat(rustix::fs::CWD, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| (found.st_dev, found.st_ino) == (stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fdinfo_has_position_and_flags() {
        let text = b"pos:\t4096\nflags:\t02100002\nmnt_id:\t29\nino:\t5\n";
        assert_eq!(position_and_flags(text), Some((4096, 0o2_100_002)));
        let negative = b"pos:\t-1\nflags:\t00\n";
        assert_eq!(position_and_flags(negative), Some((u64::MAX, 0)));
        for end in 0..14 {
            assert_eq!(position_and_flags(&text[..end]), None);
        }
    }

    #[test]
    fn a_kind_is_told_by_name_and_mode() {
        let cases: [(&[u8], u32, Kind); 12] = [
            (b"/a", 0o100_644, Kind::File),
            (b"/socket:[1]", 0o100_644, Kind::File),
            (b"/a", 0o040_755, Kind::Directory),
            (b"/dev/null", 0o020_666, Kind::Character),
            (b"/a", 0o010_600, Kind::Fifo),
            (b"pipe:[1]", 0o010_600, Kind::Pipe),
            (b"socket:[1]", 0o140_777, Kind::Socket),
            (b"/run/a", 0o140_777, Kind::Bound),
            (b"anon_inode:[eventfd]", 0o600, Kind::Anonymous),
            (b"anon_inode:[pidfd]", 0o600, Kind::Pidfd),
            (b"net:[4026531840]", 0o100_444, Kind::Namespace),
            (b"/a", 0o120_777, Kind::Link),
        ];
        for (name, mode, expected) in cases {
            assert_eq!(kind(name, mode), expected, "{}", name.escape_ascii());
        }
    }
}
