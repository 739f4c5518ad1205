//! Why there is no answer.

use std::{io, path::PathBuf};

use fastproc_columns::number::write_local_instant;

use crate::{file, folder};

/// Why a history does not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder cannot be read.
    #[error("the history cannot be read")]
    Folder(#[from] folder::Error),
    /// The folder holds no history.
    #[error(
        "{} holds no history; fastproc record writes one, and --history names another folder", .0.display()
    )]
    Empty(PathBuf),
    /// The folder holds several hosts, and none is chosen.
    #[error("the history is of several hosts; choose one with --host: {}", .0.join(", "))]
    Hosts(Vec<String>),
    /// It does not hold this host.
    #[error("the history has no host {asked}; it has {}", .has.join(", "))]
    NoHost {
        /// What was asked for.
        asked: String,
        /// What there is.
        has: Vec<String>,
    },
    /// Nothing was recorded at this time.
    #[error("nothing {} at {}{}", if *.damaged { "intact was found" } else { "was recorded" }, shown(*.asked), around(*.before, *.after))]
    Gap {
        /// The time, in microseconds since 1970.
        asked: i64,
        /// The last walk before it.
        before: Option<i64>,
        /// The first walk after it.
        after: Option<i64>,
        /// Whether files of that time are damaged.
        damaged: bool,
    },
    /// The machine was booted in between.
    #[error(
        "the machine was booted between {} and {}: ask for the time before and the time after that", shown(*.0), shown(*.1)
    )]
    Booted(i64, i64),
    /// There is only one walk in the window.
    #[error("a window needs two walks; only that of {} was recorded", shown(*.0))]
    OneWalk(i64),
    /// The window ends before it begins.
    #[error("the time of --to is not later than that of --from")]
    Backwards,
    /// What the answer needs is damaged.
    #[error("{}: what was recorded at that time is damaged; fastproc history check lists all that is", .path.display())]
    Damaged {
        /// The file, below the folder.
        path: PathBuf,
        /// What is wrong with it.
        source: file::Error,
    },
    /// Nothing is there to be saved.
    #[error("nothing was recorded in that time, so nothing is saved")]
    Nothing,
    /// A name that a folder cannot have.
    #[error("'{}' cannot name what is saved: give letters, digits, dots, hyphens and underscores", .0.escape_debug())]
    Name(String),
    /// There is one of this name.
    #[error("{} exists: give another name", .0.display())]
    Saved(PathBuf),
    /// It cannot be saved.
    #[error("cannot write {}", .path.display())]
    Save {
        /// What cannot be written.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A row says what cannot be.
    #[error("what was recorded at {} lacks a value that every walk has; only sealed hours of two recorders may be put together", shown(*.0))]
    Incomplete(i64),
}

/// A time in the reader's time zone, from microseconds since 1970.
pub fn shown(time: i64) -> String {
    let mut text = Vec::new();
    write_local_instant(time, "%Y-%m-%d %H:%M:%S%.f", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn around(before: Option<i64>, after: Option<i64>) -> String {
    let before = before.map(|time| format!("the last record before is of {}", shown(time)));
    let after = after.map(|time| format!("the next is of {}", shown(time)));
    let late = after
        .is_none()
        .then(|| "what came since may not be written yet".into());
    let known: Vec<_> = before.into_iter().chain(after).chain(late).collect();
    let text = known.join(", ");
    if text.is_empty() {
        text
    } else {
        format!("; {text}")
    }
}
