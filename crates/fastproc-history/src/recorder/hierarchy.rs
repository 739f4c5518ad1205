//! The cgroups, for `cgroups`.

use std::cmp::Ordering;

use fastproc::cgroups::{Cgroup, Cgroups, Error, Fields, Snapshot, Source, record::UNLIMITED};

use super::{
    cells::{Cell, Held, Members, Row, place, row_of},
    walk::Sink,
};
use crate::table::CGROUPS;

/// What the columns hold.
const FIELDS: Fields = Fields::CPU
    .union(Fields::MEMORY)
    .union(Fields::PIDS)
    .union(Fields::IO)
    .union(Fields::PRESSURE);

/// Reads the cgroups again and again.
#[derive(Debug)]
pub struct Hierarchy(Cgroups);

impl Hierarchy {
    /// Opens the hierarchy, by BPF if that may be tried.
    ///
    /// # Errors
    /// There is no hierarchy of version 2.
    pub fn open(bpf: bool) -> Result<Self, Error> {
        let source = (!bpf).then_some(Source::Files);
        let builder = Cgroups::builder().fields(FIELDS).source(source);
        Ok(Self(builder.open()?))
    }

    /// The rows of all cgroups now. None if they cannot be read.
    pub fn rows(&mut self) -> Vec<(i64, Row)> {
        self.0.snapshot().map_or_else(|_| Vec::new(), rows)
    }

    /// What the last rows were made from.
    pub fn last(&self) -> Snapshot<'_> {
        self.0.last()
    }
}

/// The rows of cgroups, in the order of their ids.
pub fn rows(snapshot: Snapshot<'_>) -> Vec<(i64, Row)> {
    let members = Members::of(&CGROUPS);
    let rows = snapshot.iter().map(|cgroup| row(&members, cgroup));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable_by_key(|(id, _)| *id);
    rows
}

/// Limits: one that is not set is null.
const LIMITS: &[&str] = &["quota_ns", "memory_high_bytes", "memory_max_bytes"];

fn row(members: &Members, cgroup: Cgroup<'_>) -> (i64, Row) {
    let held = Held {
        groups: cgroup.record().identity.groups,
        masked: false,
    };
    let mut row = members.row(cgroup.record(), held);
    row[place(&CGROUPS, "path")] = cgroup.path().into();
    for name in LIMITS {
        let limit = &mut row[place(&CGROUPS, name)];
        if *limit == Cell::Number(UNLIMITED.cast_signed()) {
            *limit = Cell::Null;
        }
    }
    (cgroup.id().cast_signed(), row)
}

/// Gives the rows that differ from those of the last walk of the row group, and those that are gone. Both are in the order
/// of ids.
pub fn differences(before: &[(i64, Row)], now: &[(i64, Row)], sink: &mut dyn Sink) {
    let (mut before, mut now) = (before.iter().peekable(), now.iter().peekable());
    loop {
        let order = match (before.peek(), now.peek()) {
            (Some((before, _)), Some((now, _))) => before.cmp(now),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        let old = before.next_if(|_| order.is_le());
        let new = now.next_if(|_| order.is_ge());
        match (old, new) {
            (Some((id, old)), None) => {
                let gone = row_of(&CGROUPS, &[("id", *id), ("gone", 1)]);
                sink.row(&CGROUPS, (*id, 0), Some(old), &gone);
            }
            (old, Some((id, new))) => {
                let old = old.map(|(_, old)| old);
                if old != Some(new) {
                    sink.row(&CGROUPS, (*id, 0), old, new);
                }
            }
            (None, None) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    #[derive(Default)]
    struct Met(Vec<(i64, bool, Cell)>);

    impl Sink for Met {
        fn row(&mut self, _: &'static Table, key: (i64, i64), before: Option<&Row>, now: &Row) {
            let gone = now[place(&CGROUPS, "gone")].clone();
            self.0.push((key.0, before.is_some(), gone));
        }
    }

    #[test]
    fn only_what_differs_is_given() {
        let row = |id: i64, usage: i64| (id, row_of(&CGROUPS, &[("usage_ns", usage)]));
        let before = [row(1, 5), row(2, 6), row(4, 7)];
        let now = [row(1, 5), row(2, 7), row(3, 1)];
        let mut met = Met::default();
        differences(&before, &now, &mut met);
        let gone = Cell::Number(1);
        assert_eq!(
            met.0,
            [
                (2, true, Cell::Null),
                (3, false, Cell::Null),
                (4, true, gone)
            ]
        );
    }
}
