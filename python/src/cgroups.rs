//! The cgroups as columns.

use std::{
    ffi::OsString,
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use fastproc::{UnknownSource, cgroups::Source};
use fastproc_columns::cgroups::{self, Column, Filter, Lookup, Reader, Sort};
use pyo3::{exceptions::PyValueError, prelude::*, sync::MutexExt};

use crate::{
    columns::{ColumnData, Origin, Subject, TableData},
    data::Data,
    errors::{self, FilterError, Forked, UnknownField},
    filter,
    table::Table,
};

/// Reads the cgroups of version 2.
#[pyclass(frozen, module = "fastproc")]
pub struct Cgroups {
    columns: Vec<&'static Column>,
    sort: Option<Sort>,
    filter: Option<Filter>,
    top: usize,
    reader: Mutex<Reader>,
    /// The process that opened it.
    process: u32,
}

fn unknown(error: &fastproc_columns::UnknownField) -> PyErr {
    UnknownField::new_err(format!("{error} (fastproc.fields('cgroups') has them all)"))
}

#[pymethods]
impl Cgroups {
    #[new]
    #[pyo3(signature = (columns, *, source=None, filter=None, sort=None, top=None, once=false))]
    fn new(
        py: Python<'_>,
        columns: Option<Vec<String>>,
        source: Option<&str>,
        filter: Option<OsString>,
        sort: Option<&str>,
        top: Option<usize>,
        once: bool,
    ) -> PyResult<Self> {
        let columns = match columns {
            None => cgroups::defaults(!once),
            Some(names) => names
                .iter()
                .map(|name| cgroups::find(name.trim()))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| unknown(&error))?,
        };
        let filter = filter.map(filter::text).transpose()?;
        let filter: Option<Filter> = filter.map(|text| text.parse()).transpose().map_err(
            |error: fastproc_columns::FilterError| FilterError::new_err(error.to_string()),
        )?;
        if columns.is_empty() {
            return Err(PyValueError::new_err("name at least one column"));
        }
        let sort: Option<Sort> = sort
            .or(top.map(|_| if once { "-memory" } else { "-cpu" }))
            .map(str::parse)
            .transpose()
            .map_err(|error| unknown(&error))?;
        let source: Option<Source> = source
            .map(str::parse)
            .transpose()
            .map_err(|error: UnknownSource| PyValueError::new_err(error.to_string()))?;
        let filtered = filter.iter().flat_map(Filter::fields);
        let sorted = sort.iter().flat_map(Sort::fields);
        let used = columns.iter().copied().chain(filtered).chain(sorted);
        let used: Vec<_> = used.collect();
        let reader = py
            .detach(|| Reader::open(&used, source, once))
            .map_err(|error| errors::to_py_err(py, &error))?;
        Ok(Self {
            columns,
            sort,
            filter,
            top: top.unwrap_or(usize::MAX),
            reader: Mutex::new(reader),
            process: std::process::id(),
        })
    }

    /// Reads them.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Table> {
        if self.process != std::process::id() {
            return Err(Forked::new_err(fastproc::Error::Forked.to_string()));
        }
        let reader = self.reader.lock_py_attached(py);
        let mut reader = reader.unwrap_or_else(PoisonError::into_inner);
        let reader = &mut *reader;
        let (time, began) = (SystemTime::now(), Instant::now());
        py.detach(|| reader.read())
            .map_err(|error| errors::to_py_err(py, &error))?;
        let mut rows = reader.rows();
        rows.arrange(self.sort.as_ref(), None, self.filter.as_ref());
        let len = rows.len().min(self.top);
        let mut lookup = Lookup::default();
        let columns = self.columns.iter().map(|&column| {
            let mut data = Data::new(column.kind(), len);
            for row in rows.iter().take(len) {
                data.push(column.value(row, &mut lookup));
            }
            ColumnData::new(Subject::Cgroup(column), data)
        });
        let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Table::from(TableData {
            columns: columns.collect(),
            len,
            text: true,
            origin: Origin {
                source: reader.cgroups().source().name(),
                boottime_ns: reader.cgroups().last().began_ns(),
                time_us: since_1970.as_micros() as i64,
                took_ns: began.elapsed().as_nanos() as u64,
                torn: 0,
                missed: 0,
            },
            gone: Vec::new(),
            exited: None,
        }))
    }

    /// The source in use.
    #[getter]
    fn source(&self, py: Python<'_>) -> &'static str {
        let reader = self.reader.lock_py_attached(py);
        let reader = reader.unwrap_or_else(PoisonError::into_inner);
        reader.cgroups().source().name()
    }

    /// The number of cgroups that the last snapshot lacks.
    #[getter]
    fn left_out(&self, py: Python<'_>) -> usize {
        let reader = self.reader.lock_py_attached(py);
        let reader = reader.unwrap_or_else(PoisonError::into_inner);
        reader.cgroups().last().left_out()
    }

    /// The controllers whose values are not known here.
    #[getter]
    fn absent_controllers(&self, py: Python<'_>) -> Vec<&'static str> {
        let reader = self.reader.lock_py_attached(py);
        let reader = reader.unwrap_or_else(PoisonError::into_inner);
        reader.cgroups().absent_controllers().to_vec()
    }
}
