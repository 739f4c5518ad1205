//! The options of a collector, and how it is opened.

use std::{path::PathBuf, time::Duration};

use super::{Collector, Local, Refusal, ServiceLink};
use crate::{
    base::{
        error::Error,
        frozen,
        host::{Host, TaskCount, running_processes},
        proc_root,
        source_kind::SourceKind,
        timing::{self, Timing},
    },
    collect::{assemble::Assembler, one_shot::OneShot},
    kernel::walk::Walk,
    records::fields::Fields,
    snapshot::{calibration::Calibration, texts::Texts},
    source::{
        bpf::{self, Bpf},
        calibrate::calibrate,
        procfs::Procfs,
        service,
    },
};

/// What to collect, and how.
#[derive(Clone, Debug)]
#[must_use]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Builder {
    pub(super) fields: Fields,
    pub(super) source: Option<SourceKind>,
    pub(super) reconcile_every: Duration,
    pub(super) socket: Option<PathBuf>,
    pub(super) max_age: Duration,
    pub(super) texts: Texts,
    pub(super) texts_max_age: Duration,
    pub(super) service_timeout: Option<Duration>,
    pids: Option<Vec<u32>>,
    pub(super) one_shot: bool,
    pub(super) reuse_opening: bool,
    pub(super) quick_start: bool,
    pub(super) exits: bool,
    pub(super) exit_cmdlines: bool,
    pub(super) lone_threads: bool,
    pub(super) longest_section: Duration,
    pub(super) keep_records: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            fields: Fields::TOP,
            source: None,
            reconcile_every: Duration::from_secs(5),
            socket: service::socket_path(),
            max_age: Duration::ZERO,
            texts: Texts::empty(),
            texts_max_age: Duration::ZERO,
            service_timeout: service::timeout(),
            pids: None,
            one_shot: false,
            reuse_opening: false,
            quick_start: false,
            exits: false,
            exit_cmdlines: false,
            lone_threads: true,
            longest_section: bpf::SECTION,
            keep_records: bpf::keeps_records(),
        }
    }
}

impl Builder {
    /// The groups of fields to collect. Default: [`Fields::TOP`].
    pub fn fields(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// The only source to use. Default: the first that works, in the order of [`SourceKind::LOCAL`].
    pub fn source(mut self, source: Option<SourceKind>) -> Self {
        self.source = source;
        self
    }

    /// The only processes to read, by their pids. [`SourceKind::Procfs`] reads them, unless another source is named, which reads
    /// all. Default: all.
    pub fn pids(mut self, pids: Option<Vec<u32>>) -> Self {
        self.pids = pids;
        self
    }

    /// How often to compare the walk with the listing of `/proc`, to find processes that the walk misses. Default:
    /// every five seconds.
    pub fn reconcile_every(mut self, interval: Duration) -> Self {
        self.reconcile_every = interval;
        self
    }

    /// The socket of the service. With `None` the service is used only if it is the only source. Default: the
    /// path in `FASTPROC_SOCKET`, or `/run/fastproc/fastproc.sock`.
    pub fn service_socket(mut self, socket: Option<PathBuf>) -> Self {
        self.socket = socket;
        self
    }

    /// How old a snapshot of the service may be. Default: zero, so its walk begins after the request. Other sources
    /// always make a new one.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// Texts that the caller will request from [`Details`](crate::Details) for most processes. A service returns them
    /// with the records; other sources ignore this. Default: none.
    pub fn texts(mut self, texts: Texts) -> Self {
        self.texts = texts;
        self
    }

    /// How old a text of the service may be. Default: zero, so it is read after the walk began, as
    /// [`Details`](crate::Details) itself would.
    ///
    /// Otherwise the service may return texts that it has kept, of processes that have not run since it read
    /// them and that nobody traces. A kept text is wrong only if another process overwrote the memory of that
    /// idle process, or if its program was renamed. The new text is shown at the latest after this time.
    pub fn texts_max_age(mut self, age: Duration) -> Self {
        self.texts_max_age = age;
        self
    }

    /// How long to wait for the service. Default: the milliseconds in `FASTPROC_SERVICE_TIMEOUT_MS`, or else half a
    /// second if another source may be used, and half a minute if not.
    pub fn service_timeout(mut self, timeout: Duration) -> Self {
        self.service_timeout = Some(timeout);
        self
    }

    /// Whether snapshots have the processes that ended since the last one
    /// ([`Snapshot::exits`](crate::Snapshot::exits)). Default: false.
    ///
    /// Exits are recorded from opening the collector until it is dropped, with any source. If there is a
    /// service, it records them, and shows of exited processes what it shows of running ones. Otherwise this
    /// process records them, and a thread keeps them for the next snapshot. The thread starts with the second
    /// snapshot, so a program may drop privileges after the first. If recording is not permitted, snapshots
    /// have no exits, and [`Collector::exits_refused`] says why. A snapshot also has none if the service was
    /// started again before it.
    pub fn exits(mut self, exits: bool) -> Self {
        self.exits = exits;
        self
    }

    /// Whether the command lines of exits are kept as well
    /// ([`Snapshot::exit_cmdline`](crate::Snapshot::exit_cmdline)). This records every exec. Default: false.
    pub fn exit_cmdlines(mut self, cmdlines: bool) -> Self {
        self.exit_cmdlines = cmdlines;
        self
    }

    /// Whether [`Snapshot::threads`](crate::Snapshot::threads) must have a thread that is the only one of its
    /// process, and whose record holds the same. With false, a source may still list it. Default: true.
    pub fn lone_threads(mut self, lone: bool) -> Self {
        self.lone_threads = lone;
        self
    }

    /// How long a walk may keep its CPU busy before it pauses; it reads at least one task. Default: 150 us. A section
    /// takes a little longer, because the walk does not read the clock after every task. A shorter time means more
    /// pauses, which make the walk slower. Sources other than [`SourceKind::Bpf`] pause after every task anyway.
    pub fn longest_section(mut self, section: Duration) -> Self {
        self.longest_section = section;
        self
    }

    /// Whether a walk keeps the records of processes that have not changed since the last one, instead of reading them
    /// again. It compares a few words of the kernel with their previous values. To check this, it reads every sixteenth
    /// record anyway, and compares it ([`SnapshotStats::disproven`](crate::SnapshotStats::disproven)). Only
    /// [`SourceKind::Bpf`] keeps records, of some groups of fields. Default: true, or false if `FASTPROC_KEEP_RECORDS`
    /// is 0.
    pub fn keep_records(mut self, keep: bool) -> Self {
        self.keep_records = keep;
        self
    }

    /// Whether the program takes only one snapshot, as soon as the collector is open. Then no records are kept, and
    /// loading BPF programs pays only if there is much to read: see [`OneShot`]. If there is little, no source is named
    /// and there is no service, [`SourceKind::Procfs`] is used at once. It includes
    /// [`reuse_opening`](Self::reuse_opening). Default: false.
    pub fn one_shot(mut self, one_shot: bool) -> Self {
        self.one_shot = one_shot;
        self
    }

    /// Whether the first snapshot may be the walk that opening compares with the kernel's files, instead of a second one.
    /// It has then ended up to a tenth of a second before the call that returns it, and
    /// [`SnapshotStats::boottime_ns`](crate::SnapshotStats::boottime_ns) says when it began; if it has ended earlier, there is
    /// a new one. So a process that was started after [`open`](Self::open) may be missing. Default: false.
    pub fn reuse_opening(mut self, reuse: bool) -> Self {
        self.reuse_opening = reuse;
        self
    }

    /// Whether the first snapshot is made by what costs least to open, as with [`one_shot`](Self::one_shot), and the rest is
    /// opened before the second one: for a program that shows the first at once and reads the next later. Then exits are
    /// recorded from the second snapshot on. A service is opened as ever. Default: false.
    pub fn quick_start(mut self, quick: bool) -> Self {
        self.quick_start = quick;
        self
    }

    /// Whether to keep records. Without a next snapshot, loading the larger programs for this would be useless.
    pub(super) fn keeps_records(&self) -> bool {
        self.keep_records && !self.one_shot
    }

    /// Opens a source. If a source was named, an error says why it cannot be used. Otherwise opening falls back to
    /// `procfs`, which needs no privileges, and [`Collector::refused`] says why the others could not be used.
    pub fn open(self) -> Result<Collector, Error> {
        let timing = Timing::start();
        let host = Host::read()?;
        timing::done("host");
        let service = match self.source {
            Some(SourceKind::Service) if proc_root::is_elsewhere() => {
                return Err(Error::OtherProcesses {
                    reads: "the service's own /proc",
                    shows: "another",
                });
            }
            Some(SourceKind::Service)
                if self.socket.is_none() && service::socket_path().is_none() =>
            {
                return Err(service::Error::NotWanted.into());
            }
            Some(SourceKind::Service) => Some(ServiceLink::new(&self, &host, true)),
            // A service returns what its own /proc shows.
            None if self.socket.is_some() && self.pids.is_none() && !proc_root::is_elsewhere() => {
                Some(ServiceLink::new(&self, &host, false))
            }
            _ => None,
        };
        let mut collector = Collector {
            host,
            builder: self,
            service,
            served: false,
            last_ns: 0,
            local: None,
            refused: Vec::new(),
            exits: None,
            exits_are_new: false,
            unseen: false,
            quick: false,
            exits_refused: None,
            opening: Vec::new(),
        };
        if let Some(link) = &mut collector.service {
            let opened = link.open();
            timing::done("service");
            match opened {
                Ok(()) => collector.served = true,
                Err(error) if link.only => return Err(error),
                // Most machines have no service.
                Err(Error::Service(service::Error::NotThere { .. })) => (),
                Err(error) => collector.refused.push(Refusal {
                    source: SourceKind::Service,
                    error,
                }),
            }
        }
        let by_service = collector.service.as_ref();
        let by_service = by_service.is_some_and(|link| link.service.records_exits());
        let has_better = collector.builder.source != Some(SourceKind::Procfs);
        collector.quick = collector.builder.quick_start && has_better && !collector.served;
        if collector.builder.exits && !by_service && !collector.quick {
            collector.record_exits();
        }
        if !collector.served {
            collector.open_local()?;
        }
        collector.opening = timing.parts();
        Ok(collector)
    }

    /// Opens a source in this process.
    pub(super) fn open_local(&self, host: &Host) -> Result<Local, Error> {
        let mut procfs = Procfs::open(&proc_root::path("/proc"), self.fields, host)?;
        timing::done("format of the files");
        let reads_few =
            self.pids.is_some() && self.source.is_none_or(|kind| kind == SourceKind::Procfs);
        if let Some(pids) = self.pids.clone().filter(|_| reads_few) {
            procfs.read_only(pids);
        }
        let processes = running_processes().unwrap_or(0);
        let counted = TaskCount::now();
        let tasks = counted.map_or(processes, |count| count.tasks);
        let expected = (processes, tasks);
        let mut refused = Vec::new();
        let mut local = None;
        let reads_proc = reads_few
            || frozen::folder().is_some()
            || self.one_shot && OneShot::now(self.fields).is_cheaper();
        let kinds = match self.source {
            Some(kind) => vec![kind],
            None if reads_proc => Vec::new(),
            None => SourceKind::LOCAL.to_vec(),
        };
        for kind in kinds {
            let walk = match kind {
                SourceKind::Bpf => Walk::OpenCoded,
                SourceKind::BpfIter => Walk::Iterator,
                SourceKind::Procfs => break,
                SourceKind::Service => continue,
            };
            match self.open_bpf(walk, host, expected, &mut procfs) {
                Ok((bpf, calibration)) => {
                    local = Some((kind, bpf, calibration));
                    break;
                }
                Err(error) if self.source.is_some() => return Err(error),
                Err(error) => refused.push(Refusal {
                    source: kind,
                    error,
                }),
            }
        }
        let (kind, bpf, calibration) = match local {
            Some((kind, bpf, calibration)) => (kind, Some(bpf), calibration),
            None => (SourceKind::Procfs, None, Calibration::default()),
        };
        let mut assembler = Assembler::new(
            procfs,
            self.fields,
            kind,
            self.reconcile_every,
            host.boot_offset_ns,
        );
        assembler.calibration = calibration;
        if self.one_shot || self.reuse_opening {
            assembler.may_use_last_walk(counted);
        }
        Ok(Local {
            process: std::process::id(),
            bpf,
            refused,
            assembler,
        })
    }
    /// Opens a source of records, and compares it with the text.
    fn open_bpf(
        &self,
        walk: Walk,
        host: &Host,
        expected: (u32, u32),
        procfs: &mut Procfs,
    ) -> Result<(Bpf, Calibration), Error> {
        let options = bpf::Options {
            lone_threads: self.lone_threads,
            keeps_records: self.keeps_records(),
            walks_once: self.one_shot,
        };
        let mut bpf = Bpf::open(walk, self.fields, host, expected, options)?;
        bpf.set_section(self.longest_section);
        let calibration = calibrate(&mut bpf, procfs, self.fields)?;
        timing::done("comparison with the files");
        Ok((bpf, calibration))
    }
}
