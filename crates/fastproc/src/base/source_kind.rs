//! The sources, by their names.

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

/// The name is not that of a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no source {name:?}; there are {known}")]
pub struct UnknownSource {
    pub(crate) name: String,
    pub(crate) known: &'static str,
}

/// Writes the sources of a type by their names, and reads these.
macro_rules! by_name {
    ($source:ident: $($variant:ident),+; $known:literal) => {
        impl std::fmt::Display for $source {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $source {
            type Err = $crate::UnknownSource;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let mut sources = [$(Self::$variant),+].into_iter();
                let unknown = || $crate::UnknownSource {
                    name: name.into(),
                    known: $known,
                };
                sources.find(|source| source.name() == name).ok_or_else(unknown)
            }
        }
    };
}
pub(crate) use by_name;

by_name!(SourceKind: Service, Bpf, BpfIter, Procfs; "service, bpf, bpf-iter and procfs");
