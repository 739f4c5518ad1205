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
    field::UnknownField,
    value::{Unit, Value},
};

/// A column.
#[derive(Debug)]
#[non_exhaustive]
pub struct Column {
    /// Its name, as in `memory`.
    pub name: &'static str,
    /// Another name for it.
    alias: Option<&'static str>,
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
            alias: None,
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

    const fn also(self, alias: &'static str) -> Self {
        Self {
            alias: Some(alias),
            ..self
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

    /// Appends its value in the form for people. In a tree the path is what follows that of the nearest ancestor among the
    /// rows, indented by the number of these.
    pub fn write_for_table(&self, row: &Row<'_>, tree: bool, to: &mut Vec<u8>) {
        if tree && self.name == "path" {
            to.resize(to.len() + row.level * 2, b' ');
            return escape(row.path_below(), to);
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

/// Finds a column by its name, alias or key, in letters of either case.
///
/// # Errors
/// If no column has this name.
pub fn find(name: &str) -> Result<&'static Column, UnknownField> {
    let is = |other: &str| other.eq_ignore_ascii_case(name);
    COLUMNS
        .iter()
        .find(|column| is(column.name) || column.alias.is_some_and(is) || is(&column.key()))
        .ok_or_else(|| UnknownField::new(name, COLUMNS.iter().map(|column| column.name)))
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
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<Self, UnknownField> {
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
            let key = column.key();
            for name in [Some(column.name), column.alias, Some(key.as_str())]
                .into_iter()
                .flatten()
            {
                assert!(
                    std::ptr::eq(find(name).expect("its name"), column),
                    "{name}"
                );
            }
            // A name in programs.
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            assert!(key.bytes().all(is_plain), "{key}");
        }
        let names = |is_repeated| -> Vec<_> {
            defaults(is_repeated)
                .into_iter()
                .map(|column| column.name)
                .collect()
        };
        assert!(names(false).contains(&"cpu_time") && !names(false).contains(&"cpu"));
        assert!(names(true).contains(&"read_bytes_per_second") && !names(true).contains(&"read"));
        assert_eq!(
            (names(true).last(), names(false).last()),
            (Some(&"path"), Some(&"path"))
        );
        assert!(find("nothing").is_err() && "-nothing".parse::<Sort>().is_err());
        assert!("-cpu".parse::<Sort>().expect("a column").largest_first);
    }
}
