//! What tables have rows of: processes, cgroups or open files.

use std::fmt::Debug;

use super::{FIELDS, Field};
use crate::row::{Lookup, Row};

/// What a table has rows of. Its fields, filters, orders, trees and tables are all the same code.
pub trait Subject: Copy + Debug + Default + Send + Sync + 'static {
    /// A row.
    type Row<'a>: Copy;
    /// Looks up values that are not in a row.
    type Lookup;
    /// Groups of fields, which a collector reads together.
    type Fields: Copy + Debug + Send + Sync + FromIterator<Self::Fields>;
    /// Names a row for its children in a tree.
    type Id: Ord + Copy + Debug + Default;

    /// No groups of fields.
    const NO_FIELDS: Self::Fields;

    /// Whether rows are processes, whose states are letters and whose exit statuses have names.
    const ARE_PROCESSES: bool = false;

    /// All fields, in the order of the help.
    fn fields() -> &'static [Field<Self>];

    /// The id of a row.
    fn id(row: &Self::Row<'_>) -> Self::Id;

    /// The id of the row that this one is below in a tree; its own for none.
    fn parent(row: &Self::Row<'_>) -> Self::Id;

    /// Numbers that order rows which are otherwise equal.
    fn place(row: &Self::Row<'_>) -> (u32, u32);

    /// Whether this reader must not see the value of the field, or whether the row cannot have it.
    fn hides(field: &Field<Self>, row: &Self::Row<'_>, lookup: &mut Self::Lookup) -> bool;

    /// Appends what a table shows before the name of a row: the branches of a tree.
    fn write_before_name(row: &Self::Row<'_>, to: &mut Vec<u8>);

    /// Appends what a table shows after it.
    fn write_after_name(row: &Self::Row<'_>, to: &mut Vec<u8>);

    /// The memory in which a filter makes texts.
    fn scratch(lookup: &mut Self::Lookup) -> &mut Vec<u8>;
}

/// Processes and threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Processes;

impl Subject for Processes {
    type Row<'a> = Row<'a>;
    type Lookup = Lookup;
    type Fields = fastproc::Fields;
    type Id = u32;

    const NO_FIELDS: fastproc::Fields = fastproc::Fields::empty();
    const ARE_PROCESSES: bool = true;

    fn fields() -> &'static [Field] {
        FIELDS
    }

    fn id(row: &Row<'_>) -> u32 {
        row.process.pid()
    }

    fn parent(row: &Row<'_>) -> u32 {
        row.process.identity().ppid
    }

    fn place(row: &Row<'_>) -> (u32, u32) {
        row.ids()
    }

    #[inline]
    fn hides(field: &Field, row: &Row<'_>, lookup: &mut Lookup) -> bool {
        let is_io = || field.needs.contains(fastproc::Fields::IO);
        field.is_guarded() && !lookup.sees_all && !lookup.shows(row, is_io())
            || field.of_living && row.event.is_some()
            || lookup.lacks.is_some_and(|lacks| lacks.contains(field.name))
    }

    fn write_before_name(row: &Row<'_>, to: &mut Vec<u8>) {
        to.extend_from_slice(row.branch);
    }

    fn write_after_name(row: &Row<'_>, to: &mut Vec<u8>) {
        if row.state().letter() == b'Z' {
            to.extend_from_slice(b" <defunct>");
        }
    }

    fn scratch(lookup: &mut Lookup) -> &mut Vec<u8> {
        &mut lookup.scratch
    }
}
