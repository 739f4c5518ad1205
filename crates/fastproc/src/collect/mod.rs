//! The collector: chooses a source, and makes complete snapshots.

mod assemble;
mod builder;
mod met_all;
pub mod one_shot;

use std::time::{Duration, Instant};

pub use builder::Builder;

use crate::{
    base::{error::Error, host::Host, source_kind::SourceKind, timing::Part},
    collect::assemble::Assembler,
    exits::Backlog,
    records::fields::Fields,
    snapshot::{Snapshot, calibration::Calibration},
    source::{
        bpf::Bpf,
        service::{self, Service},
    },
};

/// The arrays that records are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrays {
    /// Processes that fit before the arrays must grow.
    pub processes: u32,
    /// Bytes of all arrays.
    pub bytes: u64,
}

/// Whether records of unchanged processes are kept: see [`Builder::keep_records`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// The last walk could keep records.
    Kept,
    /// This kernel's type information lacks members that prove a record unchanged.
    LacksTypes,
    /// The caller, the environment, the fields, the source or the processor rule it out.
    Off,
}

/// A source that was tried and could not be used.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// The source.
    pub source: SourceKind,
    /// Why it could not be used.
    pub error: Error,
}

/// A source of this process itself.
#[derive(Debug)]
struct Local {
    /// The process that opened it. A child shares its maps and files, and must not use them.
    process: u32,
    bpf: Option<Bpf>,
    refused: Vec<Refusal>,
    assembler: Assembler,
}

/// How long to wait for the service: if there is another source, and if there is none.
///
/// The service answers within milliseconds, unless it walks a large table for other readers or waits for command
/// lines, which takes at most 0.4 seconds. A service that hangs causes this delay once: later requests do not
/// wait.
const TIMEOUT: Duration = Duration::from_millis(500);
const ONLY_TIMEOUT: Duration = Duration::from_secs(30);

/// A service that has failed is tried again after a delay, which grows with each failure.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_secs(60);

/// The service, and when to try it again.
#[derive(Debug)]
struct ServiceLink {
    service: Service,
    /// Whether no other source may be used.
    only: bool,
    retry_at: Option<Instant>,
    retry_after: Duration,
}

impl ServiceLink {
    fn new(builder: &Builder, host: &Host, only: bool) -> Self {
        let path = builder.socket.clone();
        let timeout = if only { ONLY_TIMEOUT } else { TIMEOUT };
        let settings = service::Settings {
            path: path.unwrap_or_else(|| service::DEFAULT_SOCKET.into()),
            fields: builder.fields,
            max_age: builder.max_age,
            texts: builder.texts,
            texts_max_age: builder.texts_max_age,
            exits: builder.exits,
            timeout: builder.service_timeout.unwrap_or(timeout),
            only,
        };
        Self {
            service: Service::new(settings, host),
            only,
            retry_at: None,
            retry_after: RETRY_FIRST,
        }
    }

    fn open(&mut self) -> Result<(), Error> {
        let opened = self.service.open();
        self.schedule_retry(opened)
    }

    fn is_due(&self) -> bool {
        self.only || self.retry_at.is_none_or(|at| Instant::now() >= at)
    }

    fn collect(&mut self, not_before_ns: u64) -> Result<(), Error> {
        let collected = self.service.collect(not_before_ns);
        self.schedule_retry(collected)
    }

    fn snapshot(&self) -> Option<Snapshot<'_>> {
        let service = &self.service;
        service.has_snapshot().then(|| service.snapshot())
    }

    /// Sets the time of the next try from the result of this one.
    fn schedule_retry(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        match &result {
            Ok(()) => {
                self.retry_at = None;
                self.retry_after = RETRY_FIRST;
            }
            // Asking again whether it has answered costs nothing.
            Err(Error::Service(service::Error::Waiting)) => self.retry_at = None,
            Err(_) => {
                self.retry_at = Some(Instant::now() + self.retry_after);
                self.retry_after = (2 * self.retry_after).min(RETRY_LAST);
            }
        }
        result
    }
}

/// Makes snapshots from one source. A service makes them if there is one; while it fails, the next source does.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each says one thing")]
pub struct Collector {
    host: Host,
    builder: Builder,
    service: Option<ServiceLink>,
    /// Whether the service made the last snapshot, or will make the first.
    served: bool,
    /// When the last snapshot began. No later snapshot is older, whichever source makes it.
    last_ns: u64,
    local: Option<Local>,
    refused: Vec<Refusal>,
    /// The exits that this process records. `None` while the service records them.
    exits: Option<Backlog>,
    /// Whether recording began after the snapshot before the last one.
    exits_are_new: bool,
    /// The last snapshot was made, but not returned: no record can be kept from it.
    unseen: bool,
    /// Whether the source is one for a single snapshot.
    quick: bool,
    exits_refused: Option<Error>,
    opening: Vec<Part>,
}

impl Collector {
    /// Returns a builder, which sets what to collect.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The source in use.
    pub fn source(&self) -> SourceKind {
        match &self.local {
            Some(local) if !self.served => local.assembler.kind,
            _ => SourceKind::Service,
        }
    }

    /// The groups of fields that are collected.
    pub fn fields(&self) -> Fields {
        self.builder.fields
    }

    /// The sources that were tried before the one in use, with the reasons.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Why exits are not recorded although [`Builder::exits`] requested them.
    pub fn exits_refused(&self) -> Option<&Error> {
        self.exits_refused.as_ref()
    }

    /// Whether the exit of a process that ended until this time (in nanoseconds after boot), and that the last snapshot does not
    /// have, comes with a later snapshot: the kernel has not released it yet. Mostly that takes some milliseconds. Always
    /// false if a service records exits.
    pub fn awaits_exits(&self, until_ns: u64) -> bool {
        let (backlog, last) = (self.exits.as_ref(), self.latest());
        backlog
            .zip(last)
            .is_some_and(|(backlog, last)| backlog.awaits(&last, until_ns))
    }

    /// Facts about this machine.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Results of comparing records with the kernel's text.
    pub fn calibration(&self) -> Calibration {
        match self.service.as_ref().filter(|_| self.served) {
            Some(link) => link.service.calibration(),
            None => self
                .local
                .as_ref()
                .map_or_else(Calibration::default, |local| local.assembler.calibration),
        }
    }

    fn bpf(&self) -> Option<&Bpf> {
        self.local.as_ref().filter(|_| !self.served)?.bpf.as_ref()
    }

    fn change_arrays(&mut self, change: fn(&mut Bpf) -> Result<(), Error>) -> Result<(), Error> {
        if let Some(local) = &mut self.local
            && let Some(bpf) = &mut local.bpf
        {
            local.assembler.release();
            change(bpf)?;
        }
        Ok(())
    }

    /// How long the walk of the last snapshot kept its CPU at most without a pause. `None` unless this collector's own BPF
    /// programs read.
    pub fn longest_section(&self) -> Option<Duration> {
        self.bpf()?.longest_section()
    }

    /// Time that each part of opening took.
    pub fn opening(&self) -> &[Part] {
        &self.opening
    }

    /// Makes a snapshot of all processes.
    ///
    /// If the service fails, the next source takes its place, and the collector tries the service again
    /// later. No snapshot is older than the one before it, even if another source made that one.
    ///
    /// # Errors
    /// The kernel refused to run a program, or `/proc` cannot be read, or the service failed and no other
    /// source is allowed. The next call may succeed. It fails with [`Error::Forked`] in a child of the
    /// process that opened the collector: the child must open its own.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>, Error> {
        if std::mem::take(&mut self.unseen) {
            // Recording began after what the reader saw last.
            if self.exits_are_new {
                self.exits = None;
            }
            if let Some(local) = &mut self.local {
                local.assembler.forget();
            }
            if let Some(link) = &mut self.service {
                link.service.forget_last();
            }
        }
        self.served = self.collect_from_service()?;
        if self.quick && self.last_ns > 0 {
            self.quick = false;
            if !self.served {
                self.open_for_more();
            }
        }
        // The service records exits; otherwise this process must.
        self.exits_are_new = !self.served
            && !self.quick
            && self.builder.exits
            && self.exits.is_none()
            && self.exits_refused.is_none();
        // Before a source is opened, whose walk may be that of the snapshot.
        if self.exits_are_new {
            self.record_exits();
        }
        match &mut self.local {
            Some(local) if self.served => local.assembler.forget(),
            None if !self.served => {
                if let Err(error) = self.open_local() {
                    // As below.
                    if self.exits_are_new {
                        self.exits = None;
                    }
                    return Err(error);
                }
            }
            _ => {}
        }
        let made = match (&mut self.local, &mut self.service) {
            (_, Some(link)) if self.served => {
                let nothing = service::Error::Protocol("no snapshot");
                link.snapshot().ok_or(nothing.into())
            }
            // This is a system call, but takes a tenth of a microsecond.
            (Some(local), _) if local.process != std::process::id() => Err(Error::Forked),
            (
                Some(Local {
                    bpf: Some(bpf),
                    assembler,
                    ..
                }),
                _,
            ) => assembler.walk(bpf),
            (Some(local), _) => local.assembler.read(),
            (None, _) => unreachable!("it was opened"),
        };
        let mut snapshot = match made {
            Ok(snapshot) => snapshot,
            Err(error) => {
                // The next snapshot does not have the exits before recording began either.
                if self.exits_are_new {
                    self.exits = None;
                }
                return Err(error);
            }
        };
        self.last_ns = snapshot.stats().boottime_ns;
        // After the walk: a process that has ended since is either in the snapshot or among its exits,
        // never in both.
        if let Some(backlog) = &mut self.exits {
            if let Err(error) = backlog.take(&snapshot) {
                self.unseen = true;
                return Err(error);
            }
            if !self.exits_are_new {
                snapshot.set_exits(backlog.exits());
            }
        }
        Ok(snapshot)
    }

    /// Returns the last snapshot again. `None` if there was none, or if making the last one failed.
    pub fn latest(&self) -> Option<Snapshot<'_>> {
        let mut snapshot = if self.served {
            self.service.as_ref()?.snapshot()?
        } else {
            let local = self.local.as_ref()?;
            local.assembler.latest(local.bpf.as_ref())?
        };
        if let Some(backlog) = self.exits.as_ref().filter(|_| !self.exits_are_new) {
            snapshot.set_exits(backlog.exits());
        }
        Some(snapshot)
    }

    /// Whether the service has made a snapshot.
    fn collect_from_service(&mut self) -> Result<bool, Error> {
        let Some(link) = self.service.as_mut().filter(|link| link.is_due()) else {
            return Ok(false);
        };
        match link.collect(self.last_ns) {
            Ok(()) => Ok(true),
            Err(error) if link.only => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Begins to record exits here, because no service records them.
    fn record_exits(&mut self) {
        match Backlog::open(self.builder.exit_cmdlines) {
            Ok(exits) => self.exits = Some(exits),
            Err(error) => self.exits_refused = Some(error),
        }
        if let Some(link) = self.service.as_mut().filter(|_| self.exits.is_some()) {
            link.service.forget_exits();
        }
    }

    /// Replaces the source of a single snapshot. It stays if the other cannot be opened.
    fn open_for_more(&mut self) {
        let earlier = self.local.take();
        if self.open_local().is_err() {
            self.local = earlier;
        }
    }

    fn open_local(&mut self) -> Result<(), Error> {
        let mut builder = self.builder.clone();
        builder.one_shot |= self.quick;
        let mut local = builder.open_local(&self.host)?;
        self.refused.append(&mut local.refused);
        self.local = Some(local);
        Ok(())
    }
}

#[doc(hidden)]
impl Collector {
    /// Takes the reason out of the collector, for a caller that stops because of it.
    pub fn take_exits_refused(&mut self) -> Option<Error> {
        self.exits_refused.take()
    }

    /// The arrays that the kernel and this process share. `None` unless this collector's own BPF programs
    /// read.
    pub fn arrays(&self) -> Option<Arrays> {
        self.bpf().map(|bpf| Arrays {
            processes: bpf.capacity(),
            bytes: bpf.memory_bytes(),
        })
    }

    /// Gives back the memory of the arrays, if the next snapshot is not needed soon; that one makes room again. The last
    /// snapshot is lost.
    pub fn release_arrays(&mut self) -> Result<(), Error> {
        self.change_arrays(Bpf::release)
    }

    /// Makes room in released arrays for the processes that there are now, so that the next snapshot need not. The last
    /// snapshot is lost.
    pub fn reserve_arrays(&mut self) -> Result<(), Error> {
        self.change_arrays(Bpf::reserve)
    }

    /// Whether the last snapshot could keep records.
    pub fn keeping(&self) -> Keeping {
        match self.bpf().map(Bpf::keeps_records) {
            Some((true, _)) => Keeping::Kept,
            Some((false, true)) if self.builder.keeps_records() => Keeping::LacksTypes,
            _ => Keeping::Off,
        }
    }

    /// How long it took to load and verify the programs. `None` unless this collector's own BPF programs
    /// read.
    pub fn load_time(&self) -> Option<Duration> {
        self.bpf().map(Bpf::load_time)
    }
}

#[cfg(test)]
mod tests {
    use fastproc_testbed::{Options, Testbed, gate, needs};

    use super::*;
    use crate::records::record::Record;

    /// As if a service that recorded exits had gone, and reading failed at first. Needs root and BPF.
    #[test]
    fn exits_are_whole_only_after_a_snapshot_since_recording_began() {
        needs!(gate::bpf());
        let builder = Collector::builder().source(Some(SourceKind::Procfs));
        let opened = builder.exits(true).open();
        let mut collector = opened.expect("/proc can be read");
        assert!(collector.exits_refused().is_none());
        let has_exits = |collector: &mut Collector, process: u32| {
            collector.local.as_mut().expect("it was opened").process = process;
            let snapshot = collector.snapshot();
            snapshot.map(|snapshot| snapshot.exits().is_some())
        };
        let own = std::process::id();
        assert!(has_exits(&mut collector, own).expect("it reads"));
        collector.exits = None;
        for _ in 0..2 {
            let refused = has_exits(&mut collector, 0);
            assert!(matches!(refused, Err(Error::Forked)), "{refused:?}");
        }
        assert!(!has_exits(&mut collector, own).expect("it reads"));
        assert!(has_exits(&mut collector, own).expect("it reads"));
    }

    /// Needs root: both sources, of which one needs BPF.
    #[test]
    fn both_sources_say_by_the_same_bit_that_huge_pages_are_disabled() {
        needs!(gate::bpf());
        let mut collector = Collector::builder()
            .fields(Fields::MEMORY_DETAILS)
            .source(Some(SourceKind::Bpf))
            .open()
            .expect("BPF can be used");
        let Some(bit) = collector.calibration().thp_disable_bit else {
            gate::skipped("this kernel has no transparent huge pages to disable");
            return;
        };
        let testbed = Testbed::open(&Options::only(["thp-disabled", "orphan"]));
        let testbed = testbed.expect("processes can be started");
        for process in testbed.processes() {
            let (pid, disabled) = (process.pid, process.label == "thp-disabled");
            let walked = collector
                .snapshot()
                .expect("a snapshot")
                .get(pid)
                .and_then(|process| process.memory_details().copied())
                .expect("the process has details of its memory");
            let mut record = Record::default();
            let local = collector.local.as_mut().expect("it was opened");
            let procfs = &mut local.assembler.procfs;
            procfs
                .read_one(pid, &mut record, &mut Vec::new(), &mut vec![0])
                .expect("it can be read");
            assert_eq!(walked.mm_flags >> bit & 1, u64::from(disabled));
            assert_eq!(
                record.memory_details.mm_flags,
                u64::from(disabled) << bit,
                "from the text"
            );
        }
        assert_eq!(testbed.processes().len(), 2);
    }
}
