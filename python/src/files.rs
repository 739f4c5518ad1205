//! Open files and sockets as columns.

use std::{
    ffi::OsString,
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use fastproc::files::{self, Fields, Source};
use fastproc_columns::files::{Column, Each, Filter, Lookup, Rows, Sort, defaults, find};
use pyo3::{exceptions::PyValueError, prelude::*, sync::MutexExt};

use crate::{
    columns::{ColumnData, Origin, Subject, TableData},
    data::Data,
    errors::{self, FilterError, Forked, UnknownField},
    filter,
    table::Table,
};

/// Reads open files.
#[pyclass(frozen, module = "fastproc")]
pub struct Files {
    each: Each,
    columns: Vec<&'static Column>,
    sort: Option<Sort>,
    filter: Option<Filter>,
    top: usize,
    state: Mutex<(files::Files, Lookup)>,
    /// The process that opened it.
    process: u32,
}

fn unknown(error: &fastproc_columns::UnknownField) -> PyErr {
    UnknownField::new_err(format!("{error} (fastproc.fields('files') has them all)"))
}

#[pymethods]
impl Files {
    #[new]
    #[pyo3(signature = (each, columns, *, source=None, pids=None, orphans=false, filter=None, sort=None, top=None))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's, by name")]
    fn new(
        py: Python<'_>,
        each: &str,
        columns: Option<Vec<String>>,
        source: Option<&str>,
        pids: Option<Vec<u32>>,
        orphans: bool,
        filter: Option<OsString>,
        sort: Option<&str>,
        top: Option<usize>,
    ) -> PyResult<Self> {
        let (each, groups) = match each {
            "file" => (Each::File, Fields::FILES),
            "socket" => (Each::Socket, Fields::SOCKETS),
            _ => (Each::Process, Fields::empty()),
        };
        let columns = match columns {
            None => defaults(each),
            Some(names) => names
                .iter()
                .map(|name| find(name.trim()))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| unknown(&error))?,
        };
        if columns.is_empty() {
            return Err(PyValueError::new_err("name at least one column"));
        }
        let filter = filter.map(filter::text).transpose()?;
        let filter: Option<Filter> = filter.map(|text| text.parse()).transpose().map_err(
            |error: fastproc_columns::FilterError| FilterError::new_err(error.to_string()),
        )?;
        let sort: Option<Sort> = sort
            .map(str::parse)
            .transpose()
            .map_err(|error| unknown(&error))?;
        let source: Option<Source> = source
            .map(str::parse)
            .transpose()
            .map_err(|error: fastproc::UnknownSource| PyValueError::new_err(error.to_string()))?;
        let of_columns: Fields = columns.iter().map(|column| column.needs).collect();
        let of_filter = filter.as_ref().map_or(Fields::empty(), Filter::needs);
        let of_sort = sort.as_ref().map_or(Fields::empty(), Sort::needs);
        let builder = files::Files::builder()
            .fields(groups | of_columns | of_filter | of_sort)
            .source(source)
            .pids(pids)
            .orphans(orphans)
            .hidden_sockets(each == Each::Socket)
            .once(true);
        let opened = py.detach(|| builder.open());
        let opened = opened.map_err(|error| errors::to_py_err(py, &error))?;
        Ok(Self {
            each,
            columns,
            sort,
            filter,
            top: top.unwrap_or(usize::MAX),
            state: Mutex::new((opened, Lookup::default())),
            process: std::process::id(),
        })
    }

    /// Reads them.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Table> {
        if self.process != std::process::id() {
            return Err(Forked::new_err(fastproc::Error::Forked.to_string()));
        }
        let state = self.state.lock_py_attached(py);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let (files, lookup) = &mut *state;
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        py.detach(|| {
            let began = Instant::now();
            let snapshot = files.snapshot()?;
            *lookup = Lookup::default();
            let filter = self.filter.as_ref();
            let mut rows = Rows::new(snapshot, self.each, filter, lookup, |_| true);
            rows.arrange(self.sort.as_ref(), self.top, lookup);
            let columns = self.columns.iter().map(|&column| {
                let mut data = Data::new(column.kind(), rows.len());
                for row in rows.iter() {
                    data.push(column.value(row, lookup));
                }
                ColumnData::new(Subject::File(column), data)
            });
            Ok(Table::from(TableData {
                columns: columns.collect(),
                len: rows.len(),
                text: true,
                origin: Origin {
                    source: snapshot.source().name(),
                    boottime_ns: snapshot.began_ns(),
                    time_us: time.unwrap_or_default().as_micros() as i64,
                    took_ns: began.elapsed().as_nanos() as u64,
                    torn: 0,
                    missed: 0,
                },
                gone: Vec::new(),
                exited: None,
            }))
        })
        .map_err(|error: files::Error| errors::to_py_err(py, &error))
    }
}
