//! A snapshot as columns, independent of Python and Arrow.

use std::sync::Arc;

use fastproc::Snapshot;
use fastproc_columns::{
    Field, Kind, Lookup, Row, Unit, UnknownField, Value,
    cgroups::{self, Column},
    field, files,
};
use fastproc_history::table;

use crate::data::Data;

/// The meaning of a column.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// A field of processes.
    Field(&'static Field),
    /// A field of cgroups.
    Cgroup(&'static Column),
    /// A field of open files and sockets.
    File(&'static files::Column),
    /// A column of a history.
    Past(&'static table::Column),
    /// When each record was read.
    ReadAt,
}

/// The unit of the numbers of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    Seconds,
    Microseconds,
}

impl Subject {
    /// Name and help of a field that only Python has: there a row may be kept, and belong to one of many snapshots.
    pub const READ_AT: (&str, &str) = (
        "read_at",
        "when the record was read; of a process that has ended, when it ended",
    );

    /// The subject of this name, alias or key.
    pub fn find(name: &str) -> Result<Self, UnknownField> {
        if name.eq_ignore_ascii_case(Self::READ_AT.0) {
            return Ok(Self::ReadAt);
        }
        field::find(name).map(Self::Field)
    }

    /// The subject of this name, alias or key, in a table that has this one.
    pub fn find_beside(self, name: &str) -> Result<Self, UnknownField> {
        match self {
            Self::Cgroup(_) => cgroups::find(name).map(Self::Cgroup),
            Self::File(_) => files::find(name).map(Self::File),
            _ => Self::find(name),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Field(field) => field.name,
            Self::Cgroup(column) => column.name,
            Self::File(column) => column.name,
            Self::Past(column) => column.name,
            Self::ReadAt => Self::READ_AT.0,
        }
    }

    pub fn key(self) -> String {
        match self {
            Self::Field(field) => field.key(),
            Self::Cgroup(column) => column.key(),
            Self::File(column) => column.key(),
            Self::Past(_) | Self::ReadAt => self.name().into(),
        }
    }

    pub fn help(self) -> &'static str {
        match self {
            Self::Field(field) => field.help,
            Self::Cgroup(column) => column.help,
            Self::File(column) => column.help,
            Self::Past(column) => column.meaning,
            Self::ReadAt => Self::READ_AT.1,
        }
    }

    pub fn heading(self) -> String {
        match self {
            Self::Field(field) => field.column_heading(),
            Self::Cgroup(column) => column.column_heading(),
            Self::File(column) => column.column_heading(),
            Self::Past(_) | Self::ReadAt => self.name().to_uppercase(),
        }
    }

    pub fn unit(self) -> Unit {
        match self {
            Self::Field(field) => field.unit,
            Self::Cgroup(column) => column.unit,
            Self::File(column) => column.unit,
            Self::Past(column) => match (column.kind, column.unit) {
                (table::Kind::Time, _) => Unit::Date,
                (table::Kind::Text, _) => Unit::Text,
                (table::Kind::Number, "ns") => Unit::Time,
                (table::Kind::Number, "bytes") => Unit::Bytes,
                (table::Kind::Number, _) => Unit::Number,
            },
            Self::ReadAt => Unit::Date,
        }
    }

    pub fn kind(self) -> Kind {
        match self {
            Self::Field(field) => field.kind(),
            Self::Cgroup(column) => column.kind(),
            Self::File(column) => column.kind(),
            Self::Past(column) if column.kind == table::Kind::Text => Kind::Text,
            Self::Past(_) | Self::ReadAt => Kind::Signed,
        }
    }

    /// The unit of its numbers, if they are dates.
    pub fn resolution(self) -> Option<Resolution> {
        match self.unit() {
            Unit::Date if matches!(self, Self::Past(_) | Self::ReadAt) => {
                Some(Resolution::Microseconds)
            }
            Unit::Date | Unit::Start => Some(Resolution::Seconds),
            _ => None,
        }
    }

    /// The value of a row of this snapshot.
    pub fn value<'x>(
        self,
        row: &'x Row<'_>,
        snapshot: &Snapshot<'_>,
        lookup: &'x mut Lookup,
    ) -> Value<'x> {
        match self {
            Self::Field(field) => field.value(row, lookup),
            Self::Cgroup(_) | Self::File(_) | Self::Past(_) => Value::Unknown,
            Self::ReadAt => {
                let since_boot_ns = match row.exit() {
                    Some(exit) => exit.end_ns,
                    None => snapshot
                        .position(row.process.pid())
                        .map(|place| snapshot.read_ns(place)),
                };
                Value::known(since_boot_ns, |ns| {
                    Value::Signed(lookup.calendar_ns(ns).div_euclid(1000))
                })
            }
        }
    }
}

/// A column: its subject, its key, its values.
#[derive(Debug)]
pub struct ColumnData {
    pub subject: Subject,
    pub key: String,
    pub data: Data,
}

impl ColumnData {
    pub fn new(subject: Subject, data: Data) -> Arc<Self> {
        let key = subject.key();
        Arc::new(Self { subject, key, data })
    }
}

/// The snapshot of a table.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub source: &'static str,
    /// When reading began, after boot.
    pub boottime_ns: u64,
    /// The same as a calendar time, in microseconds, the resolution of Python.
    pub time_us: i64,
    pub took_ns: u64,
    pub torn: u32,
    pub missed: u32,
}

impl Origin {
    /// The origin for this snapshot, to which the clock of `lookup` is set.
    pub fn new(snapshot: &Snapshot<'_>, lookup: &Lookup) -> Self {
        let stats = snapshot.stats();
        Self {
            source: stats.source.name(),
            boottime_ns: stats.boottime_ns,
            time_us: lookup
                .calendar_ns(stats.kernel_boottime_ns())
                .div_euclid(1000),
            took_ns: stats.took.as_nanos() as u64,
            torn: stats.torn,
            missed: stats.missed,
        }
    }
}

/// The columns, and their origin.
#[derive(Clone, Debug)]
pub struct TableData {
    /// At least one.
    pub columns: Vec<Arc<ColumnData>>,
    pub len: usize,
    /// Whether texts are `str` rather than `bytes`.
    pub text: bool,
    pub origin: Origin,
    /// Pids of the processes that have exited since the snapshot before, if there was one.
    pub gone: Vec<u32>,
    /// These processes, if exits are recorded.
    pub exited: Option<Arc<TableData>>,
}

impl TableData {
    /// The first rows.
    pub fn head(&self, rows: usize) -> Self {
        let len = rows.min(self.len);
        let columns = self.columns.iter();
        let columns = columns.map(|column| ColumnData::new(column.subject, column.data.head(len)));
        Self {
            columns: columns.collect(),
            len,
            gone: self.gone.clone(),
            exited: self.exited.clone(),
            ..*self
        }
    }
}
