//! What is asked of a collector, and its opening.

use std::{path::PathBuf, time::Duration};

use super::{Collector, Local, Refusal, ServiceLink};
use crate::{
    base::{
        error::Error,
        host::{Host, running_processes, running_tasks},
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
    pub(super) proc_root: PathBuf,
    pub(super) socket: Option<PathBuf>,
    pub(super) max_age: Duration,
    pub(super) texts: Texts,
    pub(super) texts_max_age: Duration,
    pub(super) service_timeout: Option<Duration>,
    pub(super) one_shot: bool,
    pub(super) exits: bool,
    pub(super) exit_cmdlines: bool,
    pub(super) lone_threads: bool,
    pub(super) longest_section: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            fields: Fields::TOP,
            source: None,
            reconcile_every: Duration::from_secs(5),
            proc_root: PathBuf::from("/proc"),
            socket: service::socket_path(),
            max_age: Duration::ZERO,
            texts: Texts::empty(),
            texts_max_age: Duration::ZERO,
            service_timeout: service::timeout(),
            one_shot: false,
            exits: false,
            exit_cmdlines: false,
            lone_threads: true,
            longest_section: bpf::SECTION,
        }
    }
}

impl Builder {
    /// The groups of fields to collect. [`Fields::TOP`] if not set.
    pub fn fields(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// The only source to use. If not set, the first that works, in the order of [`SourceKind::ALL`].
    pub fn source(mut self, source: Option<SourceKind>) -> Self {
        self.source = source;
        self
    }

    /// How often to compare the walk with the listing of `/proc`, to find what the walk misses. Five seconds if not
    /// set.
    pub fn reconcile_every(mut self, interval: Duration) -> Self {
        self.reconcile_every = interval;
        self
    }

    /// Where the service listens, or `None` not to use it unless it is the only source. The path in `FASTPROC_SOCKET`,
    /// or [`service::DEFAULT_SOCKET`], if not set.
    pub fn service_socket(mut self, socket: Option<PathBuf>) -> Self {
        self.socket = socket;
        self
    }

    /// How old a snapshot of the service may be. Zero if not set: its walk begins after it was asked for, as is always
    /// so with the other sources.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// Texts that [`Details`](crate::Details) will be asked for of most processes. A service brings them along; other
    /// sources need not know. None if not set.
    pub fn texts(mut self, texts: Texts) -> Self {
        self.texts = texts;
        self
    }

    /// How old a text of the service may be. Zero if not set: it is read after the walk began, as [`Details`](crate::Details)
    /// itself does.
    ///
    /// Otherwise the service hands out texts that it has kept, of processes that have not run since it read them and that
    /// nobody traces. Then only somebody else can have changed them, by writing to memory of a process that rests or by
    /// renaming a program; that is shown after this time at the latest.
    pub fn texts_max_age(mut self, age: Duration) -> Self {
        self.texts_max_age = age;
        self
    }

    /// How long to wait for the service. If not set, as long as `FASTPROC_SERVICE_TIMEOUT_MS` says in milliseconds, or else half a
    /// second where another source can be used, half a minute where it is the only one.
    pub fn service_timeout(mut self, timeout: Duration) -> Self {
        self.service_timeout = Some(timeout);
        self
    }

    /// Whether snapshots tell which processes ended since the last one ([`Snapshot::exits`](crate::Snapshot::exits)). Not if not set.
    ///
    /// They are recorded from when the collector is opened until it is dropped, whatever the source is: by the service, if
    /// there is one, which shows of them what it shows of processes; else here, and kept for the next snapshot by a thread,
    /// which is begun with the second: whoever gives up privileges can make one before. Where that is not allowed,
    /// snapshots are made without, and [`Collector::exits_refused`] says why. So are snapshots before which nothing was
    /// recorded for a while, because the service was started again.
    pub fn exits(mut self, exits: bool) -> Self {
        self.exits = exits;
        self
    }

    /// Whether their command lines are kept as well ([`Snapshot::exit_cmdline`](crate::Snapshot::exit_cmdline)), for which every exec is recorded. Not if
    /// not set.
    pub fn exit_cmdlines(mut self, cmdlines: bool) -> Self {
        self.exit_cmdlines = cmdlines;
        self
    }

    /// Whether [`Snapshot::threads`](crate::Snapshot::threads) has to have threads that are the only ones of their processes, whose records hold the same.
    /// A source may list them all the same. It has if not set.
    pub fn lone_threads(mut self, lone: bool) -> Self {
        self.lone_threads = lone;
        self
    }

    /// How long the walk may keep its CPU from everything else before it makes way, at least one task long. 150 us if not
    /// set: with what its last look at the clock may be late by, at most 200 us. A shorter one makes way more often, which
    /// costs the walk time; a source that is not [`SourceKind::Bpf`] makes way after every task as it is.
    pub fn longest_section(mut self, section: Duration) -> Self {
        self.longest_section = section;
        self
    }

    /// Whether one snapshot will be taken, so that programs that walk are worth loading only where there is much to read: see
    /// [`OneShot`]. Where less is to be read, and no source is named and no service is there, [`SourceKind::Procfs`] is
    /// taken without trying the others. Not if not set.
    pub fn one_shot(mut self, one_shot: bool) -> Self {
        self.one_shot = one_shot;
        self
    }

    /// Opens a source. With a source named, an error says why it cannot be used; without, the last resort `procfs`
    /// needs no privileges, and [`Collector::refused`] remembers why the others did not do.
    pub fn open(self) -> Result<Collector, Error> {
        let timing = Timing::start();
        let host = Host::read()?;
        timing::done("host");
        let service = match self.source {
            Some(SourceKind::Service) => Some(ServiceLink::new(&self, &host, true)),
            None if self.socket.is_some() => Some(ServiceLink::new(&self, &host, false)),
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
            exits_refused: None,
            opening: Vec::new(),
        };
        if let Some(link) = &mut collector.service {
            let opened = link.open();
            timing::done("service");
            match opened {
                Ok(()) => collector.served = true,
                Err(error) if link.only => return Err(error),
                // Most machines have none.
                Err(Error::Service(service::Error::NotThere { .. })) => (),
                Err(error) => collector.refused.push(Refusal {
                    source: SourceKind::Service,
                    error,
                }),
            }
        }
        let by_service = collector.service.as_ref();
        let by_service = by_service.is_some_and(|link| link.service.records_exits());
        if collector.builder.exits && !by_service {
            collector.record_exits();
        }
        if !collector.served {
            collector.open_local()?;
        }
        collector.opening = timing.parts();
        Ok(collector)
    }

    /// Opens a source of this process's own.
    pub(super) fn open_local(&self, host: &Host) -> Result<Local, Error> {
        let mut procfs = Procfs::open(&self.proc_root, self.fields, host)?;
        timing::done("format of the files");
        let processes = running_processes(&self.proc_root).unwrap_or(0);
        let expected = (
            processes,
            running_tasks(&self.proc_root).unwrap_or(processes),
        );
        let mut refused = Vec::new();
        let mut bpf = None;
        let reads_proc = self.one_shot && OneShot::now(self.fields, &self.proc_root).is_cheaper();
        let kinds = match self.source {
            Some(kind) => vec![kind],
            None if reads_proc => Vec::new(),
            None => SourceKind::ALL.to_vec(),
        };
        for kind in kinds {
            let walk = match kind {
                SourceKind::Bpf => Walk::OpenCoded,
                SourceKind::BpfIter => Walk::Iterator,
                SourceKind::Procfs => break,
                SourceKind::Service => continue,
            };
            match Bpf::open(walk, self.fields, host, expected, self.lone_threads) {
                Ok(mut source) => {
                    source.set_section(self.longest_section);
                    bpf = Some((kind, source));
                    break;
                }
                Err(error) if self.source.is_some() => return Err(error),
                Err(error) => refused.push(Refusal {
                    source: kind,
                    error,
                }),
            }
        }
        let kind = bpf.as_ref().map_or(SourceKind::Procfs, |(kind, _)| *kind);
        let mut bpf = bpf.map(|(_, bpf)| bpf);
        let mut calibration = Calibration::default();
        if let Some(bpf) = &mut bpf {
            calibration = calibrate(bpf, &mut procfs, self.fields)?;
            timing::done("comparison with the files");
            // What the walk misses comes from the text, and shall say the same by the same bit.
            procfs.set_thp_disable_bit(calibration.thp_disable_bit);
        }
        let mut assembler = Assembler::new(
            procfs,
            self.fields,
            kind,
            self.reconcile_every,
            host.boot_offset_ns,
        );
        assembler.calibration = calibration;
        Ok(Local {
            process: std::process::id(),
            bpf,
            refused,
            assembler,
        })
    }
}
