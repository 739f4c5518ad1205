//! One snapshot, and everything that is derived from it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use fastproc::{
    Collector, Fields, Refusal, SourceKind, access::may_trace_all, cgroups, container::Names,
    frozen,
};
use rustix::thread::{CapabilitySet, capabilities};

use crate::{
    costly::{self, Costly},
    describer::Describer,
    exposition::Exposition,
    groups::{Gone, Moment, Options, Tracker},
    link::Used,
    metrics::{
        CgroupMetrics, CgroupSettings, Extras, HostMetrics, LeftOut, Machine, Own, Service,
        Switches, series_of_a_group, write_groups, write_own,
    },
    naming::{NameError, Rules},
    reloaded::Reloaded,
};

/// How to open an [`Exporter`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The only source of processes. Default: the first that works.
    pub source: Option<SourceKind>,
    /// How processes are grouped.
    pub groups: Options,
    /// The enabled metrics of the machine.
    pub host: Switches,
    /// How cgroups are read, if they have metrics.
    pub cgroups: Option<CgroupSettings>,
    /// The costly values to read.
    pub costly: costly::Settings,
    /// Whether to record processes that exit between two snapshots.
    pub exits: bool,
    /// Whether other rules may be loaded while it runs; then everything that rules may need is read.
    pub regroups: bool,
    /// The root of the host's file system, which has the files of container runtimes. Default: `/`, or the root of the
    /// first process.
    pub host_root: Option<PathBuf>,
}

/// Why the exporter cannot run.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Processes cannot be read.
    #[error("processes cannot be read")]
    Processes(#[from] fastproc::Error),
    /// Counters cannot be read.
    #[error("the machine's counters cannot be read")]
    Counters(#[from] fastproc::counters::Error),
    /// The folder where the root of the machine is mounted cannot be opened.
    #[error("{} cannot be opened: mount the root of the machine there, or leave out --path.rootfs (--host-root)", path.display())]
    HostRoot {
        /// The folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Cgroups cannot be read.
    #[error("cgroups cannot be read")]
    Cgroups(#[from] cgroups::Error),
}

/// Takes snapshots, updates groups, and writes metrics.
#[derive(Debug)]
pub struct Exporter {
    collector: Collector,
    tracker: Tracker,
    host_metrics: HostMetrics,
    cgroups: Option<CgroupMetrics>,
    proc_hides: bool,
    /// Whether the kernel shows the I/O of all processes, or itself decides of which.
    shows_io: bool,
    counters_current: bool,
    scrape_errors: u64,
    missed: u32,
    /// What it reports about itself.
    own: Own,
    costly: Costly,
    service: Option<Box<dyn Service>>,
    describer: Describer,
}

impl Exporter {
    /// Opens the sources. Privileges that are needed only for that can be dropped afterwards.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let tracker = Tracker::new(settings.groups);
        // Context switches and states are summed up over threads.
        let mut fields = Fields::THREADS;
        if tracker.has_rules() || settings.regroups {
            fields |= Fields::TOP | Fields::IO;
        }
        if tracker.wants().username || settings.regroups {
            fields |= Fields::USERS;
        }
        if tracker.wants().container || settings.regroups || settings.cgroups.is_some() {
            fields |= Fields::CGROUP;
        }
        let builder = Collector::builder()
            .source(settings.source)
            // It takes snapshots itself, and a service may be part of the same process.
            .service_socket(None)
            // Processes that a walk misses are rare, and listing thousands of processes takes as long as walking them.
            .reconcile_every(Duration::from_secs(60))
            // The record of a process with one thread holds everything that is reported of the thread.
            .lone_threads(false)
            .exits(settings.exits)
            .exit_cmdlines(settings.exits)
            .reuse_opening(true);
        let mut collector = builder.clone().fields(fields).open()?;
        let shows_io = collector.source() == SourceKind::Procfs || may_trace_all();
        if !shows_io {
            // BPF does not ask whether the kernel would show it.
            collector = builder.fields(fields - Fields::IO).open()?;
        }
        // The kernel's text, from kept descriptors: programs would save 20 us a scrape, and take 50 ms to load.
        let counters = fastproc::counters::Options::new().bpf(false).open()?;
        let missed = collector.snapshot()?.stats().missed;
        let proc_hides = fastproc::host::proc_hides_processes()?;
        let root = settings.host_root.as_deref();
        let machine = Machine::find(root).map_err(|source| OpenError::HostRoot {
            path: root.unwrap_or(Path::new("/")).into(),
            source,
        })?;
        let names = root.map_or_else(Names::default, Names::from_root);
        let names = Arc::new(Mutex::new(names));
        let describer = Describer::new(collector.host(), names.clone())?;
        let cgroups = settings
            .cgroups
            .map(|settings| CgroupMetrics::open(settings, names, machine.clone()));
        let cgroups = cgroups.transpose()?;
        let others = cgroups.as_ref().map(CgroupMetrics::families);
        let others = others.unwrap_or_default();
        Ok(Self {
            missed,
            proc_hides,
            own: Own {
                source: collector.source().name(),
                series_of_a_group: series_of_a_group(settings.costly),
                reloaded: Reloaded::now(),
                ..Own::default()
            },
            costly: Costly::new(settings.costly),
            shows_io,
            host_metrics: HostMetrics::new(counters, settings.host, machine, &others),
            cgroups,
            collector,
            tracker,
            counters_current: false,
            scrape_errors: 0,
            service: None,
            describer,
        })
    }

    /// The source of processes.
    pub fn source(&self) -> SourceKind {
        self.collector.source()
    }

    /// Whether files in `/proc` are read that require permission to trace: by the source itself, for processes that its
    /// walk misses, for costly values, for names of containers, and for every name if `/proc` hides processes.
    pub fn needs_proc_of_others(&self) -> bool {
        self.collector.source() == SourceKind::Procfs
            || self.missed > 0
            || self.proc_hides
            || self.costly.is_wanted()
            || self.tracker.wants().container_names
            || self.cgroups.is_some()
    }

    /// The reader of cgroups, if they have metrics.
    pub fn cgroups(&self) -> Option<&cgroups::Cgroups> {
        self.cgroups.as_ref().map(CgroupMetrics::cgroups)
    }

    /// Sources that were tried first and refused, and why.
    pub fn refused(&self) -> &[Refusal] {
        self.collector.refused()
    }

    /// Why exits are not recorded although they are wanted.
    pub fn exits_refused(&self) -> Option<&fastproc::Error> {
        self.collector.exits_refused()
    }

    /// The groups.
    pub fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// Applies a configuration that was read again, or notes that it could not be read. Other rules count from the next
    /// [`collect`](Self::collect) on.
    pub fn reload(&mut self, rules: Option<Rules>, reloaded: Reloaded) {
        if let Some(rules) = rules {
            self.describer.forget();
            self.tracker.regroup(rules);
        }
        self.own.reloaded = reloaded;
    }

    /// Adds the time and memory of the process that serves the metrics to those of this one.
    pub fn count_as_own(&mut self, used: Used) {
        self.own.beside = used;
    }

    /// Adds the metrics of a service that runs in this process.
    pub fn tell_of(&mut self, service: impl Service + 'static) {
        self.service = Some(Box::new(service));
    }

    /// Reads everything once. An error is counted in the metrics, and returned.
    pub fn collect(&mut self) -> Result<(), OpenError> {
        let hides = self.proc_hides || !self.shows_io;
        self.own.sees_all = sees_all(self.collector.source(), hides);
        let counters = self.host_metrics.collect();
        self.counters_current = counters.is_ok();
        self.own.counter_errors += u64::from(counters.is_err());
        let btime = self.host_metrics.btime();
        let cgroups = self.cgroups.as_mut().map(CgroupMetrics::collect);
        let cgroups = cgroups.transpose();
        let result = match self.collector.snapshot() {
            Ok(snapshot) => {
                let stats = snapshot.stats();
                let moment = Moment {
                    boottime_ns: stats.kernel_boottime_ns(),
                    btime,
                };
                self.describer.renew();
                let mut ended: Option<Vec<_>> = snapshot.exits().map(|exits| {
                    let gone = |exit| Gone {
                        exit,
                        cmdline: snapshot.exit_cmdline(exit).map(|line| line.bytes),
                    };
                    exits.iter().map(gone).collect()
                });
                self.tracker.update(
                    moment,
                    snapshot.iter_with_changed(),
                    snapshot.threads(),
                    ended.as_deref_mut(),
                    &mut self.describer,
                );
                if let Some(ended) = ended {
                    let exits = self.own.exits.get_or_insert_default();
                    exits.recorded += ended.len() as u64;
                    exits.lost += stats.lost_exits;
                }
                self.host_metrics.count(&snapshot);
                if let Some(cgroups) = &mut self.cgroups {
                    cgroups.count(&snapshot, btime);
                }
                self.costly.follow(&self.tracker, stats.boottime_ns);
                self.own.snapshots += 1;
                self.own.torn += u64::from(stats.torn);
                self.own.grown += u64::from(stats.grown);
                self.own.stats = Some(stats);
                Ok(())
            }
            Err(error) => {
                self.scrape_errors += 1;
                self.own.stats = None;
                Err(error.into())
            }
        };
        counters?;
        cgroups?;
        result
    }

    /// Parts of textfiles that are left out now, and were not at the last call.
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.host_metrics.left_out()
    }

    /// Metrics that are left out because this process has another network or another name than the machine.
    pub fn unseen(&self) -> Vec<&'static str> {
        self.host_metrics.unseen()
    }

    /// Why a process has no name although a rule matched it, if that happened since the last call.
    pub fn take_name_error(&mut self) -> Option<NameError> {
        self.tracker.take_name_error()
    }

    /// Reads costly values for the next scrape, until their share of the time is used up or `stop` returns true.
    pub fn refresh_costly(&mut self, stop: impl FnMut() -> bool) {
        self.costly.refresh(stop);
    }

    /// Writes what was collected last.
    pub fn write(&mut self, text: &mut Exposition) {
        let current = self.own.stats.is_some();
        write_groups(
            text,
            &self.tracker,
            current,
            Extras {
                btime: self.host_metrics.btime(),
                scrape_errors: self.scrape_errors,
                costly: self.costly.sums(),
                wchans: self.costly.wchans(),
                wanted: self.costly.settings(),
            },
        );
        text.end_part("groups");
        if self.counters_current {
            self.host_metrics.write(text, current);
        }
        text.end_part("");
        if let Some(cgroups) = &self.cgroups {
            cgroups.write(text);
            text.end_part("cgroups");
        }
        let service = self.service.as_ref().map(|service| service.read());
        let own = &mut self.own;
        own.folded_groups = self.tracker.folded_groups();
        own.folded_threads = self.tracker.folded_threads();
        own.costly_cpu_ns = self.costly.is_wanted().then(|| self.costly.spent_ns());
        own.btime = self.host_metrics.btime();
        write_own(text, own, service.as_ref());
    }
}

/// Whether the kernel hides nothing from this thread: BPF is not restricted, `/proc` requires `CAP_SYS_PTRACE`. With
/// `hidepid` the names of groups are hidden as well, wherever the numbers come from; and I/O from a user who may load
/// BPF programs, but not trace other users' processes.
fn sees_all(source: SourceKind, hides: bool) -> bool {
    let by_bpf = source != SourceKind::Procfs && !hides;
    by_bpf
        || frozen::folder().is_some()
        || capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_PTRACE))
}
