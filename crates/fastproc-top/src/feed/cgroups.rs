//! The cgroups of this machine, as long as they are shown.

use fastproc::{
    Snapshot, SourceKind,
    cgroups::{Baseline, Cgroups, Error, Fields, Source},
};
use fastproc_columns::cgroups::Members;

use crate::observation;

/// Reads them.
#[derive(Debug)]
pub struct Hierarchy {
    reader: Cgroups,
    fields: Fields,
    before: Baseline,
    /// How many snapshots there were.
    snapshots: u64,
    members: Option<Members>,
}

impl Hierarchy {
    /// Opens it for these groups of fields. Whoever reads processes from files reads cgroups from files.
    pub fn open(processes: Option<SourceKind>, fields: Fields) -> Result<Self, Error> {
        let source = (processes == Some(SourceKind::Procfs)).then_some(Source::Files);
        let reader = Cgroups::builder().fields(fields).source(source).open()?;
        Ok(Self {
            reader,
            fields,
            before: Baseline::default(),
            snapshots: 0,
            members: None,
        })
    }

    /// Whether it reads all of these.
    pub fn reads(&self, fields: Fields) -> bool {
        self.fields.contains(fields)
    }

    /// Goes on to the next snapshot, which is compared with the one before.
    pub fn step(&mut self, processes: &Snapshot<'_>) -> Result<(), Error> {
        if self.snapshots > 0 {
            self.before.set(self.reader.last());
        }
        self.reader.snapshot()?;
        self.snapshots += 1;
        self.count(processes);
        Ok(())
    }

    /// Counts these processes.
    pub fn count(&mut self, processes: &Snapshot<'_>) {
        self.members = Members::new(processes);
    }

    /// The last snapshot.
    pub fn view(&self) -> observation::Cgroups<'_> {
        observation::Cgroups {
            snapshot: self.reader.last(),
            before: (self.snapshots > 1).then_some(&self.before),
            members: self.members.as_ref(),
            absent: self.reader.absent_controllers(),
            source: self.reader.source(),
        }
    }
}
