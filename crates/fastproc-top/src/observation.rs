//! The data of a screen: two snapshots to compare.

use fastproc::{Baseline, Snapshot, cgroups};
use fastproc_columns::cgroups::{Members, Row, Rows};

use crate::{exited::Exited, machine::Machine};

/// The last snapshot and the one before it, with the machine's numbers at both.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Every process.
    pub snapshot: Snapshot<'a>,
    /// The previous snapshot; `None` for the first one.
    pub before: Option<&'a Baseline>,
    /// The machine.
    pub machine: &'a Machine,
    /// The machine at the previous snapshot.
    pub earlier: Option<&'a Machine>,
    /// The load of the machine around a time that has passed; `None`: this is now.
    pub line: Option<&'a Line>,
    /// Processes that exited between the two.
    pub exited: &'a Exited,
    /// The cgroups; `None` unless they are shown.
    pub cgroups: Option<Cgroups<'a>>,
}

/// All cgroups at about the time of the snapshot of the processes.
#[derive(Clone, Copy, Debug)]
pub struct Cgroups<'a> {
    /// Every cgroup.
    pub snapshot: cgroups::Snapshot<'a>,
    /// The cgroups before it; `None` for the first snapshot.
    pub before: Option<&'a cgroups::Baseline>,
    /// How many processes they have, if that is known.
    pub members: Option<&'a Members>,
    /// The controllers whose values are not known here.
    pub absent: &'a [&'static str],
    /// Where they are read from.
    pub source: cgroups::Source,
}

impl<'a> Cgroups<'a> {
    /// A row for each.
    pub fn rows(&self) -> Rows<'a> {
        Rows::new(self.snapshot, self.before, self.members)
    }

    /// The row of one cgroup.
    pub fn row(&self, id: u64) -> Option<Row<'a>> {
        Row::new(id, self.snapshot, self.before, self.members)
    }
}

/// The load of the machine over a time, to show where one is.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The time, in microseconds since 1970: from the first on, and before the second.
    pub time: (i64, i64),
    /// The share of all CPUs' time in which they were busy, before each of these times.
    pub busy: Vec<(i64, f64)>,
}
