//! Why a text of the kernel could not be read.

use std::io;

use thiserror::Error;

/// A text that differs from what the kernel writes, and the place where it does.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}, line {line}, byte {byte}: expected {expected}")]
#[non_exhaustive]
pub struct ParseError {
    /// The file, as in `/proc/PID/stat`.
    pub file: &'static str,
    /// Line, counted from 1.
    pub line: usize,
    /// Byte in that line, counted from 1.
    pub byte: usize,
    /// What was expected there.
    pub expected: &'static str,
}

/// Why the format could not be learned.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The process's own status could not be read.
    #[error("cannot read {path}: is /proc mounted?")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a status file.
    #[error(transparent)]
    Parse(#[from] ParseError),
}
