//! Errors of reading open files.

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::base::error;

/// Why open files cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },

    /// The BPF program would show files of processes that the kernel would not show to this process.
    #[error(
        "the kernel would not show the files of all processes to this user, so the BPF program is not used; run as root, or use \
         the source procfs"
    )]
    NotPermitted,

    /// The kernel lacks types that the BPF program needs.
    #[error(
        "this version does not know how this kernel stores open files: {missing} is missing; use the source procfs"
    )]
    UnknownKernel {
        /// The missing type or member.
        missing: &'static str,
    },

    /// The arrays grew too often while they were filled.
    #[error(
        "there are more than {capacity} open files, and their number grew with each attempt; try again"
    )]
    Overflow {
        /// The number of records that fit.
        capacity: u32,
    },

    /// There are more open files than the reader may have read.
    #[error("there are too many open files; read those of single processes")]
    TooMany,

    /// Reading takes longer than the reader may have it take, be it because of the files of others.
    #[error("reading all open files takes too long; read those of single processes")]
    TooLong,

    /// The service reads another `/proc`.
    #[error(
        "the service's own /proc is not the one that this process was told to read; use another source"
    )]
    OtherProc,

    /// The program could not be loaded or run.
    #[error(transparent)]
    Bpf(#[from] error::Error),
}
