//! Errors of reading cgroups.

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::base::error;

/// Why cgroups cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The version 2 hierarchy is not mounted here.
    #[error(
        "the cgroup hierarchy of version 2 is not mounted here; mount it (mount -t cgroup2 none /sys/fs/cgroup)"
    )]
    NotMounted,

    /// A file could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },

    /// The service reads another hierarchy than the one that was chosen.
    #[error(
        "a service shows the cgroups of its own /sys/fs/cgroup and /proc, and others were chosen; use the source files"
    )]
    OtherHierarchy,

    /// The BPF program would show cgroups whose files this process may not read.
    #[error(
        "CAP_DAC_READ_SEARCH is missing, so this user may not read what the BPF program shows; run as root, or use the \
         source files"
    )]
    NotPermitted,

    /// The kernel lacks types that the BPF program needs.
    #[error(
        "this version does not know how this kernel stores cgroups: {missing} is missing; use the source files"
    )]
    UnknownKernel {
        /// The missing type or member.
        missing: &'static str,
    },

    /// The array of cgroups grew too often while it was filled.
    #[error(
        "there are more than {capacity} {what}, and their number grew with each attempt; try again"
    )]
    Overflow {
        /// The number of elements that fit.
        capacity: u32,
        /// The kind of elements.
        what: &'static str,
    },

    /// There are more cgroups, or longer paths of them, than this reader was told to take, or reading them took too long.
    #[error("there are too many cgroups, or their paths are too long, for this reader")]
    TooMany,

    /// The program could not be loaded or run.
    #[error(transparent)]
    Bpf(#[from] error::Error),
}

impl Error {
    /// Whether opening may succeed later: there was not enough memory, or no descriptor was free.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Bpf(error) => error.is_temporary(),
            _ => false,
        }
    }
}
