//! The two ways to walk the tasks, and the programs for each.

use super::object_file::{ObjectFile, object_file};
use crate::records::fields::Fields;

/// One of the two objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// `tasks.bpf.c`: one run of a syscall program, open-coded iteration.
    OpenCoded,
    /// `tasks_iter.bpf.c`: an `iter/task` program, driven by read(2).
    Iterator,
}

static OPEN_CODED: ObjectFile = object_file!("tasks.bpf");
static ITERATOR: ObjectFile = object_file!("tasks_iter.bpf");
static OPEN_CODED_TOP: ObjectFile = object_file!("tasks_top.bpf");
static ITERATOR_TOP: ObjectFile = object_file!("tasks_iter_top.bpf");

/// The objects: both walks, and their smaller variants.
#[cfg(test)]
pub(crate) static OBJECTS: [&ObjectFile; 4] =
    [&OPEN_CODED, &ITERATOR, &OPEN_CODED_TOP, &ITERATOR_TOP];

/// The groups that the smaller objects have code for: `GROUPS` in `bpf/tasks_top.bpf.c`.
const TOP: Fields = Fields::TOP.union(Fields::USERS).union(Fields::SCHEDULING);

impl Walk {
    /// The smallest object that collects these fields: code that it lacks need not be relocated, verified and
    /// discarded.
    pub(crate) fn object(self, fields: Fields) -> &'static ObjectFile {
        match (self, TOP.contains(fields)) {
            (Self::OpenCoded, true) => &OPEN_CODED_TOP,
            (Self::OpenCoded, false) => &OPEN_CODED,
            (Self::Iterator, true) => &ITERATOR_TOP,
            (Self::Iterator, false) => &ITERATOR,
        }
    }
}
