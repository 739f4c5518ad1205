//! What is there: from when to when, and how much.

use std::{collections::BTreeMap, ops::ControlFlow};

use super::{
    Error,
    history::{History, tier},
};
use crate::table::{self, MACHINE};

/// A time without a gap, from the first walk to the last one, in microseconds since 1970.
pub type Span = (i64, i64);

/// The size of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// How many files it has.
    pub files: u64,
    /// How many rows there are in files whose footer is intact.
    pub rows: u64,
    /// The size of the files.
    pub bytes: u64,
}

impl History {
    /// The times that were recorded, in their order, and how many walks were missed within them: one alone is no gap.
    pub fn spans(&mut self) -> Result<(Vec<Span>, u64), Error> {
        let mut missed = 0;
        let mut spans: Vec<(Span, i64)> = Vec::new();
        let all = (i64::MIN / 2, i64::MAX / 2);
        self.groups(&MACHINE, all, &["time", "interval_ns"], |entry, rows| {
            let (times, intervals) = (rows.numbers("time"), rows.numbers("interval_ns"));
            let least = i64::from(tier(entry)) * 1_000_000;
            for (time, interval) in times.iter().zip(intervals) {
                let Some(time) = *time else { continue };
                let interval = interval.map_or(least, |interval| (interval / 1000).max(least));
                match spans.last_mut() {
                    Some((span, lasts))
                        if (span.1..=span.1.saturating_add(*lasts)).contains(&time) =>
                    {
                        missed += u64::from(time - span.1 == *lasts);
                        (span.1, *lasts) = (time, interval.saturating_mul(2));
                    }
                    _ => spans.push(((time, time), interval.saturating_mul(2))),
                }
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok((spans.into_iter().map(|(span, _)| span).collect(), missed))
    }

    /// The size of each table, by its name.
    pub fn sizes(&self) -> Result<BTreeMap<Box<str>, Size>, Error> {
        let mut sizes: BTreeMap<_, Size> = BTreeMap::new();
        for table in table::all() {
            sizes.insert(table.name.into(), Size::default());
        }
        for entry in self.entries()? {
            let size = sizes.entry(entry.table.clone()).or_default();
            size.files += 1;
            size.rows += self.rows(&entry).unwrap_or(0);
            size.bytes += entry.bytes;
        }
        Ok(sizes)
    }
}
