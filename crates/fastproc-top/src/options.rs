//! What is asked for on the command line.

use std::{path::PathBuf, time::Duration};

use fastproc::SourceKind;

/// What to show, and how. What is `None` or empty comes from the settings file, or is the default.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The time between two looks.
    pub interval: Option<Duration>,
    /// Columns, by their names.
    pub columns: Vec<String>,
    /// What to sort by, as for `ps --sort`.
    pub sort: Option<String>,
    /// Which processes to show, as for `ps --filter`.
    pub filter: Option<String>,
    /// Every thread on a row of its own.
    pub threads: bool,
    /// Children below their parents.
    pub tree: bool,
    /// The only source to use.
    pub source: Option<SourceKind>,
    /// The settings file; `None`: there is none.
    pub settings: Option<PathBuf>,
    /// Whether that is where they are by default: then it is no error that it may not be read.
    pub settings_by_default: bool,
    /// Write what is looked at into this file, which must not be there.
    pub record: Option<PathBuf>,
    /// Bytes that this file may have.
    pub record_limit: u64,
    /// Show this recording instead of the machine.
    pub replay: Option<PathBuf>,
    /// Stop after so many looks.
    pub count: Option<u64>,
}
