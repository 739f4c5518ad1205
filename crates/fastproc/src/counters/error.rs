//! What can go wrong, why, and what to do about it.

use std::io;

use thiserror::Error;

use crate::text::ParseError;

/// Why counters cannot be had, or not by BPF.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for the kernel's files only.
    #[error("BPF was not asked for")]
    NotAsked,

    /// The running kernel does not describe its structures.
    #[error(
        "the kernel's types cannot be read ({reason}), so its counters cannot be found by name; \
         use a kernel built with CONFIG_DEBUG_INFO_BTF=y"
    )]
    NoBtf {
        /// What libbpf said.
        reason: String,
    },

    /// The kernel, or a missing capability, refused the programs.
    #[error(
        "the kernel refused the programs ({reason}); run as root, or grant the capabilities: \
         setcap cap_bpf,cap_perfmon+ep on the program; Linux 5.19 is the oldest that can load them"
    )]
    Load {
        /// The kernel's answer.
        reason: String,
        /// The end of what libbpf and the verifier said.
        log: String,
    },

    /// The object and the library disagree.
    #[error(
        "the BPF object and the library disagree about {what}: build both from the same sources"
    )]
    Layout {
        /// The structure, map or constant.
        what: String,
    },

    /// A structure that everything else is found by is not where it should be.
    #[error("{what} cannot be found on this kernel")]
    NotFound {
        /// The structure.
        what: &'static str,
    },

    /// A map could not be mapped.
    #[error("mapping {map} failed")]
    Map {
        /// Its name.
        map: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },

    /// A program could not be run.
    #[error("running the program failed")]
    Run(#[source] io::Error),

    /// A file of the kernel could not be read. The error is the kernel's own.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },

    /// A file of the kernel is not as this library knows it.
    #[error(transparent)]
    Parse(#[from] ParseError),
}

impl Error {
    /// The kernel's error number, where there is one.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Map { source, .. } | Self::Run(source) | Self::Read { source, .. } => {
                source.raw_os_error()
            }
            _ => None,
        }
    }
}
