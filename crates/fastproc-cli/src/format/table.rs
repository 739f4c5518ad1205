//! A table for people.

use std::{
    io::{self, Write},
    ops::Range,
};

use fastproc_columns::{
    Cells, Field, Subject, Unit, Value, escape::is_right_to_left, number::write_short_time,
};

use super::{Follows, Layout, RowWriter, Rows};
use crate::{
    colour::{Colours, MATCH, PLAIN},
    terminal,
};

/// Spaces between columns.
const GAP: usize = 2;
/// The least width of the last column if only that one is cut, however narrow the terminal.
const NARROWEST: usize = 4;
/// The least width of a column if more rows may follow.
const USUAL: usize = 7;

/// Text between these two has its own direction, which its first letter determines. Neither takes room.
const ISOLATE: char = '\u{2068}';
const END_ISOLATE: char = '\u{2069}';

/// Writes columns as wide as their widest cells.
#[derive(Debug)]
pub struct Table<S: Subject> {
    layout: Layout<S>,
    colours: Colours,
    is_first: bool,
    has_headings: bool,
    /// The headings come first.
    cells: Cells,
    widths: Vec<usize>,
}

impl<S: Subject> Table<S> {
    /// Creates a table for standard output as it is now.
    pub fn new(layout: Layout<S>) -> Self {
        Self {
            layout,
            colours: Colours::new(),
            is_first: true,
            has_headings: false,
            cells: Cells::default(),
            widths: Vec::new(),
        }
    }

    fn add(&mut self, column: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let width = self.cells.push(write);
        self.widths[column] = self.widths[column].max(width.min(terminal::MOST_PADDED));
    }

    /// Whether each column is shown: all, or the process id, the last one, and as many others from the left as there is
    /// room for.
    fn visible(&self, width: Option<usize>) -> Vec<bool> {
        let last = self.widths.len() - 1;
        let mut visible = vec![true; self.widths.len()];
        let Some(width) = width.filter(|_| self.layout.may_drop) else {
            return visible;
        };
        let mut taken = self.widths[last].min(self.layout.room_for_last)
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
        // The size of the terminal may have changed.
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
        // How far longer cells move the last one of their row.
        let mut moved = 0;
        let widest =
            width.filter(|_| self.layout.may_drop || self.layout.follows == Follows::InPlace);
        let needle = self.layout.needle.as_ref().filter(|_| self.colours.is_used);
        let mut marks: Vec<Range<usize>> = Vec::new();
        let mut line = String::new();
        for i in 0..self.cells.len() {
            let column = i % self.widths.len();
            if !visible[column] {
                continue;
            }
            let (text, taken) = self.cells.at(i);
            let padding = self.widths[column].saturating_sub(taken);
            let right_aligned = self.layout.columns[column].field.unit.is_right_aligned();
            if right_aligned {
                pad(padding, &mut line);
            }
            // Right-to-left text would reorder its neighbours.
            let is_isolated = is_right_to_left(text);
            if is_isolated {
                line.push(ISOLATE);
            }
            let start = line.len();
            let room = width.filter(|_| column == last);
            let room = room.map(|width| width.saturating_sub(before_last + moved).max(NARROWEST));
            let cut = match room {
                Some(room) if taken > room => &format!("{}…", terminal::cut(text, room - 1)),
                _ => text,
            };
            if self.has_headings && i < self.widths.len() {
                line += cut;
            } else {
                let field = self.layout.columns[column].field;
                self.colours.write_cell(field, cut, &mut line);
            }
            if let Some(needle) = needle
                && matches!(self.layout.columns[column].field.name, "comm" | "cmdline")
            {
                let places = needle.places(&line[start..]);
                marks.extend(places.map(|place| start + place.start..start + place.end));
            }
            if is_isolated {
                line.push(END_ISOLATE);
            }
            if column < last {
                moved += taken.saturating_sub(self.widths[column]);
                pad(if right_aligned { GAP } else { padding + GAP }, &mut line);
                continue;
            }
            let shown = widest.map_or(line.as_str(), |width| terminal::cut(&line, width));
            let is_heading = self.has_headings && i == last;
            if is_heading {
                output.write_all(self.colours.heading(shown).as_bytes())?;
            } else {
                write_marked(shown, &marks, output)?;
            }
            if self.colours.is_used && shown.len() < line.len() {
                output.write_all(PLAIN.as_bytes())?;
            }
            marks.clear();
            // The cut text may lack its end of isolation.
            if shown.matches(ISOLATE).count() > shown.matches(END_ISOLATE).count() {
                write!(output, "{END_ISOLATE}")?;
            }
            output.write_all(b"\n")?;
            moved = 0;
            line.clear();
        }
        Ok(())
    }
}

impl<S: Subject> RowWriter<S> for Table<S> {
    fn write(
        &mut self,
        rows: Rows<'_, '_, S>,
        lookup: &mut S::Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let fields: Vec<_> = self
            .layout
            .columns
            .iter()
            .map(|column| column.field)
            .collect();
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
            self.widths.resize(fields.len(), narrowest);
        }
        self.has_headings = self.layout.headings && !continues;
        if self.has_headings {
            for (column, field) in fields.iter().enumerate() {
                self.add(column, |to| to.extend(field.column_heading().bytes()));
            }
        }
        for row in rows.shown {
            for (column, field) in fields.iter().enumerate() {
                let short_times = self.layout.short_times;
                self.add(column, |to| {
                    write_cell(field, short_times, &row, lookup, to);
                });
            }
        }
        if !is_first && self.layout.follows == Follows::Apart {
            output.write_all(b"\n")?;
        }
        self.write_cells(output)
    }
}

/// Writes a line with these parts highlighted, as far as it has them.
fn write_marked(line: &str, marks: &[Range<usize>], output: &mut dyn Write) -> io::Result<()> {
    let mut rest = 0;
    for mark in marks.iter().filter(|mark| mark.end <= line.len()) {
        let (before, marked) = (&line[rest..mark.start], &line[mark.clone()]);
        write!(output, "{before}{MATCH}{marked}{PLAIN}")?;
        rest = mark.end;
    }
    output.write_all(&line.as_bytes()[rest..])
}

fn write_cell<S: Subject>(
    field: &Field<S>,
    short_times: bool,
    row: &S::Row<'_>,
    lookup: &mut S::Lookup,
    to: &mut Vec<u8>,
) {
    if short_times
        && field.unit == Unit::Time
        && let Value::Unsigned(time) = field.value(row, lookup)
    {
        return write_short_time(time, to);
    }
    field.write_for_table(row, lookup, to);
}

fn pad(width: usize, line: &mut String) {
    line.extend(std::iter::repeat_n(' ', width));
}

#[cfg(test)]
mod tests {
    use fastproc::{Cmdline, Host, Process, difference::Ended, exits::Exit, record::Record};
    use fastproc_columns::{Lookup, Processes, Row};

    use super::*;

    #[test]
    fn pads_no_row_to_a_very_long_cell_of_another() {
        let host = Host::read().expect("/proc is there");
        let columns = ["cmdline", "pid"].map(|name| name.parse().expect("a field"));
        let mut table = Table::<Processes>::new(Layout {
            headings: false,
            ..Layout::new(columns.into())
        });
        let line = vec![b'x'; 100_000];
        let record = Record::default();
        let long = Cmdline {
            bytes: &line,
            cut: false,
        };
        let short = Cmdline {
            bytes: b"y",
            ..long
        };
        let exit = Exit::default();
        let row = |line| Row::ended(Ended::whole(&exit).change(&record), Some(line));
        let rows = Rows::of_events([row(long), row(short)].into_iter());
        let mut output = Vec::new();
        table
            .write(rows, &mut Lookup::recorded(host, 1), &mut output)
            .expect("a vector takes everything");
        let output = String::from_utf8(output).expect("text");
        let lengths: Vec<_> = output.lines().map(str::len).collect();
        let most = terminal::MOST_PADDED + "  0".len();
        assert_eq!(lengths, [line.len() + "  0".len(), most]);
    }

    #[test]
    fn only_names_that_are_written_from_right_to_left_are_isolated() {
        let records = ["שלום", "init", "größe", "a 进程", "كتب"].map(|name| {
            let mut record = Record::default();
            record.identity.comm[..name.len()].copy_from_slice(name.as_bytes());
            record
        });
        let columns = ["pid", "comm", "ppid"].map(|name| name.parse().expect("a field"));
        let mut table = Table::<Processes>::new(Layout {
            headings: false,
            ..Layout::new(columns.into())
        });
        let rows = Rows::of_events(records.iter().map(|of| Row::new(Process::new(of, &[]))));
        let host = Host::read().expect("/proc is there");
        let mut output = Vec::new();
        table
            .write(rows, &mut Lookup::recorded(host, 1), &mut output)
            .expect("a vector takes everything");
        assert_eq!(
            String::from_utf8(output).expect("text"),
            "0  \u{2068}שלום\u{2069}    0\n\
             0  init    0\n\
             0  größe   0\n\
             0  a 进程  0\n\
             0  \u{2068}كتب\u{2069}     0\n"
        );
    }
}
