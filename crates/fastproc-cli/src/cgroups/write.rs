//! The output formats.

use std::{
    collections::HashSet,
    io::{self, Write},
};

use clap::ValueEnum;
use fastproc::cgroups::Cgroups;
use fastproc_columns::cgroups::{Column, Row, Rows};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::{
    ps::{
        format::{
            csv::{plain, quote_formula},
            json::{Inert, Member},
        },
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
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
pub struct Writer {
    columns: Vec<&'static Column>,
    format: Format,
    headings: bool,
    /// Whether a narrow terminal may leave out columns: only if the user did not name them.
    may_drop: bool,
    is_repeated: bool,
    /// Whether no text in CSV may be a formula.
    pub no_formulas: bool,
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
            is_repeated,
            no_formulas: false,
            redraw: Redraw::new().filter(|_| is_repeated && format == Format::Table),
            is_first: true,
        }
    }

    /// Whether the totals are drawn in place, so that they tell what is left out. Other text would disturb the drawing.
    pub fn redraws_total(&self) -> bool {
        self.headings && self.redraw.is_some()
    }

    /// Writes the rows of the last snapshot of these cgroups.
    pub fn write(
        &mut self,
        cgroups: &Cgroups,
        rows: &Rows<'_>,
        tree: bool,
        top: usize,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let is_first = std::mem::take(&mut self.is_first);
        match self.format {
            Format::Json => self.json(cgroups, rows, top, output),
            Format::Csv => self.csv(cgroups, rows, top, is_first, output),
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

    fn json(
        &self,
        cgroups: &Cgroups,
        rows: &Rows<'_>,
        top: usize,
        output: &mut impl Write,
    ) -> io::Result<()> {
        write!(
            output,
            r#"{{"source":"{}","boottime_ns":{},"left_out":{},"cgroups":["#,
            cgroups.source(),
            cgroups.last().began_ns(),
            cgroups.last().left_out(),
        )?;
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
        cgroups: &Cgroups,
        rows: &Rows<'_>,
        top: usize,
        is_first: bool,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(output);
        if self.headings && is_first {
            let time = self.is_repeated.then(|| "boottime_ns".to_owned());
            let keys = self.columns.iter().map(|column| column.key());
            writer
                .write_record(time.into_iter().chain(keys))
                .map_err(plain)?;
        }
        let time = cgroups.last().began_ns().to_string();
        let mut cell = Vec::new();
        for row in rows.iter().take(top) {
            if self.is_repeated {
                writer.write_field(&time).map_err(plain)?;
            }
            for column in &self.columns {
                cell.clear();
                let value = column.value(row);
                value.write_for_csv(column.unit, &mut cell);
                if self.no_formulas {
                    quote_formula(value, &mut cell);
                }
                writer.write_field(&cell).map_err(plain)?;
            }
            writer.write_record(None::<&[u8]>).map_err(plain)?;
        }
        // Pass the buffered rows on. Flushing the output is its own task.
        writer
            .into_inner()
            .map(drop)
            .map_err(csv::IntoInnerError::into_error)
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
                *width = cell.width().min(terminal::MOST_PADDED).max(*width);
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
                let padding = " ".repeat(widths[column].saturating_sub(cell.width()));
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

#[cfg(test)]
mod tests {
    use std::fs;

    use fastproc::cgroups::{Bounds, Fields};
    use fastproc_columns::cgroups::find;
    use fastproc_testbed::Folder;

    use super::*;

    /// What is written of a hierarchy with a cgroup, twice.
    fn written(format: Format, is_repeated: bool) -> (u64, String) {
        let folder = Folder::new("cgroups-write");
        fs::create_dir(folder.join("a, \"b\"")).expect("root may make a cgroup");
        fs::write(folder.join("cgroup.controllers"), "memory\n").expect("the file is written");
        fs::write(folder.join("a, \"b\"/memory.current"), "4096\n").expect("the file is written");
        let mut cgroups = Cgroups::builder()
            .fields(Fields::MEMORY)
            .open_recorded(&folder)
            .expect("it is a folder");
        let columns = ["memory", "read/s", "path"].map(|name| find(name).expect("a column"));
        let mut writer = Writer::new(columns.into(), format, true, false, is_repeated);
        let mut output = Vec::new();
        cgroups.snapshot().expect("it is a folder");
        let rows = Rows::new(cgroups.last(), None, None);
        for _ in 0..2 {
            writer
                .write(&cgroups, &rows, false, usize::MAX, &mut output)
                .expect("a vector takes everything");
        }
        let began_ns = cgroups.last().began_ns();
        (began_ns, String::from_utf8(output).expect("text"))
    }

    #[test]
    fn a_name_is_no_formula_if_that_is_asked_for() {
        let folder = Folder::new("cgroups-formula");
        fs::create_dir(folder.join("=1+1")).expect("root may make a cgroup");
        let mut cgroups = Cgroups::builder()
            .open_recorded(&folder)
            .expect("it is a folder");
        cgroups.snapshot().expect("it is a folder");
        let rows = Rows::new(cgroups.last(), None, None);
        let columns = vec![find("name").expect("a column")];
        for (no_formulas, expected) in [(false, "\n=1+1\n"), (true, "\n'=1+1\n")] {
            let mut writer = Writer::new(columns.clone(), Format::Csv, false, false, false);
            writer.no_formulas = no_formulas;
            let mut output = Vec::new();
            writer
                .csv(&cgroups, &rows, usize::MAX, true, &mut output)
                .expect("a vector takes everything");
            let text = String::from_utf8(output).expect("text");
            assert!(text.ends_with(expected), "{text}");
        }
    }

    #[test]
    fn the_total_says_how_many_are_left_out() {
        let folder = Folder::new("cgroups-left-out");
        fs::create_dir(folder.join("long")).expect("root may make a cgroup");
        let bounds = Bounds {
            path_bytes: "/lon".len(),
            ..Bounds::default()
        };
        let mut cgroups = Cgroups::builder()
            .bounds(bounds)
            .open_recorded(&folder)
            .expect("it is a folder");
        let snapshot = cgroups.snapshot().expect("it is a folder");
        let total = Rows::new(snapshot, None, None).total();
        assert_eq!(total, "1 cgroups, 1 left out with those below them");
    }

    #[test]
    fn a_snapshot_says_when_it_was_made_and_keys_are_names() {
        let (began_ns, text) = written(Format::Json, true);
        let (first, second) = text.split_once('\n').expect("two lines");
        assert_eq!(first, second.trim_end());
        let shown: serde_json::Value = serde_json::from_str(first).expect("JSON");
        let expected = serde_json::json!({
            "source": "files",
            "boottime_ns": began_ns,
            "left_out": 0,
            "cgroups": [
                {"memory_bytes": null, "read_bytes_per_second": null, "path": "/"},
                {"memory_bytes": 4096, "read_bytes_per_second": null, "path": "/a, \"b\""},
            ],
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn repeated_rows_begin_with_their_time() {
        let (_, once) = written(Format::Csv, false);
        let rows = ",,/\n4096,,\"/a, \"\"b\"\"\"\n";
        let heading = "memory_bytes,read_bytes_per_second,path\n";
        assert_eq!(once, format!("{heading}{rows}{rows}"));
        let (at, repeated) = written(Format::Csv, true);
        let rows = format!("{at},,,/\n{at},4096,,\"/a, \"\"b\"\"\"\n");
        assert_eq!(repeated, format!("boottime_ns,{heading}{rows}{rows}"));
    }
}
