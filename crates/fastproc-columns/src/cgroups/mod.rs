//! The columns of a table of cgroups: their names, fields and values.
//!
//! [`COLUMNS`] has every [`Column`]. [`Rows`] are the cgroups of a snapshot, with their changes since the previous one
//! and their numbers of processes ([`Members`]). A [`Filter`] says which rows to show, a [`Sort`] in which order.

mod catalogue;
mod filter;
mod reader;
mod rows;

use std::str::FromStr;

use fastproc::cgroups::Fields;

pub use self::{
    catalogue::COLUMNS,
    filter::Filter,
    reader::{ReadError, Reader},
    rows::{Members, Row, Rows, with_descendants},
};
use crate::{
    escape::escape,
    value::{Unit, Value},
};

/// The text names no column, or is not a comparison.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

/// A column.
#[derive(Debug)]
#[non_exhaustive]
pub struct Column {
    /// Its name, as in `memory`.
    pub name: &'static str,
    /// Its heading in a table.
    pub heading: &'static str,
    /// The unit of its numbers.
    pub unit: Unit,
    /// The groups of fields that it needs.
    pub needs: Fields,
    /// Whether it is known only over an interval.
    pub is_rate: bool,
    /// Whether it needs the processes of cgroups.
    pub counts_processes: bool,
    /// Whether the default table has it.
    is_usual: bool,
    /// A line of help.
    pub help: &'static str,
    get: for<'a> fn(&'a Row<'_>) -> Option<Value<'a>>,
}

impl Column {
    const fn new(
        name: &'static str,
        heading: &'static str,
        unit: Unit,
        needs: Fields,
        help: &'static str,
        get: for<'a> fn(&'a Row<'_>) -> Option<Value<'a>>,
    ) -> Self {
        Self {
            name,
            heading,
            unit,
            needs,
            is_rate: false,
            counts_processes: false,
            is_usual: false,
            help,
            get,
        }
    }

    const fn rate(self) -> Self {
        Self {
            is_rate: true,
            ..self
        }
    }

    const fn usual(self) -> Self {
        Self {
            is_usual: true,
            ..self
        }
    }

    const fn counting(self) -> Self {
        Self {
            counts_processes: true,
            ..self
        }
    }

    /// Its value in a row.
    pub fn value<'a>(&self, row: &'a Row<'_>) -> Value<'a> {
        (self.get)(row).unwrap_or(Value::Unknown)
    }

    /// Appends its value in the form for people. In a tree the path is only the last part, indented by its depth.
    pub fn write_for_table(&self, row: &Row<'_>, tree: bool, to: &mut Vec<u8>) {
        if tree && self.name == "path" {
            to.resize(to.len() + row.cgroup.depth() * 2, b' ');
            return escape(row.cgroup.name(), to);
        }
        match self.value(row) {
            Value::Truth(truth) => to.extend_from_slice(if truth { b"yes" } else { b"no" }),
            value => value.write_for_table(self.unit, to),
        }
    }

    /// Whether its largest value comes first by default.
    pub fn is_largest_first(&self) -> bool {
        self.unit.is_right_aligned() && self.name != "id"
    }

    /// Its name in JSON and CSV, with the unit.
    pub fn key(&self) -> String {
        self.name.to_owned() + self.unit.suffix()
    }
}

/// The columns of the default table: totals, or rates if there is an interval.
pub fn defaults(is_repeated: bool) -> Vec<&'static Column> {
    let totals = ["cpu_time", "read", "write"];
    let usual = COLUMNS.iter().filter(|column| column.is_usual);
    usual
        .filter(|column| {
            if is_repeated {
                !totals.contains(&column.name)
            } else {
                !column.is_rate
            }
        })
        .collect()
}

/// Finds the column of this name.
///
/// # Errors
/// If no column has this name.
pub fn find(name: &str) -> Result<&'static Column, Invalid> {
    let found = COLUMNS
        .iter()
        .find(|column| column.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        Invalid(format!(
            "there is no column {name:?}; there are {}",
            names.join(", ")
        ))
    })
}

/// An order.
#[derive(Clone, Debug)]
pub struct Sort {
    /// The column to sort by.
    pub column: &'static Column,
    /// Whether the largest value comes first.
    pub largest_first: bool,
}

impl FromStr for Sort {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (largest_first, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        Ok(Self {
            column: find(name)?,
            largest_first,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_once_and_rates_replace_totals() {
        for column in COLUMNS {
            assert!(
                std::ptr::eq(find(column.name).expect("its name"), column),
                "{}",
                column.name
            );
        }
        let names = |is_repeated| -> Vec<_> {
            defaults(is_repeated)
                .into_iter()
                .map(|column| column.name)
                .collect()
        };
        assert!(names(false).contains(&"cpu_time") && !names(false).contains(&"cpu"));
        assert!(names(true).contains(&"read/s") && !names(true).contains(&"read"));
        assert_eq!(
            (names(true).last(), names(false).last()),
            (Some(&"path"), Some(&"path"))
        );
        assert!(find("nothing").is_err() && "-nothing".parse::<Sort>().is_err());
        assert!("-cpu".parse::<Sort>().expect("a column").largest_first);
    }
}
