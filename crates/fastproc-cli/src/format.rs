//! The output formats of all commands that list: a table, JSON and CSV.

pub mod csv;
pub mod json;
mod table;

use std::{
    collections::HashSet,
    fmt,
    io::{self, Write},
    str::FromStr,
};

use clap::ValueEnum;
use fastproc_columns::{Field, Needle, Processes, Subject, UnknownField};

use crate::redraw::Redraw;

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people: aligned, rounded, cut to the width of the terminal
    #[default]
    #[value(alias = "text")]
    Table,
    /// One JSON object per snapshot, on one line, with the rows in an array; for events the same as ndjson
    Json,
    /// One JSON object per row, on one line
    Ndjson,
    /// One line per row, quoted as in RFC 4180 where necessary
    Csv,
}

/// Other spellings of --no-headers in ps(1).
const NO_HEADINGS: [&str; 6] = [
    "no-header",
    "no-heading",
    "noheader",
    "noheaders",
    "noheading",
    "noheadings",
];

/// The options of all commands that list.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Written {
    /// Write in this format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Write JSON; the same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Write CSV; the same as --format csv.
    #[arg(long, hide = true, conflicts_with_all = ["format", "json"])]
    csv: bool,

    /// Leave out the heading of a table or of CSV.
    #[arg(long, visible_alias = "no-headings", aliases = NO_HEADINGS)]
    pub no_headers: bool,

    /// In CSV, write a ' before text that a spreadsheet would take for a formula.
    #[arg(long)]
    pub no_formulas: bool,
}

impl Written {
    /// The format.
    pub fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => self.format,
        }
    }
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column<S: Subject = Processes> {
    /// The field.
    pub field: &'static Field<S>,
    /// Its name in JSON and CSV.
    pub key: String,
    /// Whether it was named with a plus sign.
    pub is_added: bool,
}

impl<S: Subject> From<&'static Field<S>> for Column<S> {
    fn from(field: &'static Field<S>) -> Self {
        let key = field.key();
        Self {
            field,
            key,
            is_added: false,
        }
    }
}

impl<S: Subject> FromStr for Column<S> {
    type Err = UnknownField;

    fn from_str(name: &str) -> Result<Self, UnknownField> {
        Ok(Field::find(name)?.into())
    }
}

/// How the output is laid out.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Layout<S: Subject = Processes> {
    /// The columns.
    pub columns: Vec<Column<S>>,
    /// Whether there is a heading.
    pub headings: bool,
    /// Whether a narrow terminal may leave out columns: only if the user did not name them.
    pub may_drop: bool,
    /// The room that the last column then gets.
    pub room_for_last: usize,
    /// Where a table appears after the previous one.
    pub follows: Follows,
    /// Whether a table writes times below a minute with their unit.
    pub short_times: bool,
    /// Whether CSV protects text that a spreadsheet would take for a formula.
    pub no_formulas: bool,
    /// What a table on a terminal highlights in names and command lines.
    pub needle: Option<Needle>,
}

/// Where a table appears after the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Below it, separated by an empty line.
    Apart,
    /// Drawn over it.
    InPlace,
    /// Directly below it, without another heading.
    Continued,
}

impl Follows {
    /// Where tables appear that may be drawn over one another.
    pub fn after(redraw: Option<&Redraw>) -> Self {
        redraw.map_or(Self::Apart, |_| Self::InPlace)
    }
}

impl<S: Subject> Layout<S> {
    /// A table of these columns, with headings, below the one before.
    pub fn new(columns: Vec<Column<S>>) -> Self {
        Self {
            columns,
            headings: true,
            may_drop: false,
            room_for_last: 16,
            follows: Follows::Apart,
            short_times: false,
            no_formulas: false,
            needle: None,
        }
    }
}

/// The rows to write.
pub struct Rows<'r, 'a: 'r, S: Subject = Processes> {
    /// How a JSON document begins, up to its list of rows.
    pub document: String,
    /// The time of the snapshot, if each row of other formats for programs has it.
    pub boottime_ns: Option<u64>,
    /// The rows, in order.
    pub shown: Box<dyn Iterator<Item = S::Row<'a>> + 'r>,
}

impl<'r, 'a, S: Subject> Rows<'r, 'a, S> {
    /// Rows of no snapshot, such as events.
    pub fn of_events(rows: impl Iterator<Item = S::Row<'a>> + 'r) -> Self {
        Self {
            document: String::new(),
            boottime_ns: None,
            shown: Box::new(rows),
        }
    }
}

impl<S: Subject> fmt::Debug for Rows<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

/// Writes rows in one output format.
pub trait RowWriter<S: Subject = Processes> {
    /// Writes the rows of one snapshot.
    fn write(
        &mut self,
        rows: Rows<'_, '_, S>,
        lookup: &mut S::Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()>;
}

/// The first column of each key, because an object in JSON has a key once.
fn once<S: Subject>(mut columns: Vec<Column<S>>) -> Vec<Column<S>> {
    let mut keys = HashSet::new();
    columns.retain(|column| keys.insert(column.key.clone()));
    columns
}

impl Format {
    /// Creates a writer for this format.
    pub fn writer<S: Subject>(self, layout: Layout<S>) -> Box<dyn RowWriter<S>> {
        match self {
            Self::Table => Box::new(table::Table::new(layout)),
            Self::Json => Box::new(json::Json::document(once(layout.columns))),
            Self::Ndjson => Box::new(json::Json::lines(once(layout.columns))),
            Self::Csv => Box::new(csv::Csv::new(layout)),
        }
    }
}
