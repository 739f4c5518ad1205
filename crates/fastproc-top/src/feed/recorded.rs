//! The cgroups of a walk that has passed, as long as they are shown.

use fastproc::{
    Snapshot,
    cgroups::{Baseline, Recorded},
};
use fastproc_columns::cgroups::Members;
use fastproc_history::read::{Cgroups, Error};

use crate::observation;

/// The cgroups of a walk, compared with those of the one before it.
#[derive(Debug, Default)]
pub struct Hierarchy {
    now: Option<Cgroups>,
    /// If they cannot be read.
    none: Recorded,
    before: Option<Baseline>,
    members: Option<Members>,
}

impl Hierarchy {
    /// Reads those of this time, and of the one before.
    pub fn read(
        mut read: impl FnMut(i64) -> Result<Cgroups, Error>,
        time: i64,
        before: Option<i64>,
    ) -> Result<Self, Error> {
        let now = read(time)?;
        // Without them only differences are not known.
        let before = before.and_then(|before| read(before).ok());
        let before = before.map(|cgroups| {
            let mut before = Baseline::default();
            before.set(cgroups.snapshot());
            before
        });
        Ok(Self {
            now: Some(now),
            before,
            ..Self::default()
        })
    }

    /// Counts these processes. `before`: those of the walk before, if there is one.
    pub fn count(&mut self, processes: &Snapshot<'_>, before: Option<&fastproc::Baseline>) {
        self.members = Members::new(processes, before);
    }

    /// The cgroups; none if they cannot be read.
    pub fn view(&self) -> observation::Cgroups<'_> {
        let now = self.now.as_ref();
        observation::Cgroups {
            snapshot: now.map_or_else(|| self.none.snapshot(), Cgroups::snapshot),
            before: self.before.as_ref(),
            members: self.members.as_ref(),
            absent: &[],
            source: "history",
        }
    }
}
