//! The walks of a recorder: when it looked, and what the machine was then.

use std::ops::ControlFlow;

use super::{
    Error,
    history::{History, second, tier},
};
use crate::{rows::Rows, table::MACHINE};

/// A walk of the processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Walk {
    /// Its second, in microseconds since 1970.
    pub time: i64,
    /// Names the boot.
    pub boot_id: Box<str>,
    /// When the machine was booted, in microseconds since 1970.
    pub boot_time: i64,
    /// When it began, in nanoseconds since boot.
    pub began_ns: u64,
    /// How long it took, in nanoseconds.
    pub read_for_ns: u64,
    /// The time to the next one, if none is missed, in microseconds.
    pub interval: i64,
    /// Whether all processes have a row.
    pub is_whole: bool,
    /// Exits that were lost since the walk before; `None` if exits are not recorded.
    pub lost_exits: Option<u64>,
    /// CPUs that are online.
    pub cpus: Option<u32>,
    /// Memory of the machine, in bytes.
    pub memory: Option<u64>,
    /// The size of a page, in bytes.
    pub page: Option<u64>,
}

/// The columns that a [`Walk`] is made from.
const COLUMNS: &[&str] = &[
    "time",
    "boot_id",
    "boot_time",
    "began_ns",
    "read_for_ns",
    "interval_ns",
    "whole",
    "lost_exits",
    "cpus",
    "memory_bytes",
    "page_bytes",
];

const HOUR: i64 = 3_600_000_000;

impl Walk {
    /// A row of `machine`. `None` if it lacks what every walk has.
    fn new(rows: &Rows, row: usize, tier: u32) -> Option<Self> {
        let number = |name: &str| rows.numbers(name).get(row).copied().flatten();
        let unsigned = |name: &str| number(name).and_then(|number| u64::try_from(number).ok());
        let interval = number("interval_ns").unwrap_or(0) / 1000;
        Some(Self {
            time: number("time")?,
            boot_id: rows.texts("boot_id").get(row)?.clone()?,
            boot_time: number("boot_time")?,
            began_ns: unsigned("began_ns")?,
            read_for_ns: unsigned("read_for_ns")?,
            interval: interval.max(i64::from(tier) * 1_000_000),
            is_whole: number("whole") == Some(1),
            lost_exits: unsigned("lost_exits"),
            cpus: number("cpus").and_then(|cpus| u32::try_from(cpus).ok()),
            memory: unsigned("memory_bytes"),
            page: unsigned("page_bytes").filter(|&page| page > 0),
        })
    }

    /// Whether this was the state of the machine until then: no walk was missed, or only one.
    pub const fn lasts_until(&self, time: i64) -> bool {
        time.saturating_sub(self.time) <= self.interval.saturating_mul(2)
    }
}

impl History {
    /// The walks of a time in microseconds since 1970, both inclusive, in their order.
    pub fn walks(&mut self, from: i64, to: i64) -> Result<Vec<Walk>, Error> {
        self.walks_with(from, to, &[], |walk, _| walk)
    }

    /// The same, each made into something with its values of these columns of `machine`.
    pub fn walks_with<T>(
        &mut self,
        from: i64,
        to: i64,
        columns: &[&str],
        mut make: impl FnMut(Walk, &[Option<i64>]) -> T,
    ) -> Result<Vec<T>, Error> {
        let mut walks = Vec::new();
        let mut wanted = [COLUMNS, columns].concat();
        wanted.sort_unstable();
        wanted.dedup();
        self.groups(&MACHINE, (from, to), &wanted, |entry, rows| {
            let cells: Vec<_> = columns.iter().map(|name| rows.numbers(name)).collect();
            for row in 0..rows.count {
                let walk = Walk::new(rows, row, tier(entry));
                if let Some(walk) = walk.filter(|walk| (from..=to).contains(&walk.time)) {
                    let values = cells.iter().map(|cells| cells.get(row).copied().flatten());
                    walks.push((walk.time, make(walk, &values.collect::<Vec<_>>())));
                }
            }
            ControlFlow::<()>::Continue(())
        })?;
        walks.sort_by_key(|(time, _)| *time);
        Ok(walks.into_iter().map(|(_, made)| made).collect())
    }

    /// The times of the last walk before a time, and of the first walk with all processes after it.
    pub fn around(&mut self, time: i64) -> Result<(Option<i64>, Option<i64>), Error> {
        let before = self.last_before(i64::MIN / 2, time.saturating_sub(1))?;
        let after = self.first_after(time.saturating_add(1), i64::MAX / 2)?;
        Ok((before.map(|walk| walk.time), after.map(|walk| walk.time)))
    }

    /// The walk that says what was at this time, and the one before it in which all processes had a row.
    pub(super) fn walk_at(&mut self, time: i64) -> Result<(Walk, Walk), Error> {
        // A row group is of a quarter of an hour.
        let mut walks = self.walks(time.saturating_sub(HOUR), time)?;
        let whole = walks.iter().rfind(|walk| walk.is_whole).cloned();
        match (walks.pop(), whole) {
            (Some(walk), Some(whole)) if walk.lasts_until(time) => Ok((walk, whole)),
            _ => Err(self.gap(time)?),
        }
    }

    /// The first walk in which all processes had a row, from this time on.
    pub(super) fn first_after(&mut self, time: i64, until: i64) -> Result<Option<Walk>, Error> {
        self.groups(&MACHINE, (time, until), COLUMNS, |entry, rows| {
            let walks = (0..rows.count).filter_map(|row| Walk::new(rows, row, tier(entry)));
            let mut walks = walks.filter(|walk| (time..=until).contains(&walk.time));
            match walks.find(|walk| walk.is_whole) {
                Some(walk) => ControlFlow::Break(walk),
                None => ControlFlow::Continue(()),
            }
        })
    }

    /// The last walk of a time.
    pub(super) fn last_before(&mut self, from: i64, until: i64) -> Result<Option<Walk>, Error> {
        let mut end = until;
        // From the last hour of which there are files to the first.
        loop {
            let entries = self.chosen(&MACHINE, second(from), second(end) + 1)?;
            let Some(last) = entries
                .last()
                .map(|entry| entry.from.saturating_mul(1_000_000))
            else {
                return Ok(None);
            };
            let last = last.max(from);
            if let Some(walk) = self.walks(last, end)?.pop() {
                return Ok(Some(walk));
            }
            if last <= from {
                return Ok(None);
            }
            end = last - 1;
        }
    }

    /// What is known around a time of which nothing is.
    pub(super) fn gap(&mut self, asked: i64) -> Result<Error, Error> {
        let before = self.last_before(i64::MIN / 2, asked)?;
        let after = self.first_after(asked.saturating_add(1), i64::MAX / 2)?;
        Ok(Error::Gap {
            asked,
            before: before.map(|walk| walk.time),
            after: after.map(|walk| walk.time),
            damaged: !self.damaged().is_empty(),
        })
    }
}
