//! Rows of a history as columns.

use std::{
    ffi::CString,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use fastproc_columns::{Value, parse_instant};
use fastproc_history::{
    folder::USUAL,
    read::{Error, History},
    rows::{Cells, Rows},
    table::{self, Column},
};
use pyo3::{
    exceptions::{PyRuntimeWarning, PyValueError},
    prelude::*,
};
use rustix::time::{ClockId, clock_gettime};

use crate::{
    columns::{ColumnData, Origin, Subject, TableData},
    data::Data,
    errors::{self, UnknownField},
    table::Table,
};

/// The folders add it.
static HOST: LazyLock<Column> = LazyLock::new(|| Column {
    name: "host",
    kind: table::Kind::Text,
    unit: "",
    meaning: "The name of the host.",
    member: None,
    group: 0,
});

/// A time.
#[derive(FromPyObject)]
pub enum When {
    /// As people type it.
    Text(String),
    /// In microseconds since 1970.
    Time(i64),
}

impl When {
    fn time(this: Option<&Self>, usual: i64) -> PyResult<i64> {
        match this {
            None => Ok(usual),
            Some(Self::Time(time)) => Ok(*time),
            Some(Self::Text(text)) => parse_instant(text)
                .map_err(|error| PyValueError::new_err(format!("'{text}': {error}"))),
        }
    }
}

/// Columns of all rows of a time.
#[pyfunction]
#[pyo3(signature = (from, to, fields, /, *, folder=None, host=None, table="processes"))]
#[allow(clippy::needless_pass_by_value, reason = "they are Python's")]
pub fn history(
    py: Python<'_>,
    from: Option<When>,
    to: Option<When>,
    fields: Option<Vec<String>>,
    folder: Option<PathBuf>,
    host: Option<&str>,
    table: &str,
) -> PyResult<Table> {
    let time = (
        When::time(from.as_ref(), i64::MIN / 2)?,
        When::time(to.as_ref(), i64::MAX / 2)?,
    );
    if time.1 < time.0 {
        return Err(PyValueError::new_err("to is earlier than from_"));
    }
    let table = named(table)?;
    let columns = chosen(table, fields)?;
    let folder = folder.as_deref().unwrap_or(Path::new(USUAL));
    let read = py.detach(|| read(folder, host, table, time, &columns));
    let (data, damaged) = read.map_err(|error| errors::to_py_err(py, &error))?;
    for damage in damaged {
        let category = py.get_type::<PyRuntimeWarning>();
        PyErr::warn(py, &category, &CString::new(damage)?, 2)?;
    }
    Ok(data.into())
}

fn named(name: &str) -> PyResult<&'static table::Table> {
    // A thinned file has more columns.
    let tables = table::all().map(|table| match table.name {
        "processes" => &*table::THINNED,
        _ => table,
    });
    let found = tables.iter().find(|table| table.name == name);
    found.copied().ok_or_else(|| {
        let names = tables.map(|table| table.name).join(", ");
        PyValueError::new_err(format!("a history has no table '{name}'; it has {names}"))
    })
}

fn chosen(
    table: &'static table::Table,
    fields: Option<Vec<String>>,
) -> PyResult<Vec<&'static Column>> {
    let all = || std::iter::once(&*HOST).chain(&table.columns);
    let Some(fields) = fields else {
        return Ok(all().collect());
    };
    let mut columns: Vec<&Column> = Vec::new();
    for name in &fields {
        let name = name.trim();
        let column = all().find(|column| column.name == name).ok_or_else(|| {
            let names: Vec<_> = all().map(|column| column.name).collect();
            let (table, names) = (table.name, names.join(", "));
            UnknownField::new_err(format!("{table} has no column '{name}'; it has {names}"))
        })?;
        if !columns.iter().any(|other| other.name == name) {
            columns.push(column);
        }
    }
    if columns.is_empty() {
        return Err(PyValueError::new_err("name at least one column"));
    }
    Ok(columns)
}

/// The rows, and what is damaged.
fn read(
    folder: &Path,
    host: Option<&str>,
    table: &'static table::Table,
    time: (i64, i64),
    columns: &[&'static Column],
) -> Result<(TableData, Vec<String>), Error> {
    let (began, now) = (Instant::now(), SystemTime::now());
    let boottime = clock_gettime(ClockId::Boottime);
    let wanted: Vec<_> = columns.iter().map(|column| column.name).collect();
    let mut data: Vec<_> = columns
        .iter()
        .map(|&column| (column, Data::new(Subject::Past(column).kind(), 0)))
        .collect();
    let (mut len, mut damaged) = (0, Vec::new());
    let hosts = match host {
        Some(host) => vec![host.into()],
        None => History::hosts(folder)?,
    };
    if hosts.is_empty() {
        return Err(Error::Empty(folder.into()));
    }
    for host in hosts {
        let mut history = History::open(folder, Some(&host))?;
        history.read(table, time, &wanted, |rows| {
            len += rows.count;
            for (column, data) in &mut data {
                extend(data, column, &host, rows);
            }
        })?;
        damaged.extend(history.damaged().iter().map(|damage| {
            let path = damage.path.display();
            format!("{path} is damaged, and left out: {}", damage.error)
        }));
    }
    let columns = data
        .into_iter()
        .map(|(column, data)| ColumnData::new(Subject::Past(column), data));
    let table = TableData {
        columns: columns.collect(),
        len,
        text: true,
        origin: Origin {
            source: "history",
            boottime_ns: boottime.tv_sec as u64 * 1_000_000_000 + boottime.tv_nsec as u64,
            time_us: now
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_micros() as i64,
            took_ns: began.elapsed().as_nanos() as u64,
            torn: 0,
            missed: 0,
        },
        gone: Vec::new(),
        exited: None,
    };
    Ok((table, damaged))
}

fn extend(data: &mut Data, column: &Column, host: &str, rows: &Rows) {
    if column.name == HOST.name {
        return (0..rows.count).for_each(|_| data.push(Value::Text(host.as_bytes())));
    }
    match rows.table.index(column.name).map(|at| &rows.columns[at]) {
        Some(Cells::Numbers(values)) => {
            for value in values {
                data.push(Value::known(*value, Value::Signed));
            }
        }
        Some(Cells::Texts(values)) => {
            for value in values {
                data.push(Value::known(value.as_deref(), |text| {
                    Value::Text(text.as_bytes())
                }));
            }
        }
        None => {}
    }
}
