//! The forms of output.

mod csv;
mod json;
mod table;

use std::{fmt, io, str::FromStr};

use clap::ValueEnum;
use fastproc::SnapshotStats;

use super::{
    field::{self, Field, UnknownField},
    subject::{Lookup, Subject},
};
use crate::output::Output;

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

/// What there is to write: some rows of a snapshot.
pub struct Rows<'r, 'a> {
    /// The snapshot.
    pub stats: SnapshotStats,
    /// Processes that it has.
    pub processes: usize,
    /// Whether the rows are about threads.
    pub threads: bool,
    /// Whether more snapshots follow or have gone before.
    pub repeated: bool,
    /// What the rows are about, in their order.
    pub subjects: Box<dyn Iterator<Item = &'r Subject<'a>> + 'r>,
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
        output: &mut Output,
    ) -> io::Result<()>;
}

impl Format {
    /// A writer of rows with these columns.
    pub fn writer(self, columns: Vec<Column>) -> Box<dyn Form> {
        match self {
            Self::Table => Box::new(table::Table::new(columns)),
            Self::Json => Box::new(json::Json::document(columns)),
            Self::Ndjson => Box::new(json::Json::lines(columns)),
            Self::Csv => Box::new(csv::Csv::new(columns)),
        }
    }
}
