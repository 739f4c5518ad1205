//! Fewer rows of what is old.
//!
//! Kept is the last row of each interval for each process, thread or cgroup, the row at which it is gone and the one before that, and the
//! first walk of a row group, which has all processes. Values are cumulative or gauges, so a kept row is as it was.

use std::{io::Write, ops::Range};

use crate::{
    file::{Error, File, Writer},
    rows::{Cells, Columns},
    table::{GREATEST, Table},
};

const SECOND: i64 = 1_000_000;

/// Some rows of a row group, of which one column is in memory at a time.
struct Fewer<'a> {
    file: &'a File,
    group: usize,
    table: &'static Table,
    /// Each row that is kept, with the rows of its interval up to it.
    kept: Vec<(usize, Range<usize>)>,
}

/// Writes the rows of a file that are kept, as rows of `table`, for intervals of these seconds. Leaves out damaged row groups,
/// and reports them.
pub fn thin<W: Write + Send>(
    file: &File,
    table: &'static Table,
    seconds: u32,
    out: W,
    mut tell: impl FnMut(&Error),
) -> Result<W, Error> {
    let mut writer = Writer::new(out, table)?;
    for group in 0..file.groups() {
        let kept = match kept(file, group, i64::from(seconds) * SECOND) {
            Err(error @ Error::Group { .. }) => {
                tell(&error);
                continue;
            }
            kept => kept?,
        };
        writer.group(&Fewer {
            file,
            group,
            table,
            kept,
        })?;
    }
    writer.finish()
}

fn kept(file: &File, group: usize, interval: i64) -> Result<Vec<(usize, Range<usize>)>, Error> {
    const COLUMNS: [&str; 6] = ["time", "gone", "pid", "start_ns", "tid", "id"];
    let rows = file.read(group, &COLUMNS)?;
    let [times, gone, key @ ..] = COLUMNS.map(|name| rows.numbers(name));
    let at = |values: &[Option<i64>], row: usize| values.get(row).copied().flatten();
    let key = |row: usize| key.map(|part| at(part, row));
    let time = |row: usize| at(times, row).unwrap_or(0);
    let interval_of = |row: usize| time(row).div_euclid(interval);
    let first = (0..rows.count).map(time).min().unwrap_or(0);
    let mut kept = Vec::new();
    let mut from = 0;
    for row in 0..rows.count {
        if row == 0 || key(row - 1) != key(row) {
            from = row;
        }
        let next = (row + 1 < rows.count && key(row + 1) == key(row)).then_some(row + 1);
        let is_last = next.is_none_or(|next| interval_of(next) != interval_of(row));
        let is_before_gone = next.is_some_and(|next| at(gone, next) == Some(1));
        let is_gone = at(gone, row) == Some(1);
        if is_last || is_before_gone || is_gone || time(row) == first {
            kept.push((row, from..row + 1));
        }
        if is_last {
            // What it was when the next interval began counts in that one.
            from = row;
        }
    }
    Ok(kept)
}

impl Columns for Fewer<'_> {
    fn rows(&self) -> usize {
        self.kept.len()
    }

    fn column(&self, at: usize) -> Cells {
        let column = &self.table.columns[at];
        let greatest = GREATEST.iter().find(|(_, name)| *name == column.name);
        let kept = self.kept.iter();
        if let Some((of, _)) = greatest {
            let Cells::Numbers(values) = self.file.column(self.group, of, column.kind) else {
                return Cells::new(column.kind);
            };
            let greatest = kept.map(|(row, rows)| {
                // A process that is gone has no values.
                values.get(*row).copied().flatten()?;
                values.get(rows.clone())?.iter().copied().flatten().max()
            });
            return Cells::Numbers(greatest.collect());
        }
        match self.file.column(self.group, column.name, column.kind) {
            Cells::Numbers(values) => {
                let kept = kept.map(|(row, _)| values.get(*row).copied().flatten());
                Cells::Numbers(kept.collect())
            }
            Cells::Texts(mut values) => {
                let kept = kept.map(|(row, _)| values.get_mut(*row).and_then(Option::take));
                Cells::Texts(kept.collect())
            }
        }
    }
}
