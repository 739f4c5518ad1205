//! The collector: chooses a source, and makes snapshots that miss nothing.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    Calibration, Error, Fields, Host, Snapshot,
    assemble::Assembler,
    calibrate::calibrate,
    source::{
        SourceKind,
        bpf::{Bpf, Walk},
        procfs::Procfs,
    },
};

/// A walk by the open-coded iterator is one RCU section; past this many tasks it would be long enough to matter on a
/// kernel without preemption, and the iterator that can pause goes first.
const LONG_WALK: u32 = 50_000;

/// What to collect, and how.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    fields: Fields,
    source: Option<SourceKind>,
    reconcile_every: Duration,
    proc_root: PathBuf,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            fields: Fields::TOP,
            source: None,
            reconcile_every: Duration::from_secs(5),
            proc_root: PathBuf::from("/proc"),
        }
    }
}

impl Builder {
    /// The groups of fields to collect. [`Fields::TOP`] if not said.
    pub fn fields(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// The only source to use. If not said, the first that works, in the order of [`SourceKind::ALL`].
    pub fn source(mut self, source: Option<SourceKind>) -> Self {
        self.source = source;
        self
    }

    /// How often to compare the walk with the listing of `/proc`, to find what the walk misses. Five seconds if not
    /// said.
    pub fn reconcile_every(mut self, interval: Duration) -> Self {
        self.reconcile_every = interval;
        self
    }

    /// Opens a source. With a source named, an error says why it cannot be used; without, the last resort `procfs`
    /// needs no privileges, and [`Collector::refused`] remembers why the others did not do.
    pub fn open(self) -> Result<Collector, Error> {
        let host = Host::read()?;
        let mut procfs = Procfs::open(&self.proc_root, self.fields, &host)?;
        let mut listed = Vec::new();
        procfs.pids(&mut listed)?;
        let expected = (
            listed.len() as u32,
            tasks(&self.proc_root).unwrap_or(listed.len() as u32),
        );
        let mut refused = Vec::new();
        let mut bpf = None;
        for kind in self.order(expected.1) {
            let walk = match kind {
                SourceKind::Bpf => Walk::OpenCoded,
                SourceKind::BpfIter => Walk::Iterator,
                SourceKind::Procfs => break,
            };
            match Bpf::open(walk, self.fields, &host, expected) {
                Ok(source) => {
                    bpf = Some((kind, source));
                    break;
                }
                Err(error) if self.source.is_some() => return Err(error),
                Err(error) => refused.push((kind, error)),
            }
        }
        let kind = bpf.as_ref().map_or(SourceKind::Procfs, |(kind, _)| *kind);
        let mut bpf = bpf.map(|(_, bpf)| bpf);
        let mut calibration = Calibration::default();
        if let Some(bpf) = &mut bpf {
            calibration = calibrate(bpf, &mut procfs, self.fields)?;
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
        Ok(Collector {
            host,
            bpf,
            refused,
            assembler,
        })
    }

    fn order(&self, tasks: u32) -> Vec<SourceKind> {
        match self.source {
            Some(source) => vec![source],
            None if tasks > LONG_WALK => {
                vec![SourceKind::BpfIter, SourceKind::Bpf, SourceKind::Procfs]
            }
            None => SourceKind::ALL.to_vec(),
        }
    }
}

/// All tasks of the machine, threads included: the number after the slash in `/proc/loadavg`.
fn tasks(root: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(root.join("loadavg")).ok()?;
    text.split(['/', ' ']).nth(4)?.parse().ok()
}

/// Makes snapshots from one source.
#[derive(Debug)]
pub struct Collector {
    host: Host,
    bpf: Option<Bpf>,
    refused: Vec<(SourceKind, Error)>,
    assembler: Assembler,
}

impl Collector {
    /// Starts to say what to collect.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The source in use.
    pub fn source(&self) -> SourceKind {
        self.assembler.kind
    }

    /// The groups of fields that are collected.
    pub fn fields(&self) -> Fields {
        self.assembler.fields
    }

    /// Sources that were tried first and refused, and why.
    pub fn refused(&self) -> &[(SourceKind, Error)] {
        &self.refused
    }

    /// Facts about this machine.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What was found out about this kernel by comparing records with its text.
    pub fn calibration(&self) -> Calibration {
        self.assembler.calibration
    }

    /// Processes that there is room for before an array has to grow, and bytes of all arrays. `None` for procfs.
    pub fn array(&self) -> Option<(u32, u64)> {
        self.bpf
            .as_ref()
            .map(|bpf| (bpf.capacity(), bpf.memory_bytes()))
    }

    /// How long it took to load and verify the programs. `None` for procfs.
    pub fn load_time(&self) -> Option<Duration> {
        self.bpf.as_ref().map(Bpf::load_time)
    }

    /// Whether signal actions may be taken from the last walk for a process that has not run since. On unless said.
    ///
    /// The values are the same either way; this is for measuring what it saves.
    pub fn set_reuse_actions(&mut self, reuse: bool) {
        if let Some(bpf) = &mut self.bpf {
            bpf.set_reuse_actions(reuse);
        }
    }

    /// Every process, now.
    ///
    /// # Errors
    /// The kernel refused to run a program, or `/proc` cannot be read. The next call may succeed.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>, Error> {
        match &mut self.bpf {
            Some(bpf) => self.assembler.walk(bpf),
            None => self.assembler.read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

    use super::*;
    use crate::record::Record;

    /// Needs root: both sources, of which one needs BPF.
    #[test]
    fn both_sources_say_by_the_same_bit_that_huge_pages_are_disabled() {
        let opened = Collector::builder()
            .fields(Fields::MEMORY_DETAILS)
            .source(Some(SourceKind::Bpf))
            .open();
        let mut collector = match opened {
            Ok(collector) => collector,
            Err(error) => {
                eprintln!("SKIPPED: without BPF there is but one source: {error}");
                return;
            }
        };
        let Some(bit) = collector.calibration().thp_disable_bit else {
            eprintln!("SKIPPED: this kernel has no transparent huge pages to disable");
            return;
        };
        let disabled = transparent_huge_pages_are_disabled().expect("the bit is known");
        for disable in [true, false] {
            disable_transparent_huge_pages(disable).expect("the bit is known");
            let own = std::process::id();
            let walked = collector
                .snapshot()
                .expect("a snapshot")
                .get(own)
                .and_then(|process| process.memory_details().copied())
                .expect("this process is there");
            let mut record = Record::default();
            let procfs = &mut collector.assembler.procfs;
            procfs
                .read_one(own, &mut record, &mut Vec::new(), &mut vec![0])
                .expect("this process can be read");
            assert_eq!(walked.mm_flags >> bit & 1, u64::from(disable));
            assert_eq!(
                record.memory_details.mm_flags,
                u64::from(disable) << bit,
                "from the text"
            );
        }
        disable_transparent_huge_pages(disabled).expect("the bit is known");
    }
}
