//! Records of processes, if they are available and cheaper than reading files.

use std::{path::Path, time::Duration};

use fastproc::{
    Collector, Fields, Snapshot, SourceKind, Texts, access::may_trace_all, proc_root,
    source::service,
};

use crate::values::Clock;

/// From this many processes on, loading programs pays off.
const WORTH_LOADING: usize = 1000;

/// How long to wait for the service, unless the environment says otherwise; procps's own library needs none. The
/// service answers within milliseconds, unless it walks a large table for others, or waits for command lines, for which
/// it takes 0.4 seconds at most.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A source of records.
#[derive(Debug)]
pub(crate) struct Records {
    collector: Collector,
    texts: Texts,
    process: u32,
}

impl Records {
    /// Decides whether to use records for these fields. `None`: use procps's own library.
    pub(crate) fn decide(fields: Fields, texts: Texts) -> Option<Self> {
        // As in procps's own library, whatever HOST_PROC says.
        let _ = proc_root::set(Path::new("/proc"));
        let process = std::process::id();
        let service = Collector::builder()
            .fields(fields)
            .texts(texts)
            .texts_max_age(Texts::MAX_AGE)
            .source(Some(SourceKind::Service))
            .service_timeout(service::timeout().unwrap_or(LONGEST_WAIT))
            .open();
        if let Ok(collector) = service {
            return Some(Self {
                collector,
                texts,
                process,
            });
        }
        if !may_see_all() || processes() < WORTH_LOADING {
            return None;
        }
        // Everything that may ever be requested: programs are not loaded twice.
        let fields = fields | Fields::THREE_FILES | Fields::IO;
        let own = [SourceKind::Bpf, SourceKind::BpfIter]
            .into_iter()
            .find_map(|source| {
                Collector::builder()
                    .fields(fields)
                    .source(Some(source))
                    .open()
                    .ok()
            });
        own.map(|collector| Self {
            collector,
            texts: Texts::all(),
            process,
        })
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::new(self.collector.host())
    }

    /// A new snapshot of all processes. `None`: records are no longer available.
    pub(crate) fn snapshot(&mut self, fields: Fields, texts: Texts) -> Option<Snapshot<'_>> {
        if !self.collector.fields().contains(fields) || !self.texts.contains(texts) {
            *self = Self::decide(fields | self.collector.fields(), texts | self.texts)?;
        }
        // A forked child would share programs and maps with its parent.
        if self.collector.source() != SourceKind::Service && self.process != std::process::id() {
            return None;
        }
        self.collector.snapshot().ok()
    }

    /// The last snapshot.
    pub(crate) fn latest(&self) -> Option<Snapshot<'_>> {
        self.collector.latest()
    }
}

/// Whether the kernel shows this process everything, so that records, which are read without permission checks, show no
/// more.
fn may_see_all() -> bool {
    // It has the name of this process, which may be any bytes.
    let status = std::fs::read("/proc/self/status").unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let value = |name: &str| {
        status
            .lines()
            .find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    let label = std::fs::read("/proc/self/attr/current").unwrap_or_default();
    let is_confined =
        !label.is_empty() && !label.starts_with(b"unconfined") && !label.starts_with(b"kernel");
    may_trace_all()
        && value("Uid:").is_some_and(|ids| ids.split('\t').all(|id| id == "0"))
        && value("NoNewPrivs:").is_none_or(|set| set == "0")
        && !is_confined
}

/// The number of entries in `/proc`.
fn processes() -> usize {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let is_pid = |entry: &std::fs::DirEntry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .iter()
            .all(u8::is_ascii_digit)
    };
    entries.filter_map(Result::ok).filter(is_pid).count()
}
