//! The table of ps(1): columns of a width, one space apart.

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

/// Writes rows as ps(1) does.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Table {
    /// What is shown.
    pub columns: Vec<Column>,
    /// Whether the columns have headings.
    pub headings: bool,
    /// The width of a line, if it is set.
    pub width: Option<usize>,
    /// Lines are as long as they need.
    pub unlimited: bool,
    /// Users are shown as numbers.
    pub numbers: bool,
    /// Whether another table went before.
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

    /// Where a column has no width of its own, that of its widest value.
    fn widths(&self, cells: &Cells) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(at, column)| {
                column.width.unwrap_or_else(|| {
                    let places = (at..cells.ends.len()).step_by(self.columns.len());
                    let widths = places.map(|place| width_of(cells.at(place)));
                    widths.max().unwrap_or(0).max(column.heading.width())
                })
            })
            .collect()
    }

    fn add_row(&self, row: &Row<'_>, lookup: &mut Lookup, context: Context, to: &mut Cells) {
        // The row of a leading thread has what ps(1) shows there: the totals of its process.
        let is_leader = row.thread.is_some() && row.other_thread().is_none();
        let row = Row {
            thread: row.thread.filter(|_| !is_leader),
            ..*row
        };
        for column in &self.columns {
            to.add(|cell| {
                if matches!(column.writing, Writing::Name | Writing::Arguments) {
                    cell.extend_from_slice(row.branch);
                }
                values::write(column, &row, lookup, context, cell);
            });
        }
    }

    /// A line. What is too wide at the right side of its column moves the next ones, until there is room again.
    fn write_line<'c>(
        &self,
        cells: impl Iterator<Item = &'c str>,
        widths: &[usize],
        is_heading: bool,
        room: usize,
        line: &mut String,
    ) {
        line.clear();
        let last = self.columns.len() - 1;
        // Where the line should be, and where it is.
        let (mut due, mut at) = (0_usize, 0_usize);
        for (place, (cell, &width)) in cells.zip(widths).enumerate() {
            let column = &self.columns[place];
            let is_name = matches!(
                column.writing,
                Writing::User | Writing::UserOf | Writing::GroupOf
            );
            let is_right = column.side == Side::Right || (self.numbers && is_name);
            let most = if place == last {
                left(room, due.max(at))
            } else if is_right || is_heading || column.width.is_none() || column.is_number() {
                usize::MAX
            } else {
                width
            };
            let mut taken = width_of(cell);
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
            let between = if place == 0 { between } else { between.max(1) };
            line.extend(std::iter::repeat_n(' ', between));
            *line += text;
            *line += end;
            at += between + taken;
            due += width + 1;
        }
        line.push('\n');
    }
}

/// The values of a table, row after row, without a memory of its own for each.
#[derive(Default)]
struct Cells {
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
    /// Room for one.
    bytes: Vec<u8>,
}

impl Cells {
    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.clear();
        write(&mut self.bytes);
        self.text += &String::from_utf8_lossy(&self.bytes);
        self.ends.push(self.text.len());
    }

    /// The one at this place.
    fn at(&self, place: usize) -> &str {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[place]]
    }
}

/// The columns of a terminal that a text takes.
fn width_of(text: &str) -> usize {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        text.len()
    } else {
        text.width()
    }
}

/// What is left of a line of a terminal for the last column, which begins at `start`; of the next line, if that is little.
fn left(room: usize, start: usize) -> usize {
    let left = room - start % room;
    if left < LEAST { left + room } else { left }
}

/// Less than this is not worth to begin in.
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
        if self.headings && headings.clone().any(|heading| !heading.is_empty()) {
            self.write_line(headings, &widths, true, room, &mut line);
            output.write_all(line.as_bytes())?;
        }
        let columns = self.columns.len();
        for row in (0..cells.ends.len()).step_by(columns) {
            let cells = (row..row + columns).map(|place| cells.at(place));
            self.write_line(cells, &widths, false, room, &mut line);
            output.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}
