//! The output formats.

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
use fastproc::SnapshotStats;
use fastproc_columns::{Field, Lookup, Row, UnknownField, field};

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people: aligned, rounded, cut to the width of the terminal
    #[default]
    Table,
    /// One JSON object per snapshot, on one line, with the rows in an array
    Json,
    /// One JSON object per row, on one line
    Ndjson,
    /// One line per row, quoted as in RFC 4180 where necessary
    Csv,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// The field.
    pub field: &'static Field,
    /// Its name in JSON and CSV.
    pub key: String,
}

impl FromStr for Column {
    type Err = UnknownField;

    fn from_str(name: &str) -> Result<Self, UnknownField> {
        let field = field::find(name)?;
        Ok(Self {
            field,
            key: field.key(),
        })
    }
}

/// How the output is laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The columns.
    pub columns: Vec<Column>,
    /// Whether there is a heading.
    pub headings: bool,
    /// Whether a narrow terminal may leave out columns: only if the user did not name them.
    pub may_drop: bool,
    /// Where a table appears after the previous one.
    pub follows: Follows,
    /// Whether CSV protects text that a spreadsheet would take for a formula.
    pub no_formulas: bool,
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

/// The rows to write.
pub struct Rows<'r, 'a> {
    /// The snapshot that they come from; `None` for events.
    pub stats: Option<SnapshotStats>,
    /// The number of processes in it.
    pub processes: usize,
    /// The number of processes that exited before it, if exits are shown.
    pub ended: Option<usize>,
    /// Whether each row is a thread.
    pub threads: bool,
    /// Whether there are several snapshots.
    pub repeated: bool,
    /// The rows, in order.
    pub shown: Box<dyn Iterator<Item = Row<'a>> + 'r>,
}

impl fmt::Debug for Rows<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// Writes rows in one output format.
pub trait RowWriter {
    /// Writes the rows of one snapshot.
    fn write(
        &mut self,
        rows: Rows<'_, '_>,
        lookup: &mut Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()>;
}

/// The first column of each key, because an object in JSON has a key once.
fn once(mut columns: Vec<Column>) -> Vec<Column> {
    let mut keys = HashSet::new();
    columns.retain(|column| keys.insert(column.key.clone()));
    columns
}

impl Format {
    /// Creates a writer for this format.
    pub fn writer(self, layout: Layout) -> Box<dyn RowWriter> {
        match self {
            Self::Table => Box::new(table::Table::new(layout)),
            Self::Json => Box::new(json::Json::document(once(layout.columns))),
            Self::Ndjson => Box::new(json::Json::lines(once(layout.columns))),
            Self::Csv => Box::new(csv::Csv::new(layout)),
        }
    }
}
