//! What can go wrong, with the cause and what to do about it.

use std::io;

use thiserror::Error;

use crate::base::error::parse::ParseError;

/// Why counters cannot be read, or not by BPF.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller requested only the kernel's files.
    #[error("BPF was not requested")]
    NotAsked,

    /// BPF cannot be used.
    #[error(transparent)]
    Bpf(#[from] crate::base::error::Error),

    /// A structure that leads to the others was not found.
    #[error("{what} cannot be found on this kernel")]
    NotFound {
        /// The structure.
        what: &'static str,
    },

    /// A file of the kernel could not be read. The error is the kernel's own.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: &'static str,
        /// What the kernel answered.
        #[source]
        source: io::Error,
    },

    /// A file of the kernel has an unknown form.
    #[error(transparent)]
    Parse(#[from] ParseError),
}

impl Error {
    /// The kernel's error number, where there is one.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Bpf(
                crate::base::error::Error::Map { source, .. }
                | crate::base::error::Error::Run(source),
            )
            | Self::Read { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}
