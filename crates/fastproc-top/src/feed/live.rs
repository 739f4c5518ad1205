//! This machine, now.

use fastproc::{Baseline, Builder, Collector, Fields, Host, SourceKind, cgroups};

use super::cgroups::Hierarchy;
use crate::{error::Error, exited::Exited, machine::Machine, observation::View, sampler::Sampler};

/// Reads this machine.
#[derive(Debug)]
pub struct Live {
    source: Option<SourceKind>,
    collector: Collector,
    exited: Exited,
    sampler: Sampler,
    /// The cgroups, as long as they are needed.
    cgroups: Option<Hierarchy>,
    /// The snapshot before the last one.
    before: Baseline,
    /// The last snapshot.
    last: Baseline,
    /// The number of snapshots.
    snapshots: u64,
    machine: Machine,
    earlier: Machine,
}

impl Live {
    /// Opens a source for these groups of fields. `quick`: the first snapshot is shown at once.
    pub fn open(source: Option<SourceKind>, fields: Fields, quick: bool) -> Result<Self, Error> {
        let collector = builder(source, fields).quick_start(quick).open()?;
        Ok(Self {
            source,
            collector,
            exited: Exited::default(),
            sampler: Sampler::open()?,
            cgroups: None,
            before: Baseline::default(),
            last: Baseline::default(),
            snapshots: 0,
            machine: Machine::default(),
            earlier: Machine::default(),
        })
    }

    pub(super) fn step(&mut self) -> Result<(), Error> {
        let snapshot = self.collector.snapshot()?;
        std::mem::swap(&mut self.before, &mut self.last);
        self.last.follow(&self.before, &snapshot);
        let compared = self.snapshots > 0;
        self.exited
            .look(compared.then_some(&self.before), &snapshot);
        // Values that are not read each time stay.
        self.earlier.clone_from(&self.machine);
        let bpf = matches!(
            self.collector.source(),
            SourceKind::Bpf | SourceKind::BpfIter
        );
        self.sampler.sample(&mut self.machine, bpf);
        // So the number need not be queried at each screen.
        if !self.machine.cpus.is_empty() {
            self.before.set_cpus(self.machine.cpus.len() as u32);
        }
        self.snapshots += 1;
        Ok(())
    }

    /// Continues with the next snapshot of cgroups, if they are needed. After an error they are no longer read.
    pub(super) fn step_cgroups(&mut self) -> Result<(), cgroups::Error> {
        let (Some(mut cgroups), Some(processes)) = (self.cgroups.take(), self.collector.latest())
        else {
            return Ok(());
        };
        cgroups.step(&processes, self.compared())?;
        self.cgroups = Some(cgroups);
        Ok(())
    }

    /// The snapshot to compare with; `None` at the first one.
    fn compared(&self) -> Option<&Baseline> {
        (self.snapshots > 1).then_some(&self.before)
    }

    pub(super) fn need(&mut self, needs: Fields) -> Result<bool, Error> {
        let collected = self.collector.fields();
        // Threads cost as much as everything else. Keeping another group that is no longer shown costs less than
        // loading again.
        if collected.contains(needs) && !(collected - needs).contains(Fields::THREADS) {
            return Ok(false);
        }
        self.collector = builder(self.source, needs).open()?;
        let snapshot = self.collector.snapshot()?;
        self.last.follow(&self.before, &snapshot);
        if let Some(cgroups) = &mut self.cgroups {
            let before = (self.snapshots > 1).then_some(&self.before);
            cgroups.count(&snapshot, before);
        }
        Ok(true)
    }

    pub(super) fn need_cgroups(
        &mut self,
        needs: Option<cgroups::Fields>,
    ) -> Result<bool, cgroups::Error> {
        let Some(needs) = needs else {
            self.cgroups = None;
            return Ok(false);
        };
        if self
            .cgroups
            .as_ref()
            .is_some_and(|cgroups| cgroups.reads(needs))
        {
            return Ok(false);
        }
        self.cgroups = None;
        let mut cgroups = Hierarchy::open(self.source, needs)?;
        if let Some(processes) = self.collector.latest() {
            cgroups.step(&processes, self.compared())?;
        }
        self.cgroups = Some(cgroups);
        Ok(true)
    }

    pub(super) fn view(&self) -> Option<View<'_>> {
        let compared = self.snapshots > 1;
        Some(View {
            snapshot: self.collector.latest()?,
            before: compared.then_some(&self.before),
            machine: &self.machine,
            earlier: compared.then_some(&self.earlier),
            line: None,
            exited: &self.exited,
            cgroups: self.cgroups.as_ref().map(Hierarchy::view),
        })
    }

    pub(super) fn exits_refused(&self) -> Option<String> {
        self.collector.exits_refused().map(ToString::to_string)
    }

    pub(super) fn host(&self) -> &Host {
        self.collector.host()
    }

    pub(super) fn name(&self) -> &'static str {
        self.collector.source().name()
    }
}

fn builder(source: Option<SourceKind>, fields: Fields) -> Builder {
    Collector::builder()
        .fields(fields)
        .source(source)
        .exits(true)
        .reuse_opening(true)
}
