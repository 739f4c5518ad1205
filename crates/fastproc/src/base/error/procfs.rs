//! Why `/proc` could not be read.

use std::io;

use rustix::io::Errno;

use super::parse::{FormatError, ParseError};

/// Why `/proc` could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder could not be opened or listed.
    #[error("cannot list {path}")]
    List {
        /// The folder.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// A file could not be read although its process exists.
    #[error("cannot read {path}")]
    Read {
        /// The file, below the root.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// A file holds what this library does not understand.
    #[error("process {pid}")]
    Parse {
        /// The process.
        pid: u32,
        /// Where it differs, and what was expected.
        source: ParseError,
    },
    /// The lines of status could not be learned.
    #[error("cannot learn the format of /proc/PID/status on this kernel")]
    Format(#[from] FormatError),
}

impl Error {
    /// What the kernel answered, if it is the cause.
    pub(crate) fn io(&self) -> Option<&io::Error> {
        match self {
            Self::List { source, .. }
            | Self::Read { source, .. }
            | Self::Format(FormatError::Read { source, .. }) => Some(source),
            Self::Parse { .. } | Self::Format(FormatError::Parse(_)) => None,
        }
    }

    /// Whether more descriptors would have helped.
    pub(crate) fn is_want_of_descriptors(&self) -> bool {
        let errno = self.io().and_then(Errno::from_io_error);
        matches!(errno, Some(Errno::MFILE | Errno::NFILE))
    }
}
