//! A table for people.

use std::io::{self, Write};

use fastproc_columns::Lookup;
use unicode_width::UnicodeWidthStr;

use super::{Follows, Form, Layout, Rows};
use crate::terminal;

/// Spaces between columns.
const GAP: usize = 2;
/// What is left of the last column where only it is cut, however narrow the terminal.
const NARROWEST: usize = 4;
/// The least width of a column below which more rows come than are known.
const USUAL: usize = 7;
/// What is left for the last column by leaving out others.
const ROOM_FOR_LAST: usize = 16;

/// Columns as wide as their widest cell.
#[derive(Debug)]
pub struct Table {
    layout: Layout,
    colour: bool,
    is_first: bool,
    has_headings: bool,
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
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            colour: terminal::colour(),
            is_first: true,
            has_headings: false,
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
        let column = self.cells.len() % self.widths.len();
        self.widths[column] = self.widths[column].max(width);
        self.cells.push(Cell {
            end: self.text.len(),
            width,
        });
    }

    /// Which columns to show: all of them, or as many from the left as there is room for, the process id and the last.
    fn visible(&self, width: Option<usize>) -> Vec<bool> {
        let last = self.widths.len() - 1;
        let mut visible = vec![true; self.widths.len()];
        let Some(width) = width.filter(|_| self.layout.may_drop) else {
            return visible;
        };
        let mut taken = self.widths[last].min(ROOM_FOR_LAST)
            + self.widths[..last]
                .iter()
                .map(|width| width + GAP)
                .sum::<usize>();
        for column in (0..last).rev() {
            if taken > width && self.layout.columns[column].field.name != "pid" {
                visible[column] = false;
                taken -= self.widths[column] + GAP;
            }
        }
        visible
    }

    fn write_cells(&self, output: &mut dyn Write) -> io::Result<()> {
        // The terminal may have another size by now.
        let screen = terminal::screen().filter(|_| self.layout.follows == Follows::InPlace);
        let width = match (terminal::width(), screen) {
            (Some(width), Some((_, columns))) => Some(width.min(columns)),
            (width, _) => width,
        };
        let visible = self.visible(width);
        let last = self.widths.len() - 1;
        let before_last = (0..last)
            .filter(|&column| visible[column])
            .map(|column| self.widths[column] + GAP)
            .sum::<usize>();
        let room_for_last = width.map(|width| width.saturating_sub(before_last).max(NARROWEST));
        let widest =
            width.filter(|_| self.layout.may_drop || self.layout.follows == Follows::InPlace);
        let mut start = 0;
        let mut line = String::new();
        for (i, cell) in self.cells.iter().enumerate() {
            let column = i % self.widths.len();
            let text = std::str::from_utf8(&self.text[start..cell.end]).unwrap_or_default();
            start = cell.end;
            if !visible[column] {
                continue;
            }
            let padding = self.widths[column] - cell.width;
            let right_aligned = self.layout.columns[column].field.unit.is_right_aligned();
            if right_aligned {
                pad(padding, &mut line);
            }
            match room_for_last.filter(|_| column == last) {
                Some(room) if cell.width > room => {
                    line += terminal::cut(text, room - 1);
                    line.push('…');
                }
                _ => line += text,
            }
            if column < last {
                pad(if right_aligned { GAP } else { padding + GAP }, &mut line);
                continue;
            }
            let shown = widest.map_or(line.as_str(), |width| terminal::cut(&line, width));
            let is_heading = self.has_headings && i == last;
            if is_heading && self.colour {
                write!(output, "\x1b[1m{shown}\x1b[0m")?;
            } else {
                output.write_all(shown.as_bytes())?;
            }
            output.write_all(b"\n")?;
            line.clear();
        }
        Ok(())
    }
}

impl Form for Table {
    fn write(
        &mut self,
        rows: Rows<'_, '_>,
        lookup: &mut Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let columns = self.layout.columns.len();
        self.text.clear();
        self.cells.clear();
        let is_first = std::mem::take(&mut self.is_first);
        let continues = self.layout.follows == Follows::Continued && !is_first;
        if !continues {
            self.widths.clear();
            let narrowest = if self.layout.follows == Follows::Continued {
                USUAL
            } else {
                0
            };
            self.widths.resize(columns, narrowest);
        }
        self.has_headings = self.layout.headings && !continues;
        for column in 0..columns {
            if self.has_headings {
                let heading = self.layout.columns[column].field.column_heading();
                self.text.extend_from_slice(heading.as_bytes());
                self.end_cell();
            }
        }
        for row in rows.shown {
            for column in 0..columns {
                let field = self.layout.columns[column].field;
                field.write_for_table(&row, lookup, &mut self.text);
                self.end_cell();
            }
        }
        if !is_first && self.layout.follows == Follows::Apart {
            output.write_all(b"\n")?;
        }
        self.write_cells(output)
    }
}

fn pad(width: usize, line: &mut String) {
    line.extend(std::iter::repeat_n(' ', width));
}
