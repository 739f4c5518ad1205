//! `--filter` of cgroups: which rows to show, in the language of the filters of processes.

use std::str::FromStr;

use super::{Column, Row, find};
use crate::{
    field::UnknownField,
    filter::{Condition, FilterError, Named, Values},
    value::{Unit, Value},
};

/// A condition on a cgroup. Its result is true, false or unknown.
#[derive(Clone, Debug)]
pub struct Filter(Condition<&'static Column>);

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        text.parse().map(Self)
    }
}

impl Filter {
    /// The columns that the filter compares.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> {
        self.0.fields().into_iter()
    }

    /// Checks that the filter can be used on a single snapshot, that is, it compares no rates.
    ///
    /// # Errors
    /// If the filter compares a rate, which needs an interval between two snapshots.
    pub fn check_for_one_snapshot(&self) -> Result<(), FilterError> {
        self.0.check_for_one_snapshot()
    }

    /// Whether the row meets the condition for certain.
    pub fn admits(&self, row: &Row<'_>) -> bool {
        self.0.admits(&mut OfCgroup(row), &mut Vec::new())
    }
}

impl Named for &'static Column {
    fn find(name: &str) -> Result<Self, UnknownField> {
        find(name)
    }

    fn name(self) -> &'static str {
        self.name
    }

    fn unit(self) -> Unit {
        self.unit
    }

    fn key(self) -> String {
        Column::key(self)
    }

    fn is_rate(self) -> bool {
        self.is_rate
    }
}

/// The row of a cgroup.
struct OfCgroup<'a, 'r>(&'a Row<'r>);

impl Values<&'static Column> for OfCgroup<'_, '_> {
    fn value(&mut self, column: &'static Column) -> Value<'_> {
        column.value(self.0)
    }

    fn write_for_table(&mut self, column: &'static Column, to: &mut Vec<u8>) {
        column.write_for_table(self.0, false, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_that_of_processes() {
        for filter in [
            "memory>=1.5K",
            "cpu > 5% && path =~ kube || not (frozen and oom_kills > 0)",
            "path !~ '^/system' && cpu_time < 2m",
            "read/s > 1M/s && read_bytes_per_second > 1M && read_bytes > 1",
            "frozen == true",
            "!populated",
        ] {
            let parsed: Result<Filter, _> = filter.parse();
            assert!(parsed.is_ok(), "{filter}: {parsed:?}");
        }
        for (wrong, says) in [
            ("", "a field, ! or ( is expected here"),
            ("memory", "'memory' is not true or false"),
            ("memory > x", "this is not a number"),
            ("memroy > 1", "did you mean 'memory'?"),
            ("path ~ kube", "use =~ with a regular expression"),
            ("path == a || nothing", "there is no field 'nothing'"),
            ("frozen == 2", "true or false is expected here"),
            ("cpu > 1 &&", "a field, ! or ( is expected here"),
        ] {
            let error = wrong.parse::<Filter>().expect_err(wrong).to_string();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_rate_is_none_of_a_single_snapshot() {
        let check = |text: &str| {
            let filter: Filter = text.parse().expect("a filter");
            filter.check_for_one_snapshot().is_ok()
        };
        assert!(check("memory > 1M") && !check("memory > 1M || cpu > 5"));
    }
}
