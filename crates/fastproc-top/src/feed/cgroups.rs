//! The cgroups of this machine, as long as they are shown.

use fastproc::{
    Baseline, Snapshot, SourceKind,
    cgroups::{Error, Fields, Source},
};
use fastproc_columns::cgroups::Reader;

use crate::observation;

/// Reads the cgroups beside the processes.
#[derive(Debug)]
pub struct Hierarchy {
    reader: Reader,
    fields: Fields,
}

impl Hierarchy {
    /// Opens it for these groups of fields. If processes are read from files, cgroups are, too.
    pub fn open(processes: Option<SourceKind>, fields: Fields) -> Result<Self, Error> {
        let source = (processes == Some(SourceKind::Procfs)).then_some(Source::Files);
        let reader = Reader::open_fields(fields, source)?;
        Ok(Self { reader, fields })
    }

    /// Whether it reads all of these.
    pub fn reads(&self, fields: Fields) -> bool {
        self.fields.contains(fields)
    }

    /// Reads the next snapshot, which is compared with the one before.
    pub fn step(
        &mut self,
        processes: &Snapshot<'_>,
        before: Option<&Baseline>,
    ) -> Result<(), Error> {
        self.reader.read_cgroups()?;
        self.count(processes, before);
        Ok(())
    }

    /// Counts these processes. `before`: the snapshot before, if there is one.
    pub fn count(&mut self, processes: &Snapshot<'_>, before: Option<&Baseline>) {
        self.reader.count(processes, before);
    }

    /// The last snapshot.
    pub fn view(&self) -> observation::Cgroups<'_> {
        let cgroups = self.reader.cgroups();
        observation::Cgroups {
            snapshot: cgroups.last(),
            before: self.reader.before(),
            members: self.reader.members(),
            absent: cgroups.absent_controllers(),
            source: cgroups.source().name(),
        }
    }
}
