//! The rows of a table of open files.

use std::{collections::HashMap, fs};

use fastproc::{
    cgroup_path_in,
    container::Origin,
    files::{File, Holder, Kind, Snapshot, Socket},
    proc_root,
};

use super::{Each, Filter, Sort};
use crate::{Names, Sorter, short_container_id, value::Value};

/// One row.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row<'a> {
    /// The process, if one is known.
    pub holder: Option<Holder<'a>>,
    /// Its open file; none in a row of a whole process.
    pub file: Option<File<'a>>,
    /// The socket that the file is, or that no process has. `None`: the file is none, or `/proc/net` does not show it.
    pub socket: Option<Socket<'a>>,
    pub(super) place: u32,
}

/// Looks up names of users, and has the memory in which texts are made.
#[derive(Debug)]
pub struct Lookup {
    pub(super) users: Names,
    /// The ids of containers, by process; empty for none.
    containers: HashMap<u32, Box<[u8]>>,
    pub(super) scratch: Vec<u8>,
    pub(super) text: Vec<u8>,
}

impl Default for Lookup {
    fn default() -> Self {
        Self {
            users: Names::users(),
            containers: HashMap::new(),
            scratch: Vec::new(),
            text: Vec::new(),
        }
    }
}

impl Lookup {
    /// The short id of the container of a process.
    pub(super) fn container(&mut self, holder: Option<Holder<'_>>) -> Value<'_> {
        let Some(pid) = holder.map(Holder::pid) else {
            return Value::Unknown;
        };
        let id = self.containers.entry(pid).or_insert_with(|| {
            let text = fs::read(proc_root::path(&format!("/proc/{pid}/cgroup")));
            let text = text.unwrap_or_default();
            let origin = cgroup_path_in(&text).map(Origin::from_cgroup);
            let id = origin.and_then(|origin| origin.container);
            id.map(short_container_id).unwrap_or_default().into()
        });
        if id.is_empty() {
            Value::Unknown
        } else {
            Value::Text(id)
        }
    }
}

/// The rows of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Rows<'a> {
    rows: Vec<Row<'a>>,
}

impl<'a> Rows<'a> {
    /// Lists the rows, which the filter admits and which are wanted.
    pub fn new(
        snapshot: Snapshot<'a>,
        each: Each,
        filter: Option<&Filter>,
        lookup: &mut Lookup,
        mut is_wanted: impl FnMut(&Row<'a>) -> bool,
    ) -> Self {
        let mut rows = Vec::new();
        let mut add = |holder, file: Option<File<'a>>, socket| {
            let row = Row {
                holder,
                file,
                socket,
                place: rows.len() as u32,
            };
            if is_wanted(&row) && filter.is_none_or(|filter| filter.admits(&row, lookup)) {
                rows.push(row);
            }
        };
        for holder in snapshot.processes() {
            match each {
                Each::Process => add(Some(holder), None, None),
                // Of a socket without a line in the tables of /proc/net only the descriptor is known.
                Each::File | Each::Socket => holder
                    .files()
                    .filter(|file| each == Each::File || file.kind() == Kind::Socket)
                    .for_each(|file| add(Some(holder), Some(file), file.socket())),
            }
        }
        for socket in snapshot.orphans() {
            add(None, None, Some(socket));
        }
        Self { rows }
    }

    /// Puts the rows in an order, and keeps the first `top`.
    pub fn arrange(&mut self, sort: Option<&Sort>, top: usize, lookup: &mut Lookup) {
        if let Some(sort) = sort {
            let mut sorter = Sorter::default();
            let first = sorter.first(sort, top, self.rows.as_slice(), lookup);
            self.rows = first.collect();
        }
        self.rows.truncate(top);
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Row<'a>> {
        self.rows.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use fastproc::files::{Fields, Files, Source};
    use rustix::net::{AddressFamily, SocketType, socket};

    use super::*;

    #[test]
    fn a_socket_without_a_line_in_any_table_has_a_row() {
        let netlink = socket(AddressFamily::NETLINK, SocketType::RAW, None).expect("a socket");
        let files = Files::builder().fields(Fields::SOCKETS);
        let files = files.source(Some(Source::Procfs));
        let own = vec![std::process::id()];
        let mut files = files.pids(Some(own)).open().expect("/proc is there");
        let snapshot = files.snapshot().expect("a snapshot");
        let number = Some(netlink.as_raw_fd() as u32);
        let is_it = |row: &Row<'_>| row.file.and_then(File::descriptor) == number;
        let rows = Rows::new(snapshot, Each::Socket, None, &mut Lookup::default(), is_it);
        let found: Vec<_> = rows.iter().collect();
        let [row] = found[..] else {
            panic!("{found:?}");
        };
        assert!(row.socket.is_none() && row.file.and_then(File::inode).is_some());
    }
}
