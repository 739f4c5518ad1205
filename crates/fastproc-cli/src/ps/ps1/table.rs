//! The table of ps(1): columns of fixed width, one space apart.

use std::io::{self, Write};

use fastproc_columns::{Cells, Lookup, Row};
use unicode_width::UnicodeWidthStr;

use super::{
    Column, Side,
    columns::Writing,
    values::{self, Context},
};
use crate::{
    format::{RowWriter, Rows},
    terminal,
};

/// Writes rows like ps(1).
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Table {
    /// The columns to show.
    pub columns: Vec<Column>,
    /// Whether the columns have headings.
    pub headings: bool,
    /// The width of a line, if it is set.
    pub width: Option<usize>,
    /// Whether lines may have any length.
    pub unlimited: bool,
    /// Whether users appear as numbers.
    pub numbers: bool,
    /// Whether another table came before.
    pub is_next: bool,
}

impl Table {
    /// The columns that a line may have.
    fn room(&self) -> usize {
        let width = self.width.or_else(|| {
            let width = terminal::width();
            width.filter(|_| !self.unlimited)
        });
        width.unwrap_or(usize::MAX)
    }

    /// The width of each column; if it is not fixed, that of its widest value.
    fn widths(&self, cells: &Cells) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(at, column)| {
                column.width.unwrap_or_else(|| {
                    let places = (at..cells.len()).step_by(self.columns.len());
                    let widths = places.map(|place| cells.at(place).1);
                    let width = widths.max().unwrap_or(0).max(column.heading.width());
                    width.min(terminal::MOST_PADDED)
                })
            })
            .collect()
    }

    fn add_row(&self, row: &Row<'_>, lookup: &mut Lookup, context: Context, to: &mut Cells) {
        // The row of a leading thread shows the totals of its process, as in ps(1).
        let is_leader = row.thread.is_some() && row.other_thread().is_none();
        let row = Row {
            thread: row.thread.filter(|_| !is_leader),
            ..*row
        };
        for column in &self.columns {
            to.push(|cell| {
                if matches!(column.writing, Writing::Name | Writing::Arguments) {
                    cell.extend_from_slice(row.branch);
                }
                values::write(column, &row, lookup, context, cell);
            });
        }
    }

    /// Writes a line. A value that is too wide for a right-aligned column moves the next ones, until there is room
    /// again.
    fn write_line<'c>(
        &self,
        cells: impl Iterator<Item = (&'c str, usize)>,
        widths: &[usize],
        is_heading: bool,
        room: usize,
        line: &mut String,
    ) {
        line.clear();
        let last = self.columns.len() - 1;
        // The column where the line should be, and where it is.
        let (mut due, mut at) = (0_usize, 0_usize);
        for (place, ((cell, mut taken), &width)) in cells.zip(widths).enumerate() {
            let column = &self.columns[place];
            let is_name = matches!(
                column.writing,
                Writing::Owner(_) | Writing::UserOf | Writing::GroupOf
            );
            let is_right = column.side == Side::Right || (self.numbers && is_name);
            let most = if place == last && !column.is_tight {
                left(room, due.max(at))
            } else if is_right || is_heading || column.width.is_none() || column.is_number() {
                usize::MAX
            } else {
                width
            };
            let (mut text, mut end) = (cell, "");
            if taken > most {
                if is_name && most > 1 && !is_heading && place < last {
                    (text, end) = (terminal::cut(cell, most - 1), "+");
                } else {
                    text = terminal::cut(cell, most);
                }
                taken = text.width() + end.len();
            }
            let padding = if is_right {
                width.saturating_sub(taken)
            } else {
                0
            };
            let between = (due + padding).saturating_sub(at);
            let is_apart = place > 0 && !self.columns[place - 1].is_tight;
            let between = between.max(usize::from(is_apart));
            line.extend(std::iter::repeat_n(' ', between));
            *line += text;
            *line += end;
            at += between + taken;
            due += width + usize::from(!column.is_tight);
        }
        if self.columns[last].is_tight {
            line.extend(std::iter::repeat_n(' ', due.saturating_sub(at)));
        }
        line.push('\n');
    }
}

/// The room for the last column, which begins at `start`, on this line of the terminal; with the next line, if that is
/// little.
fn left(room: usize, start: usize) -> usize {
    let left = room - start % room;
    if left < LEAST { left + room } else { left }
}

/// A last column does not begin in less room than this.
const LEAST: usize = 3;

impl RowWriter for Table {
    fn write(
        &mut self,
        rows: Rows<'_, '_>,
        lookup: &mut Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let context = Context::new(self.numbers);
        let mut cells = Cells::default();
        rows.shown
            .for_each(|row| self.add_row(&row, lookup, context, &mut cells));
        let widths = self.widths(&cells);
        let room = self.room();
        let mut line = String::new();
        if std::mem::replace(&mut self.is_next, true) {
            output.write_all(b"\n")?;
        }
        let headings = self.columns.iter().map(|column| column.heading.as_str());
        let headings = headings.map(|heading| (heading, heading.width()));
        if self.headings && headings.clone().any(|(heading, _)| !heading.is_empty()) {
            self.write_line(headings, &widths, true, room, &mut line);
            output.write_all(line.as_bytes())?;
        }
        let columns = self.columns.len();
        for row in (0..cells.len()).step_by(columns) {
            let cells = (row..row + columns).map(|place| cells.at(place));
            self.write_line(cells, &widths, false, room, &mut line);
            output.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}
