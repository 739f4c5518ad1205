//! The sources, by their names.

use std::{fmt, str::FromStr};

/// The ways to read the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// A resident process that shares its snapshots ([`service`](crate::source::service)).
    Service,
    /// One BPF program that walks the tasks by the open-coded iterator (Linux 6.7 and later).
    Bpf,
    /// An `iter/task` BPF program (Linux 5.8 and later).
    BpfIter,
    /// The kernel's text, without privileges.
    Procfs,
}

impl SourceKind {
    /// The sources by which a process reads for itself, in the order in which they are tried. The service
    /// comes before them.
    pub const LOCAL: [Self; 3] = [Self::Bpf, Self::BpfIter, Self::Procfs];

    /// Whether its records hold no more than the kernel would show to this process. With the other sources,
    /// [`Reader::access`](crate::access::Reader::access) decides what may be shown.
    pub const fn is_guarded(self) -> bool {
        matches!(self, Self::Service | Self::Procfs)
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Bpf => "bpf",
            Self::BpfIter => "bpf-iter",
            Self::Procfs => "procfs",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name is not that of a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no source is called {0:?}; there are service, bpf, bpf-iter and procfs")]
pub struct UnknownSource(String);

impl FromStr for SourceKind {
    type Err = UnknownSource;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut known = [Self::Service].into_iter().chain(Self::LOCAL);
        let known = known.find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownSource(name.into()))
    }
}
