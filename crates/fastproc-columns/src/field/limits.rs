//! The limits of a process's cgroup.

use crate::{
    limits::Limit,
    row::{Lookup, Row},
    value::Value::{self, Real, Unknown, Unsigned},
};

fn of(row: &Row<'_>, lookup: &mut Lookup) -> Option<Limit> {
    // Limits are those of now, not those at the time of an event.
    if row.event.is_some() {
        return None;
    }
    let id = row.process.cgroup_id()?;
    let path = lookup.details.cgroup(row.process).ok()?;
    lookup.limits.get(id, path)
}

macro_rules! limit {
    ($name:ident, $form:expr) => {
        pub(super) fn $name<'x>(row: &'x Row<'_>, lookup: &'x mut Lookup) -> Value<'x> {
            let limit = of(row, lookup).and_then(|limit| limit.$name);
            limit.map_or(Unknown, $form)
        }
    };
}

limit!(memory, Unsigned);
limit!(memory_used, |part| Real(part * 100.0));
limit!(cpu, |cpus| Real(cpus * 100.0));
limit!(tasks, Unsigned);
limit!(tasks_used, |part| Real(part * 100.0));
