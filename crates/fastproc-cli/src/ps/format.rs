//! The forms of output.

mod csv;
pub mod json;
mod table;

use std::{
    fmt,
    io::{self, Write},
    str::FromStr,
};

use clap::ValueEnum;
use fastproc::SnapshotStats;
use fastproc_columns::{Field, Lookup, Row, UnknownField, field};

/// How to write the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: aligned, rounded, cut to the width of the terminal
    #[default]
    Table,
    /// One object a snapshot, on a line, with the rows in an array
    Json,
    /// One object a row, on a line
    Ndjson,
    /// One line a row, quoted by RFC 4180 where need be
    Csv,
}

/// A field that is shown.
#[derive(Clone, Debug)]
pub struct Column {
    /// The field.
    pub field: &'static Field,
    /// Its name in JSON and csv.
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

/// What every table of a call has in common.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The fields that are shown.
    pub columns: Vec<Column>,
    /// Whether they are named at the top.
    pub headings: bool,
    /// Whether columns may be left out where the terminal is too narrow: nobody has asked for them by name.
    pub may_drop: bool,
    /// How a table follows the one before.
    pub follows: Follows,
    /// Whether no text in csv shall pass for a formula.
    pub no_formulas: bool,
}

/// How a table follows the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Below it, after an empty line.
    Apart,
    /// Drawn over it.
    InPlace,
    /// As more rows of it, below the one heading.
    Continued,
}

/// What there is to write: some rows of a snapshot.
pub struct Rows<'r, 'a> {
    /// The snapshot. `None`: they are of none, but events as they happen.
    pub stats: Option<SnapshotStats>,
    /// Processes that it has.
    pub processes: usize,
    /// Processes that had ended before it, if that is asked for.
    pub ended: Option<usize>,
    /// Whether the rows are about threads.
    pub threads: bool,
    /// Whether more snapshots follow or have gone before.
    pub repeated: bool,
    /// What the rows are about, in their order.
    pub shown: Box<dyn Iterator<Item = Row<'a>> + 'r>,
}

impl fmt::Debug for Rows<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// Writes rows in some form.
pub trait Form {
    /// Writes these rows. Called once for each snapshot.
    fn write(
        &mut self,
        rows: Rows<'_, '_>,
        lookup: &mut Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()>;
}

impl Format {
    /// A writer of rows.
    pub fn writer(self, layout: Layout) -> Box<dyn Form> {
        match self {
            Self::Table => Box::new(table::Table::new(layout)),
            Self::Json => Box::new(json::Json::document(layout.columns)),
            Self::Ndjson => Box::new(json::Json::lines(layout.columns)),
            Self::Csv => Box::new(csv::Csv::new(layout)),
        }
    }
}
