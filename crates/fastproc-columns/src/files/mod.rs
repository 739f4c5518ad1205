//! The fields of tables of open files and of sockets: the catalogue, and the rows.
//!
//! A row is an open file of a process, a socket that no process has, or a process with its number of files.

mod catalogue;
mod rows;

use fastproc::files::{Fields, Holder, Slot};

pub use self::{
    catalogue::COLUMNS,
    rows::{Lookup, Row, Rows},
};
use crate::field::{Field, Subject, UnknownField};

/// Open files.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenFiles;

/// A field of open files.
pub type Column = Field<OpenFiles>;
/// Which rows to show, in the language of the filters of processes.
pub type Filter = crate::Filter<OpenFiles>;
/// An order of rows.
pub type Sort = crate::Sort<OpenFiles>;

impl Subject for OpenFiles {
    type Row<'a> = Row<'a>;
    type Lookup = Lookup;
    type Fields = Fields;
    type Id = u32;

    const NO_FIELDS: Fields = Fields::empty();

    fn fields() -> &'static [Column] {
        COLUMNS
    }

    fn id(row: &Row<'_>) -> u32 {
        row.place
    }

    fn parent(row: &Row<'_>) -> u32 {
        row.place
    }

    fn place(row: &Row<'_>) -> (u32, u32) {
        let pid = row.holder.map_or(u32::MAX, Holder::pid);
        let slot = row.file.map_or(row.place, |file| match file.slot() {
            Slot::Descriptor(number) => number,
            _ => u32::MAX,
        });
        (pid, slot)
    }

    fn hides(_: &Column, _: &Row<'_>, _: &mut Lookup) -> bool {
        false
    }

    fn write_before_name(_: &Row<'_>, _: &mut Vec<u8>) {}

    fn write_after_name(_: &Row<'_>, _: &mut Vec<u8>) {}

    fn scratch(lookup: &mut Lookup) -> &mut Vec<u8> {
        &mut lookup.scratch
    }
}

/// What a table has a row for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// Every open file.
    File,
    /// Every process, with its number of open files.
    Process,
    /// Every socket.
    Socket,
}

/// The columns of the default table.
pub fn defaults(each: Each) -> Vec<&'static Column> {
    let names = match each {
        Each::File => "pid,user,comm,fd,mode,kind,device,inode,size,pos,name",
        Each::Process => "pid,user,fds,regular,sockets,pipes,anonymous,comm",
        Each::Socket => "netid,state,recv_q,send_q,local,peer,user,pid,fd,comm",
    };
    names.split(',').flat_map(find).collect()
}

/// Whether rows of processes have a field: it is one of the process, or a sum over its files.
pub fn is_of_process(column: &Column) -> bool {
    column.needs.is_empty() || ["gpu_memory", "gpu_time"].contains(&column.name)
}

/// Finds a field by its name, alias, key or heading, in letters of either case.
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
    fn names_are_found_once_and_defaults_exist() {
        for column in COLUMNS {
            let key = column.key();
            let names = [column.name, &key, &column.column_heading()].map(str::to_owned);
            let names = names.iter().map(String::as_str);
            for name in names.chain(column.aliases.iter().copied()) {
                let found = find(name).expect("its name");
                assert!(std::ptr::eq(found, column), "{name}");
            }
        }
        let counts = [Each::File, Each::Process, Each::Socket].map(|each| defaults(each).len());
        assert_eq!(counts, [11, 8, 10]);
    }

    #[test]
    fn rows_of_processes_lack_what_only_a_descriptor_has() {
        assert!(defaults(Each::Process).into_iter().all(is_of_process));
        let of_process = |name| is_of_process(find(name).expect("a field"));
        assert!(of_process("gpu_time") && of_process("container"));
        assert!(
            !["fd", "kind", "deleted", "gpu_client", "netid"]
                .map(of_process)
                .contains(&true)
        );
    }

    #[test]
    fn questions_are_filters() {
        for filter in [
            "deleted && size > 1G",
            "listen && local_port == 80",
            "kind == socket and not cloexec",
            "name =~ '^/var/log' && mode != r",
            "fds > 1000",
            "user == root && netid == tcp && state == LISTEN",
        ] {
            let parsed: Result<Filter, _> = filter.parse();
            assert!(parsed.is_ok(), "{filter}: {parsed:?}");
        }
        let error = "local_port == www".parse::<Filter>();
        assert!(error.is_err());
    }
}
