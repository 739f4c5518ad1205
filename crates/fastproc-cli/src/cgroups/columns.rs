//! The columns: what they are called, what they need, and what they show.

use fastproc::cgroups::Fields;
use fastproc_columns::{Unit, Value};

pub use super::catalogue::COLUMNS;
use super::rows::Row;

/// A column.
#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    pub heading: &'static str,
    pub unit: Unit,
    pub needs: Fields,
    /// Whether it is known only over an interval.
    pub is_rate: bool,
    pub counts_processes: bool,
    /// Whether the default table has it.
    is_usual: bool,
    pub help: &'static str,
    get: for<'a> fn(&'a Row<'_>) -> Option<Value<'a>>,
}

impl Column {
    pub(super) const fn new(
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

    pub(super) const fn rate(self) -> Self {
        Self {
            is_rate: true,
            ..self
        }
    }

    pub(super) const fn usual(self) -> Self {
        Self {
            is_usual: true,
            ..self
        }
    }

    pub(super) const fn counting(self) -> Self {
        Self {
            counts_processes: true,
            ..self
        }
    }

    /// Its value in a row.
    pub fn value<'a>(&self, row: &'a Row<'_>) -> Value<'a> {
        (self.get)(row).unwrap_or(Value::Unknown)
    }

    /// Its name in JSON and CSV.
    pub fn key(&self) -> String {
        self.name.to_owned() + self.unit.suffix()
    }
}

/// The columns of the default table: totals, or with an interval rates in their place.
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

/// The column of this name.
pub fn find(name: &str) -> Result<&'static Column, String> {
    let found = COLUMNS
        .iter()
        .find(|column| column.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        format!(
            "there is no column {name:?}; there are {}",
            names.join(", ")
        )
    })
}

/// An order.
#[derive(Clone, Debug)]
pub struct Sort {
    pub column: &'static Column,
    pub largest_first: bool,
}

impl Sort {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (largest_first, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        Ok(Self {
            column: find(name)?,
            largest_first,
        })
    }

    pub fn largest(name: &str) -> Option<Self> {
        Some(Self {
            column: find(name).ok()?,
            largest_first: true,
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
        assert!(find("nothing").is_err() && Sort::parse("-nothing").is_err());
        assert!(Sort::parse("-cpu").expect("a column").largest_first);
    }
}
