//! Rows of a table, column by column.

use crate::table::{Kind, Table};

/// The values of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Numbers and times.
    Numbers(Vec<Option<i64>>),
    /// Texts, as [`crate::escape`] writes them.
    Texts(Vec<Option<Box<str>>>),
}

impl Cells {
    /// No values, of the kind of a column.
    pub const fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number | Kind::Time => Self::Numbers(Vec::new()),
            Kind::Text => Self::Texts(Vec::new()),
        }
    }

    /// So many unknown values, of the kind of a column.
    pub fn unknown(kind: Kind, count: usize) -> Self {
        match kind {
            Kind::Number | Kind::Time => Self::Numbers(vec![None; count]),
            Kind::Text => Self::Texts(vec![None; count]),
        }
    }

    /// Those of some rows. `None` if there are not so many.
    pub fn part(&self, rows: std::ops::Range<usize>) -> Option<Self> {
        Some(match self {
            Self::Numbers(values) => Self::Numbers(values.get(rows)?.to_vec()),
            Self::Texts(values) => Self::Texts(values.get(rows)?.to_vec()),
        })
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What has rows of a table, and gives them one column at a time: the whole of a table may be too large for memory.
pub trait Columns {
    /// How many rows there are.
    fn rows(&self) -> usize;

    /// The values of the column with this index in [`Table::columns`].
    fn column(&self, at: usize) -> Cells;
}

/// Rows in memory.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Their table.
    pub table: &'static Table,
    /// The values of each column of the table; of a column that was not read, none.
    pub columns: Vec<Cells>,
    /// How many rows there are.
    pub count: usize,
}

impl Rows {
    /// No rows.
    pub fn new(table: &'static Table) -> Self {
        let columns = table.columns.iter().map(|column| Cells::new(column.kind));
        Self {
            table,
            columns: columns.collect(),
            count: 0,
        }
    }

    /// The numbers or times of a column, by its name. Empty if it was not read or holds texts.
    pub fn numbers(&self, name: &str) -> &[Option<i64>] {
        match self.table.index(name).map(|at| &self.columns[at]) {
            Some(Cells::Numbers(values)) => values,
            _ => &[],
        }
    }

    /// The texts of a column, by its name. Empty if it was not read or holds numbers.
    pub fn texts(&self, name: &str) -> &[Option<Box<str>>] {
        match self.table.index(name).map(|at| &self.columns[at]) {
            Some(Cells::Texts(values)) => values,
            _ => &[],
        }
    }
}

impl Columns for Rows {
    fn rows(&self) -> usize {
        self.count
    }

    fn column(&self, at: usize) -> Cells {
        self.columns[at].clone()
    }
}
