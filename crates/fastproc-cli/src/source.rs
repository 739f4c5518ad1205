//! `--source`, the same for every subcommand.

use clap::ValueEnum;
use fastproc::SourceKind;

/// Where the processes are read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// The first of the others that works here
    #[default]
    Auto,
    /// A service, started by fastproc serve --socket
    Service,
    /// A BPF program that walks the tasks (Linux 6.7 and later)
    Bpf,
    /// A BPF program that the kernel's task iterator calls (Linux 5.8 and later)
    BpfIter,
    /// The files of /proc, without privileges
    Procfs,
}

impl Source {
    /// What the library is told.
    pub const fn kind(self) -> Option<SourceKind> {
        match self {
            Self::Auto => None,
            Self::Service => Some(SourceKind::Service),
            Self::Bpf => Some(SourceKind::Bpf),
            Self::BpfIter => Some(SourceKind::BpfIter),
            Self::Procfs => Some(SourceKind::Procfs),
        }
    }
}
