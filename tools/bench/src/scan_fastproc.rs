//! The library's ways to read every process.

use fastproc::{Collector, Fields, SourceKind};

use super::measure::Failure;

/// A way: a source and its fields.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Name of the case.
    pub case: &'static str,
    source: SourceKind,
    fields: Fields,
    /// Which idle processes run for a moment before each snapshot: records of the others may be kept.
    pub ran: Ran,
    /// Whether no records are kept, so that all are read again.
    reads_all: bool,
}

/// The idle processes that run between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// No process.
    None,
    /// The same tenth each time.
    Tenth,
    /// All processes.
    All,
}

impl Ran {
    /// One in this many of them runs. `None`: none does.
    pub fn one_in(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Tenth => Some(10),
            Self::All => Some(1),
        }
    }
}

impl Way {
    /// Whether it is measured if no case is named.
    pub fn is_usual(&self) -> bool {
        !self.fields.is_empty() && !self.reads_all
    }
}

/// All ways.
pub const WAYS: [Way; 13] = [
    Way {
        case: "bpf-full",
        source: SourceKind::Bpf,
        fields: Fields::THREE_FILES,
        ran: Ran::None,
        reads_all: false,
    },
    Way {
        case: "bpf-full-tenth-ran",
        source: SourceKind::Bpf,
        fields: Fields::THREE_FILES,
        ran: Ran::Tenth,
        reads_all: false,
    },
    Way {
        case: "bpf-full-all-ran",
        source: SourceKind::Bpf,
        fields: Fields::THREE_FILES,
        ran: Ran::All,
        reads_all: false,
    },
    Way {
        case: "bpf-lean",
        source: SourceKind::Bpf,
        fields: Fields::TOP,
        ran: Ran::None,
        reads_all: false,
    },
    Way {
        case: "bpf-lean-tenth-ran",
        source: SourceKind::Bpf,
        fields: Fields::TOP,
        ran: Ran::Tenth,
        reads_all: false,
    },
    Way {
        case: "bpf-lean-all-ran",
        source: SourceKind::Bpf,
        fields: Fields::TOP,
        ran: Ran::All,
        reads_all: false,
    },
    // Gains and costs of keeping records. Measured only if named.
    Way {
        case: "bpf-full-reads-all",
        source: SourceKind::Bpf,
        fields: Fields::THREE_FILES,
        ran: Ran::None,
        reads_all: true,
    },
    Way {
        case: "bpf-full-all-ran-reads-all",
        source: SourceKind::Bpf,
        fields: Fields::THREE_FILES,
        ran: Ran::All,
        reads_all: true,
    },
    Way {
        case: "bpf-lean-reads-all",
        source: SourceKind::Bpf,
        fields: Fields::TOP,
        ran: Ran::None,
        reads_all: true,
    },
    Way {
        case: "bpf-lean-all-ran-reads-all",
        source: SourceKind::Bpf,
        fields: Fields::TOP,
        ran: Ran::All,
        reads_all: true,
    },
    // Only the identities: the least cost of walking the list. Measured only if named.
    Way {
        case: "bpf-identity",
        source: SourceKind::Bpf,
        fields: Fields::empty(),
        ran: Ran::None,
        reads_all: false,
    },
    Way {
        case: "bpf-iter-full",
        source: SourceKind::BpfIter,
        fields: Fields::THREE_FILES,
        ran: Ran::None,
        reads_all: false,
    },
    Way {
        case: "procfs",
        source: SourceKind::Procfs,
        fields: Fields::THREE_FILES,
        ran: Ran::None,
        reads_all: false,
    },
];

/// An open way.
#[derive(Debug)]
pub struct Ours {
    /// Name of the case.
    pub case: &'static str,
    collector: Collector,
    /// How many processes ran before each snapshot.
    woken: usize,
    /// Whether most of them seemed not to have run before the last snapshot.
    seemed_to_rest: bool,
}

impl Ours {
    /// Opens its source, beside this many idle processes.
    pub fn open(way: Way, idle: usize) -> Result<Self, fastproc::Error> {
        let mut builder = Collector::builder()
            .source(Some(way.source))
            .fields(way.fields);
        if way.reads_all {
            builder = builder.keep_records(false);
        }
        let collector = builder.open()?;
        Ok(Self {
            case: way.case,
            collector,
            woken: way.ran.one_in().map_or(0, |one_in| idle / one_in),
            seemed_to_rest: false,
        })
    }

    /// Takes a snapshot as any caller does, including the processes that it reads from `/proc` every few seconds.
    pub fn scan(&mut self) -> Result<usize, Failure> {
        let snapshot = self.collector.snapshot()?;
        let (count, rested) = (snapshot.len(), snapshot.stats().reused_actions);
        let ran = count.saturating_sub(rested as usize);
        // A walk that is repeated because the pool is full follows one that has met them; that does not happen for two
        // snapshots in a row.
        let seems_to_rest = ran < self.woken / 2;
        if std::mem::replace(&mut self.seemed_to_rest, seems_to_rest) && seems_to_rest {
            return Err(format!(
                "of {} idle processes that were woken {ran} have run",
                self.woken
            )
            .into());
        }
        Ok(count)
    }

    /// How long loading took, and the bytes shared with the kernel. `None` for procfs.
    pub fn cost(&self) -> Option<Cost> {
        let (load, arrays) = self.collector.load_time().zip(self.collector.arrays())?;
        Some(Cost {
            case: self.case,
            load_ms: load.as_secs_f64() * 1e3,
            array_bytes: arrays.bytes,
        })
    }
}

/// The cost to open a way.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Cost {
    case: &'static str,
    /// Milliseconds to check, load and verify the programs.
    pub load_ms: f64,
    /// Bytes of the arrays.
    pub array_bytes: u64,
}
