//! The options of the command line.

use std::{path::PathBuf, time::Duration};

use fastproc::SourceKind;

/// A place in a history.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its folder.
    pub folder: PathBuf,
    /// The host, if it has several.
    pub host: Option<String>,
    /// The time, in microseconds since 1970; by default the last that was recorded.
    pub time: Option<i64>,
}

/// The choices on the command line. `None` or empty: the value of the settings file, or the default.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Options {
    /// The refresh interval.
    pub interval: Option<Duration>,
    /// Columns, by their names.
    pub columns: Vec<String>,
    /// The order, as in `ps --sort`.
    pub sort: Option<String>,
    /// Which processes to show, as in `ps --filter`.
    pub filter: Option<String>,
    /// What is highlighted in names, and what the key n searches for; and the filter for it.
    pub search: (String, String),
    /// Whether to show each thread on its own row.
    pub threads: bool,
    /// Whether to show children below their parents.
    pub tree: bool,
    /// Cgroups instead of processes.
    pub cgroups: bool,
    /// The only source to use.
    pub source: Option<SourceKind>,
    /// The settings file, if there is one.
    pub settings: Option<PathBuf>,
    /// Whether that is the default path: then an unreadable file is not an error.
    pub settings_by_default: bool,
    /// Show the first snapshot at once, before shares and exits are known.
    pub shows_first: bool,
    /// Show this of a history instead of the machine now.
    pub past: Option<Place>,
    /// Exit after this many refreshes.
    pub count: Option<u64>,
}

impl Options {
    /// Whether a choice concerns the table of processes.
    pub(crate) fn is_about_processes(&self) -> bool {
        let has_text = self.sort.is_some() || self.filter.is_some() || !self.columns.is_empty();
        has_text || self.threads || self.tree
    }
}
