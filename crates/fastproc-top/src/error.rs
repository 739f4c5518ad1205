//! The errors of the screen.

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
    /// What is kept in memory has no cgroups.
    #[error("the last minutes are kept in memory, without cgroups; fastproc record keeps them")]
    NoCgroups,
    /// The history does not answer.
    #[error(transparent)]
    Past(#[from] fastproc_history::read::Error),
    /// A field, filter or order is invalid.
    #[error(transparent)]
    Choice(#[from] Box<dyn std::error::Error + Send + Sync>),
}
