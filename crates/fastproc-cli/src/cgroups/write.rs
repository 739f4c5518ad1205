//! The output formats.

use std::{
    collections::HashSet,
    io::{self, Write},
};

use clap::ValueEnum;
use fastproc_columns::cgroups::{Column, Row, Rows};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::{
    ps::{
        format::json::{Inert, Member},
        redraw::Redraw,
    },
    terminal,
};

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people: aligned, rounded, cut to the width of the terminal
    #[default]
    Table,
    /// One JSON object per snapshot, on one line, with the rows in an array
    Json,
    /// One line per row, quoted as in RFC 4180 where necessary
    Csv,
}

/// Spaces between columns.
const GAP: usize = 2;
/// What is left for the path by leaving out other columns.
const ROOM_FOR_LAST: usize = 24;

/// Writes rows.
#[derive(Debug)]
pub struct Writer {
    columns: Vec<&'static Column>,
    format: Format,
    headings: bool,
    /// Whether a narrow terminal may leave out columns: only if the user did not name them.
    may_drop: bool,
    redraw: Option<Redraw>,
    is_first: bool,
}

impl Writer {
    pub fn new(
        mut columns: Vec<&'static Column>,
        format: Format,
        headings: bool,
        may_drop: bool,
        is_repeated: bool,
    ) -> Self {
        if format == Format::Json {
            // An object has a key once.
            let mut keys = HashSet::new();
            columns.retain(|column| keys.insert(column.key()));
        }
        Self {
            columns,
            format,
            headings,
            may_drop,
            redraw: Redraw::new().filter(|_| is_repeated && format == Format::Table),
            is_first: true,
        }
    }

    pub fn write(
        &mut self,
        rows: &Rows<'_>,
        tree: bool,
        top: usize,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let is_first = std::mem::take(&mut self.is_first);
        match self.format {
            Format::Json => self.json(rows, top, output),
            Format::Csv => self.csv(rows, top, is_first, output),
            Format::Table => {
                // The summary has the lines that are left.
                let room = self.redraw.as_ref().map_or(usize::MAX, Redraw::rows);
                let table = self.table(rows, tree, top.min(room));
                let total = self.headings.then(|| rows.total());
                if let Some(redraw) = &mut self.redraw {
                    return redraw.draw(&table, total.as_deref(), output);
                }
                if !is_first {
                    output.write_all(b"\n")?;
                }
                output.write_all(&table)?;
                match total.filter(|_| terminal::is_standard_output()) {
                    Some(total) => writeln!(output, "\n{total}"),
                    None => Ok(()),
                }
            }
        }
    }

    fn json(&self, rows: &Rows<'_>, top: usize, output: &mut impl Write) -> io::Result<()> {
        output.write_all(br#"{"cgroups":["#)?;
        for (at, row) in rows.iter().take(top).enumerate() {
            output.write_all(if at > 0 { b",{" } else { b"{" })?;
            for (at, column) in self.columns.iter().enumerate() {
                if at > 0 {
                    output.write_all(b",")?;
                }
                let member = Member {
                    value: column.value(row),
                    unit: column.unit,
                };
                serde_json::to_writer(&mut *output, &column.key())?;
                output.write_all(b":")?;
                member.serialize(&mut serde_json::Serializer::with_formatter(
                    &mut *output,
                    Inert,
                ))?;
            }
            output.write_all(b"}")?;
        }
        output.write_all(b"]}\n")
    }

    fn csv(
        &self,
        rows: &Rows<'_>,
        top: usize,
        is_first: bool,
        output: &mut impl Write,
    ) -> io::Result<()> {
        if self.headings && is_first {
            let names: Vec<_> = self.columns.iter().map(|column| column.key()).collect();
            write!(output, "{}\r\n", names.join(","))?;
        }
        let mut cell = Vec::new();
        for row in rows.iter().take(top) {
            for (at, column) in self.columns.iter().enumerate() {
                if at > 0 {
                    output.write_all(b",")?;
                }
                cell.clear();
                column.value(row).write_for_csv(column.unit, &mut cell);
                if cell.iter().any(|byte| b",\"\r\n".contains(byte)) {
                    let quoted = String::from_utf8_lossy(&cell).replace('"', "\"\"");
                    write!(output, "\"{quoted}\"")?;
                } else {
                    output.write_all(&cell)?;
                }
            }
            output.write_all(b"\r\n")?;
        }
        Ok(())
    }

    fn table(&self, rows: &Rows<'_>, tree: bool, top: usize) -> Vec<u8> {
        let mut lines: Vec<Vec<String>> = Vec::new();
        if self.headings {
            lines.push(
                self.columns
                    .iter()
                    .map(|column| column.heading.to_owned())
                    .collect(),
            );
        }
        for row in rows.iter().take(top) {
            lines.push(
                self.columns
                    .iter()
                    .map(|column| cell(column, row, tree))
                    .collect(),
            );
        }
        let last = self.columns.len() - 1;
        let mut widths = vec![0; self.columns.len()];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.width().max(*width);
            }
        }
        let width = terminal::width();
        let mut visible = vec![true; widths.len()];
        if let Some(width) = width.filter(|_| self.may_drop) {
            let mut taken = widths[last].min(ROOM_FOR_LAST)
                + widths[..last]
                    .iter()
                    .map(|width| width + GAP)
                    .sum::<usize>();
            for column in (0..last).rev() {
                if taken > width {
                    visible[column] = false;
                    taken -= widths[column] + GAP;
                }
            }
        }
        let mut text = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let mut out = String::new();
            for (column, cell) in line
                .iter()
                .enumerate()
                .filter(|(column, _)| visible[*column])
            {
                let padding = " ".repeat(widths[column] - cell.width());
                if self.columns[column].unit.is_right_aligned() {
                    out += &padding;
                    out += cell;
                } else {
                    out += cell;
                    out += if column < last { &padding } else { "" };
                }
                out += if column < last { "  " } else { "" };
            }
            let shown = width.map_or(out.as_str(), |width| terminal::cut(&out, width));
            let is_heading = at == 0 && self.headings && terminal::colour();
            let (bold, plain) = if is_heading {
                ("\x1b[1m", "\x1b[0m")
            } else {
                ("", "")
            };
            text.extend_from_slice(format!("{bold}{shown}{plain}\n").as_bytes());
        }
        text
    }
}

fn cell(column: &Column, row: &Row<'_>, tree: bool) -> String {
    let mut text = Vec::new();
    column.write_for_table(row, tree, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
