//! The errors of the screen and of recordings.

use std::{io, path::PathBuf};

/// Why the screen could not be shown, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The processes cannot be read.
    #[error(transparent)]
    Collect(#[from] fastproc::Error),
    /// The machine's counters cannot be read.
    #[error("cannot read the machine's counters")]
    Counters(#[from] fastproc::counters::Error),
    /// The cgroups cannot be read.
    #[error(transparent)]
    Cgroups(#[from] fastproc::cgroups::Error),
    /// Standard input or output is not a terminal.
    #[error(
        "standard input and output must be a terminal; use --once to write one table, or --batch to write many"
    )]
    NoTerminal,
    /// The terminal cannot move its cursor.
    #[error("the terminal '{0}' (TERM) cannot move its cursor; use --once to write one table")]
    DumbTerminal(String),
    /// The terminal failed.
    #[error("the terminal failed")]
    Terminal(#[source] io::Error),
    /// The settings are invalid.
    #[error("cannot read the settings in {}", .path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A recording cannot be read.
    #[error("cannot read the recording {}", .path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: RecordingError,
    },
    /// A recording cannot be read any further.
    #[error("cannot read the recording")]
    Replay(#[from] RecordingError),
    /// A recording cannot be written.
    #[error("cannot write the recording {}", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A field, filter or order is invalid.
    #[error(transparent)]
    Choice(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not a recording.
    #[error("it is not a recording made by fastproc top")]
    NotARecording,
    /// It has no snapshot.
    #[error("it contains no snapshot")]
    Empty,
    /// It was made by a later version.
    #[error("its format is version {0}, and this program knows version 1; use a newer one")]
    Version(u32),
    /// It was made by a version whose records are others.
    #[error(
        "its records are those of another version of fastproc; open it with the version that made it"
    )]
    Layout,
    /// It is damaged.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}
