//! The cgroups, for `cgroups`.

use std::cmp::Ordering;

use fastproc::cgroups::{Cgroup, Cgroups, Error, Fields, Source};

use super::{
    cells::{Cell, EVERYWHERE, Row, place},
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
pub struct Hierarchy {
    cgroups: Cgroups,
    rows: Vec<(i64, Row)>,
}

impl Hierarchy {
    /// Opens the hierarchy, by BPF if that may be tried.
    ///
    /// # Errors
    /// There is no hierarchy of version 2.
    pub fn open(bpf: bool) -> Result<Self, Error> {
        let source = (!bpf).then_some(Source::Files);
        let cgroups = Cgroups::builder().fields(FIELDS).source(source).open()?;
        Ok(Self {
            cgroups,
            rows: Vec::new(),
        })
    }

    /// The rows of all cgroups now, in the order of their ids. None if they cannot be read.
    pub fn rows(&mut self) -> &[(i64, Row)] {
        self.rows.clear();
        if let Ok(snapshot) = self.cgroups.snapshot() {
            let rows = snapshot
                .iter()
                .map(|cgroup| (cgroup.id().cast_signed(), row(cgroup)));
            self.rows.extend(rows);
            self.rows.sort_unstable_by_key(|(id, _)| *id);
        }
        &self.rows
    }
}

fn row(cgroup: Cgroup<'_>) -> Row {
    let mut row = vec![Cell::Null; CGROUPS.columns.len() - EVERYWHERE];
    row[place(&CGROUPS, "path")] = cgroup.path().into();
    let mut set = |name: &str, value: Option<u64>| row[place(&CGROUPS, name)] = value.into();
    set("id", Some(cgroup.id()));
    set("populated", Some(cgroup.record().identity.populated.into()));
    if let Some(cpu) = cgroup.cpu() {
        set("usage_ns", Some(cpu.usage_ns));
        set("user_ns", Some(cpu.user_ns));
        set("system_ns", Some(cpu.system_ns));
        set("periods", cpu.periods());
        set("throttled", cpu.throttled());
        set("throttled_ns", cpu.throttled_ns());
    }
    if let Some(memory) = cgroup.memory() {
        set("memory_bytes", memory.current());
        set("swap_bytes", memory.swap_current());
        set("oom_kills", memory.oom_kills());
    }
    if let Some(pids) = cgroup.pids() {
        set("processes", Some(pids.current));
    }
    if let Some(io) = cgroup.io() {
        set("read_bytes", Some(io.rbytes));
        set("write_bytes", Some(io.wbytes));
        set("reads", Some(io.rios));
        set("writes", Some(io.wios));
    }
    if let Some(pressure) = cgroup.pressure() {
        set("cpu_some_ns", Some(pressure.cpu_some_ns));
        set("cpu_full_ns", Some(pressure.cpu_full_ns));
        set("memory_some_ns", Some(pressure.memory_some_ns));
        set("memory_full_ns", Some(pressure.memory_full_ns));
        set("io_some_ns", Some(pressure.io_some_ns));
        set("io_full_ns", Some(pressure.io_full_ns));
    }
    row
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
                let mut gone = vec![Cell::Null; old.len()];
                gone[place(&CGROUPS, "id")] = (*id).into();
                gone[place(&CGROUPS, "gone")] = 1.into();
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
        let row = |id: i64, usage: i64| {
            let mut row = vec![Cell::Null; CGROUPS.columns.len() - EVERYWHERE];
            row[place(&CGROUPS, "usage_ns")] = usage.into();
            (id, row)
        };
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
