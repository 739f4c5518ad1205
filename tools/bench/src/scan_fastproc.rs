//! The library's own ways of reading every process.

use fastproc::{Collector, Fields, SourceKind};

use super::measure::Failure;

/// One way: a source, and what it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Name of the case.
    pub case: &'static str,
    source: SourceKind,
    fields: Fields,
    /// Every idle process runs for a moment before each look: signal actions of one that has not are not read again.
    pub all_ran: bool,
}

impl Way {
    /// Whether it is measured when nobody names it.
    pub fn is_usual(&self) -> bool {
        !self.fields.is_empty()
    }
}

/// All of them.
pub const WAYS: [Way; 6] = [
    Way {
        case: "bpf-full",
        source: SourceKind::Bpf,
        fields: Fields::THREE_FILES,
        all_ran: false,
    },
    Way {
        case: "bpf-full-all-ran",
        source: SourceKind::Bpf,
        fields: Fields::THREE_FILES,
        all_ran: true,
    },
    Way {
        case: "bpf-lean",
        source: SourceKind::Bpf,
        fields: Fields::TOP,
        all_ran: false,
    },
    // Nothing but who is there: what walking the list costs at least. Measured only if it is asked for.
    Way {
        case: "bpf-identity",
        source: SourceKind::Bpf,
        fields: Fields::empty(),
        all_ran: false,
    },
    Way {
        case: "bpf-iter-full",
        source: SourceKind::BpfIter,
        fields: Fields::THREE_FILES,
        all_ran: false,
    },
    Way {
        case: "procfs",
        source: SourceKind::Procfs,
        fields: Fields::THREE_FILES,
        all_ran: false,
    },
];

/// A way, opened.
#[derive(Debug)]
pub struct Ours {
    /// Name of the case.
    pub case: &'static str,
    collector: Collector,
    /// So many ran before each look.
    woken: usize,
}

impl Ours {
    /// Opens a source for it, beside so many idle processes.
    pub fn open(way: Way, idle: usize) -> Result<Self, fastproc::Error> {
        let collector = Collector::builder()
            .source(Some(way.source))
            .fields(way.fields)
            .open()?;
        Ok(Self {
            case: way.case,
            collector,
            woken: if way.all_ran { idle } else { 0 },
        })
    }

    /// A snapshot, as any caller gets it: with everything from `/proc` that completes it, every few seconds.
    pub fn scan(&mut self) -> Result<usize, Failure> {
        let snapshot = self.collector.snapshot()?;
        let (count, rested) = (snapshot.len(), snapshot.stats().reused_actions);
        let ran = count.saturating_sub(rested as usize);
        if ran < self.woken / 2 {
            return Err(format!(
                "of {} idle processes that were woken {ran} have run",
                self.woken
            )
            .into());
        }
        Ok(count)
    }

    /// How long loading took, and the bytes that are shared with the kernel. `None` for procfs.
    pub fn cost(&self) -> Option<Cost> {
        let (load, arrays) = self.collector.load_time().zip(self.collector.arrays())?;
        Some(Cost {
            case: self.case,
            load_ms: load.as_secs_f64() * 1e3,
            array_bytes: arrays.bytes,
        })
    }
}

/// What a way costs once.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Cost {
    case: &'static str,
    /// Milliseconds to check, load and verify the programs.
    pub load_ms: f64,
    /// Bytes of the arrays.
    pub array_bytes: u64,
}
