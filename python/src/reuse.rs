//! Columns whose values are taken from the last table where the records have not changed.

use std::{ops::Range, sync::Arc};

use fastproc::{Process, Snapshot};
use fastproc_columns::{Lookup, Row, Value};

use crate::{
    columns::{ColumnData, Subject, TableData},
    data::{Bits, Data, Lists, Values},
};

/// The table of the last snapshot of a collector, with a row for each process in the order of their pids.
#[derive(Debug)]
pub struct Last {
    pids: Vec<u32>,
    /// Whether it shows the guarded values of every process.
    sees_all: bool,
    /// By its place in the table, each column whose values are the same as long as the records are.
    columns: Vec<Option<Arc<ColumnData>>>,
}

/// Rows of a table in their order.
enum Part<'a> {
    /// These rows of the last table.
    Same(Range<usize>),
    /// That of a process that may have changed.
    New(Process<'a>),
}

impl Last {
    /// `None`: the table has no such column, or other rows.
    pub fn new(snapshot: &Snapshot<'_>, lookup: &Lookup, table: &TableData) -> Option<Self> {
        let follows = |subject: Subject| match subject {
            Subject::Field(field) => field.follows_record(false),
            _ => false,
        };
        let columns = table.columns.iter();
        let columns: Vec<_> = columns
            .map(|column| follows(column.subject).then(|| Arc::clone(column)))
            .collect();
        let is_of_use = table.len == snapshot.len() && columns.iter().any(Option::is_some);
        is_of_use.then(|| Self {
            pids: snapshot.iter().map(Process::pid).collect(),
            sees_all: lookup.sees_all,
            columns,
        })
    }

    /// Whether the column at this place of the table can be filled from here.
    pub fn has(&self, at: usize, lookup: &Lookup) -> bool {
        self.column(at).is_some_and(|column| {
            let is_guarded = matches!(column.subject, Subject::Field(field) if field.is_guarded());
            !is_guarded || self.sees_all && lookup.sees_all
        })
    }

    fn column(&self, at: usize) -> Option<&ColumnData> {
        self.columns.get(at)?.as_deref()
    }

    /// Fills columns that are here, each with its place in the table.
    pub fn fill(
        &self,
        snapshot: &Snapshot<'_>,
        columns: Vec<(usize, (&Subject, &mut Data))>,
        lookup: &mut Lookup,
    ) {
        let parts = self.parts(snapshot);
        for (at, (subject, data)) in columns {
            let Some(last) = self.column(at) else {
                continue;
            };
            for part in &parts {
                match part {
                    Part::Same(rows) => data.extend(&last.data, rows.clone()),
                    Part::New(process) => {
                        data.push(subject.value(&Row::new(*process), snapshot, lookup));
                    }
                }
            }
            if cfg!(debug_assertions) {
                let mut anew = Data::new(subject.kind(), data.len);
                for process in snapshot.iter() {
                    anew.push(subject.value(&Row::new(process), snapshot, lookup));
                }
                assert_eq!(*data, anew, "{}: reused and anew", subject.name());
            }
        }
    }

    fn parts<'a>(&self, snapshot: &Snapshot<'a>) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut before = 0;
        for (process, changed) in snapshot.iter_with_changed() {
            let pid = process.pid();
            while self.pids.get(before).is_some_and(|&other| other < pid) {
                before += 1;
            }
            let is_same = !changed && self.pids.get(before) == Some(&pid);
            match parts.last_mut() {
                Some(Part::Same(rows)) if is_same && rows.end == before => rows.end += 1,
                _ if is_same => parts.push(Part::Same(before..before + 1)),
                _ => parts.push(Part::New(process)),
            }
        }
        parts
    }
}

impl Data {
    /// Appends rows of another column of the same subject.
    fn extend(&mut self, other: &Self, rows: Range<usize>) {
        match (&mut self.values, &other.values) {
            (Values::Unsigned(to), Values::Unsigned(from)) => to.extend_by(from, rows.clone()),
            (Values::Signed(to), Values::Signed(from)) => to.extend_by(from, rows.clone()),
            (Values::Real(to), Values::Real(from)) => to.extend_by(from, rows.clone()),
            (Values::Truth(to), Values::Truth(from)) => to.extend_by(from, rows.clone()),
            (Values::Text(to), Values::Text(from)) => to.extend_by(from, rows.clone()),
            (Values::Arguments(to), Values::Arguments(from)) => to.extend_by(from, rows.clone()),
            (Values::Numbers(to), Values::Numbers(from)) => to.extend_by(from, rows.clone()),
            _ => {
                debug_assert!(false, "columns of one subject have values of one kind");
                return rows.for_each(|_| self.push(Value::Unknown));
            }
        }
        if other.unknown > 0 {
            self.unknown += rows.clone().filter(|&row| !other.is_known(row)).count();
        }
        self.known.extend_by(&other.known, rows.clone());
        self.len += rows.len();
    }
}

/// Lists to which parts of others can be appended.
trait ExtendBy {
    fn extend_by(&mut self, from: &Self, rows: Range<usize>);
}

impl<T: Copy> ExtendBy for Vec<T> {
    fn extend_by(&mut self, from: &Self, rows: Range<usize>) {
        self.extend_from_slice(&from[rows]);
    }
}

impl ExtendBy for Bits {
    fn extend_by(&mut self, from: &Self, rows: Range<usize>) {
        rows.for_each(|row| self.push(from.get(row)));
    }
}

impl<I: ExtendBy> ExtendBy for Lists<I> {
    fn extend_by(&mut self, from: &Self, rows: Range<usize>) {
        let offsets = &from.offsets[rows.start..=rows.end];
        let (first, last) = (offsets[0], offsets[rows.len()]);
        let base = self.offsets[self.len()];
        self.items
            .extend_by(&from.items, first as usize..last as usize);
        let moved = offsets[1..].iter().map(|end| end - first + base);
        self.offsets.extend(moved);
    }
}
