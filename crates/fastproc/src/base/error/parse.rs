//! Why a text of the kernel could not be read.

use std::io;

use thiserror::Error;

/// A text that is not what the kernel writes, and where it ceases to be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}, line {line}, byte {byte}: expected {expected}")]
pub struct ParseError {
    /// The file, as in `/proc/PID/stat`.
    pub file: &'static str,
    /// Line, counted from 1.
    pub line: usize,
    /// Byte in that line, counted from 1.
    pub byte: usize,
    /// What should stand there.
    pub expected: &'static str,
}

/// Why the format could not be learned.
#[derive(Debug, Error)]
pub enum FormatError {
    /// The process's own status could not be read.
    #[error("cannot read {path}: is /proc mounted?")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// It is no status.
    #[error(transparent)]
    Parse(#[from] ParseError),
}
