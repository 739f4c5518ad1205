//! The machine-wide counters: `/proc/stat` and `/proc/vmstat` from the kernel's own structures, in one run, and rendered
//! to the kernel's own bytes.
//!
//! ```no_run
//! use fastproc::counters::{Counters, Want};
//!
//! let mut counters = Counters::open()?;
//! let earlier = counters.collect(Want::STAT | Want::VMSTAT)?.clone();
//! std::thread::sleep(std::time::Duration::from_secs(1));
//! let later = counters.collect(Want::STAT | Want::VMSTAT)?;
//! let change = later.since(&earlier);
//! println!("{:.0} % busy, {} faults", 100.0 * change.busy(), change.vm("pgfault").unwrap_or(0));
//! # Ok::<(), fastproc::counters::Error>(())
//! ```
//!
//! # Trust
//!
//! When [`Counters`] opens, and every few seconds, after CPU hotplug and after a step of the clock, every line is
//! compared with the kernel's text. A line that differs comes from the text from then on, and with it all lines of its
//! file, so that no file costs more than its text. Where BPF cannot be used, all lines do; `fastproc doctor` shows which
//! and why. The dirty thresholds of `/proc/vmstat` are not
//! counters: the kernel computes them for each reader. If their inputs cannot be read, they come from a text that
//! is at most [`Counters::text_latency`] old. (The kernel shows other thresholds to a reader with real-time
//! priority.)
//!
//! # Interrupt counts
//!
//! Counts are exact by default, and yet most of them need not be read: every interrupt also adds to a sum, and if
//! the interrupts that were active explain the whole increase of the sum, no other count has changed. If even
//! that is too expensive, [`Counters::set_stat_irqs_latency`] allows the counts to be slightly old.

mod arch;
mod clock;
mod cpus;
mod descriptors;
mod error;
mod forks;
mod gather;
mod kept_file;
mod kinds;
mod layout;
mod object;
mod plan;
mod reader;
mod report;
mod routes;
mod sample;
mod symbols;
mod trust;
mod types;

use std::time::Duration;

use bitflags::bitflags;

pub use self::{
    error::Error,
    kept_file::MachineFile,
    report::{Evidence, LineReport, Report, Route, WhyText},
    sample::{MachineChange, Sample},
};
use self::{gather::Known, kept_file::KeptFile, plan::Kernel, reader::Reader, routes::Survey};
#[cfg(test)]
pub(crate) use self::{layout::STRUCTURES, object::OBJECT};
use crate::{
    base::{
        host::jiffy,
        timing::{self, Part, Timing},
    },
    text::{machine_stat::MachineStat, vmstat::VmStat},
};

bitflags! {
    /// What to collect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Want: u8 {
        /// `/proc/stat`.
        const STAT = 1 << 0;
        /// `/proc/vmstat`.
        const VMSTAT = 1 << 1;
    }
}

/// How to open [`Counters`].
#[derive(Clone, Debug)]
pub struct Options {
    bpf: bool,
    /// Whether to use the addresses that `/proc/kallsyms` shows. Without them, structures lead to the counters.
    symbols: bool,
    stat_irqs_latency: Duration,
    text_latency: Duration,
    /// How often every line is compared with the text, once a few collections were made.
    check_interval: Duration,
    line_by_line: bool,
    /// A line that is made wrong, to test the comparison.
    #[cfg(test)]
    disagree: Option<&'static str>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bpf: true,
            symbols: true,
            stat_irqs_latency: Duration::ZERO,
            text_latency: Duration::from_millis(100),
            check_interval: Duration::from_secs(5),
            line_by_line: false,
            #[cfg(test)]
            disagree: None,
        }
    }
}

impl Options {
    /// The defaults: BPF and symbols if possible, exact interrupt counts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to use BPF. Without it everything comes from the kernel's files.
    #[must_use]
    pub fn bpf(mut self, bpf: bool) -> Self {
        self.bpf = bpf;
        self
    }

    /// See [`Counters::set_stat_irqs_latency`].
    #[must_use]
    pub fn stat_irqs_latency(mut self, latency: Duration) -> Self {
        self.stat_irqs_latency = latency;
        self
    }

    /// See [`Counters::text_latency`].
    #[must_use]
    pub fn text_latency(mut self, latency: Duration) -> Self {
        self.text_latency = latency;
        self
    }

    /// Whether to read every line by BPF for which that is possible, even if other lines need the text: to compare them.
    /// Otherwise one line that comes from the text brings all others with it, because reading the text costs the same
    /// for one line as for all. Default: false.
    #[must_use]
    pub fn line_by_line(mut self, line_by_line: bool) -> Self {
        self.line_by_line = line_by_line;
        self
    }

    /// Opens the counters and compares every line with the kernel's text, which takes some tens of
    /// milliseconds. If BPF cannot be used, [`Counters::unavailable`] says why, and the counters come from
    /// the kernel's files. A file that cannot be read fails when its values are collected.
    pub fn open(self) -> Result<Counters, Error> {
        let timing = Timing::start();
        let opened = if self.bpf {
            open_kernel(&self)
        } else {
            Err(Error::NotAsked)
        };
        let (kernel, unavailable) = match opened {
            Ok(kernel) => (Some(kernel), None),
            Err(error) => (None, Some(error)),
        };
        let mut counters = Counters {
            process: std::process::id(),
            kernel,
            unavailable,
            opening: Box::default(),
            reader: Reader::new(self),
        };
        counters.set_stat_irqs_latency(counters.stat_irqs_latency());
        if let Some(kernel) = &mut counters.kernel {
            counters.reader.check_lines(kernel, true)?;
            timing::done("comparison with the files");
        }
        counters.opening = timing.parts().into();
        Ok(counters)
    }
}

fn open_kernel(options: &Options) -> Result<Kernel, Error> {
    let stat = MachineStat::parse(KeptFile::new(MachineFile::Stat).read()?)?;
    let vmstat = VmStat::parse(KeptFile::new(MachineFile::Vmstat).read()?)?;
    timing::done("the files");
    let page_size = rustix::param::page_size() as u64;
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    let huge: u64 = huge
        .ok()
        .and_then(|size| size.trim().parse().ok())
        .unwrap_or(page_size);
    let known = Known {
        irq_errors: 0,
        idle_from_tick: true,
        huge_pages: huge / page_size,
        page_size,
    };
    let survey = Survey::new(stat.irqs.len(), &vmstat.names, options.symbols)?;
    Kernel::open(survey, vmstat.names.clone(), known, stat.irqs.len())
}

/// Reads the machine-wide counters: collects, compares with the text when that is due, and renders.
#[derive(Debug)]
pub struct Counters {
    /// The process that opened it. A child shares its maps and files, and must not use them.
    process: u32,
    kernel: Option<Kernel>,
    unavailable: Option<Error>,
    opening: Box<[Part]>,
    reader: Reader,
}

impl Counters {
    /// Opens with the default [`Options`].
    pub fn open() -> Result<Self, Error> {
        Options::new().open()
    }

    fn check_process(&self) -> Result<(), Error> {
        if self.process == std::process::id() {
            Ok(())
        } else {
            Err(crate::base::error::Error::Forked.into())
        }
    }

    /// Collects the values that `want` names, all in one run. The others keep their values.
    pub fn collect(&mut self, want: Want) -> Result<&Sample, Error> {
        self.check_process()?;
        self.reader.collect(self.kernel.as_mut(), want)
    }

    /// The values of the last collection.
    pub fn sample(&self) -> &Sample {
        &self.reader.sample
    }

    /// The text of `/proc/stat`, now.
    pub fn stat(&mut self) -> Result<&[u8], Error> {
        self.text(MachineFile::Stat)
    }

    /// The text of `/proc/vmstat`, now.
    pub fn vmstat(&mut self) -> Result<&[u8], Error> {
        self.text(MachineFile::Vmstat)
    }

    /// The text of any of the machine's files, now: computed if possible, otherwise read through a descriptor that
    /// stays open. An absent file is an error with the kernel's error number.
    pub fn text(&mut self, file: MachineFile) -> Result<&[u8], Error> {
        self.check_process()?;
        self.reader.text(self.kernel.as_mut(), file)
    }

    /// The number of collections that read only the interrupts that have changed, and of those that read all.
    #[doc(hidden)]
    pub fn shortcuts(&self) -> (u64, u64) {
        let kernel = self.kernel.as_ref();
        kernel.map_or((0, 0), |kernel| kernel.descriptors.tally())
    }

    /// Why BPF is not used. `None` if it is.
    pub fn unavailable(&self) -> Option<&Error> {
        self.unavailable.as_ref()
    }

    /// What opening took, part by part.
    pub fn opening(&self) -> &[Part] {
        &self.opening
    }

    /// How old the counts by interrupt may be. Default: 0.
    pub fn stat_irqs_latency(&self) -> Duration {
        self.reader.options.stat_irqs_latency
    }

    /// Sets how old the counts by interrupt may be, rounded up to a jiffy. With 0 they are always exact. It
    /// applies from the next collection on. Everything else is always read again.
    ///
    /// If [`Report::latency_knob`] is false this saves nothing: the kernel prints its whole file.
    pub fn set_stat_irqs_latency(&mut self, latency: Duration) {
        let jiffy = jiffy().as_nanos();
        let rounded = latency.as_nanos().div_ceil(jiffy).saturating_mul(jiffy);
        let rounded = Duration::from_nanos(u64::try_from(rounded).unwrap_or(u64::MAX));
        self.reader.options.stat_irqs_latency = rounded;
    }

    /// How old lines may be that the kernel computes for each reader, if only its text has them. Default: 100
    /// ms; see [`Options::text_latency`].
    pub fn text_latency(&self) -> Duration {
        self.reader.options.text_latency
    }

    /// The source of every line, and the results of its comparison.
    pub fn report(&self) -> Report {
        let checks = self.reader.checks;
        if let Some(kernel) = &self.kernel {
            return kernel.report(checks);
        }
        let names = |file| -> Vec<(&'static str, String)> {
            let mut kept = KeptFile::new(file);
            let text = kept.read().unwrap_or_default();
            text.split(|&byte| byte == b'\n')
                .filter_map(|line| line.split(|&byte| byte == b' ').next())
                .filter(|name| !name.is_empty())
                .map(|name| (file.path(), String::from_utf8_lossy(name).into_owned()))
                .collect()
        };
        let lines = names(MachineFile::Stat)
            .into_iter()
            .chain(names(MachineFile::Vmstat));
        Report {
            unavailable: self.unavailable().map(ToString::to_string),
            symbols: false,
            typed_loads: false,
            latency_knob: false,
            checks,
            lines: lines
                .map(|(file, name)| LineReport {
                    file,
                    name,
                    route: Route::Text(WhyText::NoBpf),
                    evidence: Evidence::None,
                    rounds: 0,
                    outside: 0,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
