//! The table of ps(1): columns of fixed width, one space apart.

use std::io::{self, Write};

use fastproc_columns::{Lookup, Row};
use unicode_width::UnicodeWidthStr;

use super::{
    Column, Side,
    columns::Writing,
    values::{self, Context},
};
use crate::{
    ps::format::{RowWriter, Rows},
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
    fn widths(&self, rows: &[Vec<String>]) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(at, column)| {
                column.width.unwrap_or_else(|| {
                    let cells = rows.iter().map(|row| row[at].width());
                    cells.max().unwrap_or(0).max(column.heading.width())
                })
            })
            .collect()
    }

    fn cells(&self, row: &Row<'_>, lookup: &mut Lookup, context: Context) -> Vec<String> {
        // The row of a leading thread shows the totals of its process, as in ps(1).
        let is_leader = row.thread.is_some() && row.other_thread().is_none();
        let row = Row {
            thread: row.thread.filter(|_| !is_leader),
            ..*row
        };
        let columns = self.columns.iter();
        columns
            .map(|column| {
                let mut cell = Vec::new();
                let is_command = matches!(column.writing, Writing::Name | Writing::Arguments);
                if is_command {
                    cell.extend_from_slice(row.branch);
                }
                values::write(column, &row, lookup, context, &mut cell);
                String::from_utf8_lossy(&cell).into_owned()
            })
            .collect()
    }

    /// Writes a line. A value that is too wide for a right-aligned column moves the next ones, until there is room
    /// again.
    fn write_line(
        &self,
        cells: &[String],
        widths: &[usize],
        is_heading: bool,
        room: usize,
        line: &mut String,
    ) {
        line.clear();
        let last = self.columns.len() - 1;
        // The column where the line should be, and where it is.
        let (mut due, mut at) = (0_usize, 0_usize);
        for (place, (cell, &width)) in cells.iter().zip(widths).enumerate() {
            let column = &self.columns[place];
            let is_number = self.numbers
                && matches!(
                    column.writing,
                    Writing::User | Writing::UserOf | Writing::GroupOf
                );
            let is_right = column.side == Side::Right || is_number;
            let most = if place == last {
                left(room, due.max(at))
            } else if is_right || is_heading || column.width.is_none() || column.is_number() {
                usize::MAX
            } else {
                width
            };
            let is_name = matches!(
                column.writing,
                Writing::User | Writing::UserOf | Writing::GroupOf
            );
            let text = if cell.width() <= most {
                cell.clone()
            } else if is_name && most > 1 && !is_heading && place < last {
                format!("{}+", terminal::cut(cell, most - 1))
            } else {
                terminal::cut(cell, most).to_owned()
            };
            let taken = text.width();
            let padding = if is_right {
                width.saturating_sub(taken)
            } else {
                0
            };
            let between = (due + padding).saturating_sub(at);
            let between = if place == 0 { between } else { between.max(1) };
            line.extend(std::iter::repeat_n(' ', between));
            *line += &text;
            at += between + taken;
            due += width + 1;
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
        let rows: Vec<_> = rows
            .shown
            .map(|row| self.cells(&row, lookup, context))
            .collect();
        let widths = self.widths(&rows);
        let room = self.room();
        let mut line = String::new();
        if std::mem::replace(&mut self.is_next, true) {
            output.write_all(b"\n")?;
        }
        let headings: Vec<_> = self
            .columns
            .iter()
            .map(|column| column.heading.clone())
            .collect();
        if self.headings && headings.iter().any(|heading| !heading.is_empty()) {
            self.write_line(&headings, &widths, true, room, &mut line);
            output.write_all(line.as_bytes())?;
        }
        for cells in &rows {
            self.write_line(cells, &widths, false, room, &mut line);
            output.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}
