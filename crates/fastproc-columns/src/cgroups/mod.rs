//! The fields of a table of cgroups: the catalogue, the rows and reading them.
//!
//! [`COLUMNS`] has every field. [`Rows`] are the cgroups of a snapshot, with their changes since the previous one and their
//! numbers of processes ([`Members`]).

mod catalogue;
mod reader;
mod rows;

use fastproc::cgroups::Fields;

pub use self::{
    catalogue::COLUMNS,
    reader::{ReadError, Reader},
    rows::{Members, Row, Rows, with_descendants},
};
use crate::field::{Field, Subject, UnknownField};

/// Cgroups.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cgroups;

/// A field of cgroups.
pub type Column = Field<Cgroups>;
/// Which cgroups to show, in the language of the filters of processes.
pub type Filter = crate::Filter<Cgroups>;
/// An order of cgroups.
pub type Sort = crate::Sort<Cgroups>;

/// The memory in which texts are made to compare them: all values are in the rows.
#[derive(Debug, Default)]
pub struct Lookup {
    scratch: Vec<u8>,
}

impl Subject for Cgroups {
    type Row<'a> = Row<'a>;
    type Lookup = Lookup;
    type Fields = Fields;
    type Id = u64;

    const NO_FIELDS: Fields = Fields::empty();

    fn fields() -> &'static [Column] {
        COLUMNS
    }

    fn id(row: &Row<'_>) -> u64 {
        row.cgroup.id()
    }

    fn parent(row: &Row<'_>) -> u64 {
        if row.cgroup.depth() == 0 {
            row.cgroup.id()
        } else {
            row.cgroup.record().identity.parent
        }
    }

    fn place(row: &Row<'_>) -> (u32, u32) {
        (row.place, 0)
    }

    fn hides(_: &Column, _: &Row<'_>, _: &mut Lookup) -> bool {
        false
    }

    fn write_before_name(row: &Row<'_>, to: &mut Vec<u8>) {
        to.resize(to.len() + row.level * 2, b' ');
    }

    fn write_after_name(row: &Row<'_>, to: &mut Vec<u8>) {
        if row.is_folded {
            to.extend_from_slice(b" +");
        }
    }

    fn scratch(lookup: &mut Lookup) -> &mut Vec<u8> {
        &mut lookup.scratch
    }
}

/// The default columns of a single snapshot: totals.
const OF_ONE: &str = "cpu_time,memory,working_set,anon,file,swap,oom_kills,read,write,cpu_some,memory_some,memory_full,io_some,io_full,processes,path";
/// The default columns over an interval: rates.
const OF_INTERVAL: &str = "cpu,throttled,memory,working_set,anon,file,swap,oom_kills,read/s,write/s,cpu_some,memory_some,memory_full,io_some,io_full,processes,path";

/// The columns of the default table: totals, or rates if there is an interval.
pub fn defaults(is_repeated: bool) -> Vec<&'static Column> {
    let names = if is_repeated { OF_INTERVAL } else { OF_ONE };
    names.split(',').flat_map(find).collect()
}

/// Finds a field of cgroups by its name, alias, key or heading, in letters of either case.
///
/// # Errors
/// If no field has this name.
pub fn find(name: &str) -> Result<&'static Column, UnknownField> {
    Field::find(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_once_and_rates_replace_totals() {
        for column in COLUMNS {
            let key = column.key();
            let names = [column.name, &key, &column.column_heading()].map(str::to_owned);
            let names = names.iter().map(String::as_str);
            for name in names.chain(column.aliases.iter().copied()) {
                let found = find(name).expect("its name");
                assert!(std::ptr::eq(found, column), "{name}");
            }
            // A name in programs.
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            assert!(key.bytes().all(is_plain), "{key}");
        }
        let rates = |is_repeated| defaults(is_repeated).iter().filter(|of| of.is_rate).count();
        assert_eq!((rates(false), rates(true)), (0, 4));
        assert_eq!((defaults(false).len(), defaults(true).len()), (16, 17));
        assert!(find("nothing").is_err() && "-nothing".parse::<Sort>().is_err());
        let (column, is_largest_first) = "-cpu".parse::<Sort>().expect("a column").first();
        assert!(column.name == "cpu" && is_largest_first);
    }

    #[test]
    fn the_language_of_filters_is_that_of_processes() {
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
            ("memory", "'memory' is not true or false"),
            ("memroy > 1", "did you mean 'memory'?"),
            ("frozen == 2", "expected true or false"),
        ] {
            let error = wrong.parse::<Filter>().expect_err(wrong).to_string();
            assert!(error.contains(says), "{wrong}: {error}");
        }
        let check = |text: &str| {
            let filter: Filter = text.parse().expect("a filter");
            filter.check_for_one_snapshot().is_ok()
        };
        assert!(check("memory > 1M") && !check("memory > 1M || cpu > 5"));
    }
}
