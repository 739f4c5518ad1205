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
    pub source: &'static str,
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

/// The load rises by at least this share of all CPUs where it has a spike.
const SPIKE: f64 = 0.1;

impl Line {
    /// The next time after this one at which the load rises to a spike, or the last one before. A spike is above the usual load
    /// of this time by half of what the highest load is, and by a tenth of all CPUs.
    pub fn spike(&self, time: i64, forward: bool) -> Option<i64> {
        let mut loads: Vec<f64> = self.busy.iter().map(|(_, busy)| *busy).collect();
        loads.sort_unstable_by(f64::total_cmp);
        let (usual, highest) = (*loads.get(loads.len() / 2)?, *loads.last()?);
        let high = usual + ((highest - usual) / 2.0).max(SPIKE);
        let pairs = self.busy.windows(2).map(|pair| (pair[0].1, pair[1]));
        let mut rises =
            pairs.filter_map(|(before, (at, busy))| (before < high && busy >= high).then_some(at));
        if forward {
            rises.find(|at| *at > time)
        } else {
            rises.rfind(|at| *at < time)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_begins_where_the_load_rises_far_above_the_usual() {
        let mut line = Line::default();
        line.busy
            .extend((0..100).map(|at| (at, 0.2 + (at % 3) as f64 / 100.0)));
        assert_eq!(line.spike(0, true), None);
        for at in [40, 41, 42, 70] {
            line.busy[at].1 = 0.9;
        }
        line.busy[20].1 = 0.4;
        let next = |time| (line.spike(time, false), line.spike(time, true));
        assert_eq!(next(0), (None, Some(40)));
        assert_eq!(next(40), (None, Some(70)));
        assert_eq!(next(41), (Some(40), Some(70)));
        assert_eq!(next(99), (Some(70), None));
    }
}
