//! A table for people.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Column, Form, Rows};
use crate::{output::Output, ps::subject::Lookup, terminal};

/// Spaces between columns.
const GAP: usize = 2;
/// What is left of the last column where a line is cut, however narrow the terminal.
const NARROWEST: usize = 4;

/// Columns as wide as their widest cell.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    width: Option<usize>,
    colour: bool,
    is_first: bool,
    /// The text of all cells, row after row, the headings first.
    text: Vec<u8>,
    cells: Vec<Cell>,
    widths: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Where its text ends; it starts where that of the cell before ends.
    end: usize,
    /// Columns that it takes on a terminal.
    width: usize,
}

impl Table {
    /// For standard output as it is now.
    pub fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            width: None,
            colour: terminal::colour(),
            is_first: true,
            text: Vec::new(),
            cells: Vec::new(),
            widths: Vec::new(),
        }
    }

    /// Ends the cell that was being written.
    fn end_cell(&mut self) {
        let start = self.cells.last().map_or(0, |cell| cell.end);
        let text = &self.text[start..];
        let width = if text.is_ascii() {
            text.len()
        } else {
            // A cell is escaped text, and so UTF-8.
            std::str::from_utf8(text).map_or(text.len(), UnicodeWidthStr::width)
        };
        let column = self.cells.len() % self.columns.len();
        self.widths[column] = self.widths[column].max(width);
        self.cells.push(Cell {
            end: self.text.len(),
            width,
        });
    }

    fn write_cells(&self, output: &mut Output) -> io::Result<()> {
        let last = self.columns.len() - 1;
        let before_last = self.widths[..last]
            .iter()
            .map(|width| width + GAP)
            .sum::<usize>();
        let room_for_last = self
            .width
            .map(|width| width.saturating_sub(before_last).max(NARROWEST));
        let mut start = 0;
        for (i, cell) in self.cells.iter().enumerate() {
            let (row, column) = (i / self.columns.len(), i % self.columns.len());
            let is_heading = self.colour && row == 0;
            if is_heading && column == 0 {
                output.write_all(b"\x1b[1m")?;
            }
            let text = &self.text[start..cell.end];
            start = cell.end;
            let padding = self.widths[column] - cell.width;
            let right_aligned = self.columns[column].field.unit.is_right_aligned();
            if right_aligned {
                pad(padding, output)?;
            }
            match room_for_last.filter(|_| column == last) {
                Some(room) if cell.width > room => {
                    output.write_all(
                        cut(std::str::from_utf8(text).unwrap_or_default(), room - 1).as_bytes(),
                    )?;
                    output.write_all("…".as_bytes())?;
                }
                _ => output.write_all(text)?,
            }
            if column < last {
                pad(if right_aligned { GAP } else { padding + GAP }, output)?;
                continue;
            }
            output.write_all(if is_heading { b"\x1b[0m\n" } else { b"\n" })?;
        }
        Ok(())
    }
}

impl Form for Table {
    fn write(
        &mut self,
        rows: Rows<'_, '_>,
        lookup: &mut Lookup,
        output: &mut Output,
    ) -> io::Result<()> {
        // The terminal may have another size by now.
        self.width = terminal::width();
        self.text.clear();
        self.cells.clear();
        self.widths.clear();
        self.widths.resize(self.columns.len(), 0);
        for i in 0..self.columns.len() {
            let heading = self.columns[i].field.column_heading();
            self.text.extend_from_slice(heading.as_bytes());
            self.end_cell();
        }
        for subject in rows.subjects {
            for i in 0..self.columns.len() {
                let field = self.columns[i].field;
                field
                    .value(subject, lookup)
                    .write_for_table(field.unit, &mut self.text);
                self.end_cell();
            }
        }
        if !std::mem::take(&mut self.is_first) {
            output.write_all(b"\n")?;
        }
        self.write_cells(output)
    }
}

fn pad(width: usize, output: &mut Output) -> io::Result<()> {
    const SPACES: [u8; 32] = [b' '; 32];
    let mut left = width;
    while left > 0 {
        let now = left.min(SPACES.len());
        output.write_all(&SPACES[..now])?;
        left -= now;
    }
    Ok(())
}

/// The longest beginning that takes no more than `width` columns.
fn cut(text: &str, width: usize) -> &str {
    let mut taken = 0;
    for (at, character) in text.char_indices() {
        taken += character.width().unwrap_or(0);
        if taken > width {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("abc", 2), "ab");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("進程表", 3), "進");
        assert_eq!(cut("進程表", 4), "進程");
        assert_eq!(cut("é", 0), "");
    }
}
