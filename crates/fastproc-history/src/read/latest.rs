//! The last row of each process, or of each cgroup, at a time.

use std::{collections::HashMap, ops::ControlFlow};

use super::{Error, history::History, record::Members};
use crate::{rows::Rows, table::Table};

/// A process: its id and its start. Or a cgroup: its id and 0.
pub(super) type Key = (i64, i64);

/// What is known of it at a time.
#[derive(Debug)]
pub(super) struct Latest<T> {
    /// Its last row, if it has one, in microseconds since 1970.
    pub time: i64,
    pub value: Option<T>,
    /// When it was found to be gone, if it was.
    pub gone: Option<i64>,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self {
            time: i64::MIN,
            value: None,
            gone: None,
        }
    }
}

impl<T> Latest<T> {
    /// Whether it was there at a walk, the last one with a row for each being of the time `whole`.
    pub(super) fn is_there(&self, whole: i64) -> bool {
        self.gone.is_none_or(|gone| gone < self.time) && self.time >= whole
    }
}

/// Rows of one key that stand together.
struct Run {
    key: Key,
    last: Option<(i64, usize)>,
    gone: Option<i64>,
}

impl History {
    /// Finds the last row of each key in a time in microseconds, both inclusive, and makes a value from it.
    pub(super) fn latest<T>(
        &mut self,
        table: &'static Table,
        time: (i64, i64),
        wanted: impl Iterator<Item = &'static str>,
        mut make: impl FnMut(Key, &Members<'_>, &Rows, usize) -> T,
    ) -> Result<HashMap<Key, Latest<T>>, Error> {
        let keys: Vec<_> = table.order.iter().copied().chain(["gone"]).collect();
        let wanted: Vec<&str> = wanted.chain(keys.iter().copied()).collect();
        let mut latest: HashMap<Key, Latest<T>> = HashMap::new();
        self.each_group(table, time, |_, file, group| {
            // Few rows are the last ones: of the others only these columns are kept in memory.
            let rows = file.read(group, &keys)?;
            let mut runs = Vec::new();
            each_run(&rows, time, |run| runs.push(run));
            let last = runs.iter().filter_map(|run| Some(run.last?.1));
            let rows = file.read_rows(group, &wanted, &last.collect::<Vec<_>>())?;
            let members = Members::new(&rows);
            let mut row = 0;
            for run in runs {
                let known = latest.entry(run.key).or_default();
                if let Some((time, _)) = run.last {
                    if time >= known.time {
                        known.time = time;
                        known.value = Some(make(run.key, &members, &rows, row));
                    }
                    row += 1;
                }
                known.gone = known.gone.max(run.gone);
            }
            Ok(ControlFlow::<()>::Continue(()))
        })?;
        Ok(latest)
    }
}

fn each_run(rows: &Rows, (from, to): (i64, i64), mut each: impl FnMut(Run)) {
    let [times, gone] = ["time", "gone"].map(|name| rows.numbers(name));
    let keys = rows.table.order.iter().filter(|name| **name != "time");
    let keys: Vec<_> = keys.map(|name| rows.numbers(name)).collect();
    let mut run: Option<Run> = None;
    for row in 0..rows.count {
        let at = |values: &[Option<i64>]| values.get(row).copied().flatten();
        let part = |of: usize| keys.get(of).map_or(Some(0), |values| at(values));
        let (Some(time), Some(key)) = (at(times), part(0).zip(part(1))) else {
            continue;
        };
        if time < from || time > to {
            continue;
        }
        if run.as_ref().is_none_or(|run| run.key != key) {
            let next = Run {
                key,
                last: None,
                gone: None,
            };
            if let Some(done) = run.replace(next) {
                each(done);
            }
        }
        let Some(run) = &mut run else { continue };
        if at(gone) == Some(1) {
            run.gone = run.gone.max(Some(time));
        } else if run.last.is_none_or(|(last, _)| last <= time) {
            run.last = Some((time, row));
        }
    }
    if let Some(done) = run {
        each(done);
    }
}
