//! The promises of a test process, and whether `/proc` confirms them.

use std::{
    fmt, fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
};

/// One promise about a process, in the terms of proc(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expect {
    /// The letter of the state.
    State(char),
    /// The name as the kernel keeps it, without the escapes of `status`.
    Comm(&'static [u8]),
    /// A field of `status`, with runs of blanks as one space.
    Status(&'static str, &'static str),
    /// A field of `status` starts with a number that is at least this.
    StatusAtLeast(&'static str, u64),
    /// The number of words in a field of `status`: supplementary groups, pid namespaces.
    Words(&'static str, usize),
    /// The number of CPUs on which it may run.
    Cpus(u32),
    /// A field of `stat`, by its number in proc(5), which is 4 (`ppid`) or more.
    Stat(usize, i64),
    /// A field of `stat` is at least this.
    StatAtLeast(usize, i64),
    /// A field of `stat` is its own pid: it leads the group (5) or the session (6).
    StatOwnPid(usize),
    /// A file beside `stat` contains exactly this, except blanks at its ends.
    Text(&'static str, &'static str),
    /// It is in another namespace of this kind than the caller.
    OtherNamespace(&'static str),
    /// `exe` points to a deleted file.
    ExeDeleted,
    /// `cmdline` is at least this long.
    CmdlineAtLeast(usize),
    /// `cmdline` starts with this.
    CmdlineStarts(&'static [u8]),
}

/// A promise that `/proc` does not keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expect}, but found {found}")]
pub struct Mismatch {
    /// The promise.
    pub expect: Expect,
    /// What `/proc` shows instead.
    pub found: String,
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(letter) => write!(f, "state {letter}"),
            Self::Comm(name) => write!(f, "name \"{}\"", name.escape_ascii()),
            Self::Status(key, value) => write!(f, "{key}: {value}"),
            Self::StatusAtLeast(key, least) => write!(f, "{key}: {least} or more"),
            Self::Words(key, count) => write!(f, "{count} words in {key}"),
            Self::Cpus(count) => write!(f, "{count} CPUs in Cpus_allowed"),
            Self::Stat(field, value) => write!(f, "field {field} of stat is {value}"),
            Self::StatAtLeast(field, least) => {
                write!(f, "field {field} of stat is {least} or more")
            }
            Self::StatOwnPid(field) => write!(f, "field {field} of stat is its pid"),
            Self::Text(file, text) => write!(f, "{file} says {text}"),
            Self::OtherNamespace(kind) => write!(f, "another {kind} namespace"),
            Self::ExeDeleted => write!(f, "a deleted executable"),
            Self::CmdlineAtLeast(len) => write!(f, "a command line of {len} bytes or more"),
            Self::CmdlineStarts(start) => {
                write!(f, "a command line that starts \"{}\"", start.escape_ascii())
            }
        }
    }
}

impl Expect {
    /// Compares the promise with what `/proc` shows for `pid` now.
    pub fn check(&self, pid: u32) -> Result<(), Mismatch> {
        let found = match *self {
            Self::State(letter) => {
                Stat::read(pid).map(|stat| (stat.state == letter, stat.state.to_string()))
            }
            Self::Comm(name) => Stat::read(pid).map(|stat| {
                (
                    stat.comm == name,
                    format!("\"{}\"", stat.comm.escape_ascii()),
                )
            }),
            Self::Status(key, value) => status(pid, key).map(|found| (found == value, found)),
            Self::StatusAtLeast(key, least) => status(pid, key).map(|found| {
                let digits = found.split(|c: char| !c.is_ascii_digit()).next();
                let number = digits.and_then(|digits| digits.parse().ok());
                (number.is_some_and(|number: u64| number >= least), found)
            }),
            Self::Words(key, count) => {
                status(pid, key).map(|found| (found.split_whitespace().count() == count, found))
            }
            Self::Cpus(count) => status(pid, "Cpus_allowed").map(|found| {
                let bits: u32 = found
                    .chars()
                    .filter_map(|digit| digit.to_digit(16))
                    .map(u32::count_ones)
                    .sum();
                (bits == count, found)
            }),
            Self::Stat(field, value) => Stat::read(pid)
                .and_then(|stat| stat.field(field))
                .map(|found| (found == value, found.to_string())),
            Self::StatAtLeast(field, least) => Stat::read(pid)
                .and_then(|stat| stat.field(field))
                .map(|found| (found >= least, found.to_string())),
            Self::StatOwnPid(field) => Stat::read(pid)
                .and_then(|stat| stat.field(field))
                .map(|found| (found == i64::from(pid), found.to_string())),
            Self::Text(file, text) => fs::read_to_string(format!("/proc/{pid}/{file}"))
                .map_err(|error| error.to_string())
                .map(|found| (found.trim() == text, found.trim().to_owned())),
            Self::OtherNamespace(kind) => namespace(&pid.to_string(), kind).and_then(|theirs| {
                let ours = namespace("self", kind)?;
                Ok((theirs != ours, theirs.to_string()))
            }),
            Self::ExeDeleted => fs::read_link(format!("/proc/{pid}/exe"))
                .map_err(|error| error.to_string())
                .map(|exe| {
                    (
                        exe.as_os_str().as_bytes().ends_with(b" (deleted)"),
                        exe.display().to_string(),
                    )
                }),
            Self::CmdlineAtLeast(least) => {
                cmdline(pid).map(|found| (found.len() >= least, format!("{} bytes", found.len())))
            }
            Self::CmdlineStarts(start) => cmdline(pid).map(|found| {
                (
                    found.starts_with(start),
                    found[..found.len().min(80)].escape_ascii().to_string(),
                )
            }),
        };
        match found {
            Ok((true, _)) => Ok(()),
            Ok((false, found)) | Err(found) => Err(Mismatch {
                expect: *self,
                found,
            }),
        }
    }
}

/// `/proc/PID/stat`, as far as the promises need it.
pub(crate) struct Stat {
    pub comm: Vec<u8>,
    pub state: char,
    /// From field 4 on.
    fields: Vec<i64>,
}

impl Stat {
    pub fn read(pid: u32) -> Result<Self, String> {
        let text = fs::read(format!("/proc/{pid}/stat")).map_err(|error| error.to_string())?;
        Self::parse(&text)
            .ok_or_else(|| format!("a stat that cannot be read: {}", text.escape_ascii()))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|&byte| byte == b'(')?;
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let comm = text.get(open + 1..close)?.to_vec();
        let rest = std::str::from_utf8(text.get(close + 2..)?).ok()?;
        let mut words = rest.split_ascii_whitespace();
        let state = words.next()?.chars().next()?;
        // startcode and similar fields are unsigned, the others fit: reinterpreted, not refused.
        let fields = words
            .map(|word| {
                word.parse::<i64>()
                    .ok()
                    .or_else(|| word.parse::<u64>().ok().map(|value| value as i64))
            })
            .collect::<Option<_>>()?;
        Some(Self {
            comm,
            state,
            fields,
        })
    }

    /// A field by its number in proc(5).
    pub fn field(&self, number: usize) -> Result<i64, String> {
        let index = number.checked_sub(4).ok_or("no such field")?;
        self.fields
            .get(index)
            .copied()
            .ok_or_else(|| "no such field".to_owned())
    }

    /// Field 22: together with the pid, it identifies a process uniquely.
    pub fn starttime(&self) -> u64 {
        self.field(22).map_or(0, |ticks| ticks as u64)
    }
}

fn status(pid: u32, key: &str) -> Result<String, String> {
    let text = fs::read(format!("/proc/{pid}/status")).map_err(|error| error.to_string())?;
    text.split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(key.as_bytes())?.strip_prefix(b":"))
        .map(|value| {
            let value = String::from_utf8_lossy(value);
            value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
        })
        .ok_or_else(|| format!("no field {key} in status"))
}

fn cmdline(pid: u32) -> Result<Vec<u8>, String> {
    fs::read(format!("/proc/{pid}/cmdline")).map_err(|error| error.to_string())
}

fn namespace(pid: &str, kind: &str) -> Result<u64, String> {
    fs::metadata(format!("/proc/{pid}/ns/{kind}"))
        .map(|meta| meta.ino())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_a_name_that_looks_like_fields() {
        let stat = Stat::parse(b"7 (a) R 1 (\n) S 3 4 18446744073709551615\n").unwrap();
        assert_eq!(stat.comm, b"a) R 1 (\n");
        assert_eq!(stat.state, 'S');
        assert_eq!(stat.field(4), Ok(3));
        assert_eq!(stat.field(6), Ok(-1));
        assert!(stat.field(7).is_err());
        assert!(stat.field(3).is_err());
    }

    #[test]
    fn a_broken_promise_is_told() {
        let pid = std::process::id();
        assert_eq!(
            Expect::Status("Tgid", "0").check(pid).unwrap_err().found,
            pid.to_string()
        );
        assert!(Expect::OtherNamespace("pid").check(pid).is_err());
        assert!(Expect::Stat(3, 0).check(pid).is_err());
        assert!(Expect::State('Z').check(pid).is_err());
        assert!(Expect::StatusAtLeast("NoSuchField", 0).check(pid).is_err());
        Expect::Status("Tgid", &*pid.to_string().leak())
            .check(pid)
            .unwrap();
    }
}
