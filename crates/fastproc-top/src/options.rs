//! The options of the command line.

use std::{path::PathBuf, time::Duration};

use fastproc::SourceKind;

/// What to show, and how. `None` or empty: the value of the settings file, or the default.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Options {
    /// The refresh interval.
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
    /// Cgroups instead of processes.
    pub cgroups: bool,
    /// The only source to use.
    pub source: Option<SourceKind>,
    /// The settings file, if there is one.
    pub settings: Option<PathBuf>,
    /// Whether that is the default path: then an unreadable file is not an error.
    pub settings_by_default: bool,
    /// Record into this file, which must not exist.
    pub record: Option<PathBuf>,
    /// The largest size of this file, in bytes.
    pub record_limit: u64,
    /// Show this recording instead of the machine.
    pub replay: Option<PathBuf>,
    /// Exit after this many refreshes.
    pub count: Option<u64>,
}
