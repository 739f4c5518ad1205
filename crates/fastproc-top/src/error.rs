//! What can go wrong.

use std::{io, path::PathBuf};

use crate::record;

/// Why the screen could not be shown, or not any longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The processes cannot be read.
    #[error(transparent)]
    Collect(#[from] fastproc::Error),
    /// The machine's counters cannot be read.
    #[error("cannot read the machine's counters")]
    Counters(#[from] fastproc::counters::Error),
    /// Standard input or output is no terminal.
    #[error(
        "standard input and output must be a terminal; --once writes a single screen, and fastproc ps --interval many"
    )]
    NoTerminal,
    /// The terminal cannot move its cursor.
    #[error("the terminal '{0}' (TERM) cannot move its cursor; --once writes a single screen")]
    DumbTerminal(String),
    /// The terminal failed.
    #[error("the terminal failed")]
    Terminal(#[source] io::Error),
    /// The settings are wrong.
    #[error("cannot read the settings in {}", .path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A recording cannot be read.
    #[error("cannot read the recording {}", .path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: record::Error,
    },
    /// A recording cannot be read any further.
    #[error("cannot read the recording")]
    Replay(#[from] record::Error),
    /// A recording cannot be written.
    #[error("cannot write the recording {}", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A field, filter or order is wrong.
    #[error(transparent)]
    Choice(#[from] Box<dyn std::error::Error + Send + Sync>),
}
