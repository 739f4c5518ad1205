//! The cgroups as columns.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    sync::{Mutex, PoisonError},
};

use fastproc::cgroups::Source;
use fastproc_columns::{
    Value,
    cgroups::{self, COLUMNS, Column, Filter, Lookup, Reader, Sort},
};
use pyo3::{exceptions::PyValueError, prelude::*, sync::MutexExt, types::PyDict};

use crate::{
    errors::{self, FilterError, Forked, UnknownField},
    filter,
};

/// Reads the cgroups of version 2.
#[pyclass(frozen, module = "fastproc")]
pub struct Cgroups {
    columns: Vec<&'static Column>,
    sort: Option<Sort>,
    filter: Option<Filter>,
    reader: Mutex<Reader>,
    /// The process that opened it.
    process: u32,
}

fn unknown(error: &fastproc_columns::UnknownField) -> PyErr {
    UnknownField::new_err(error.to_string())
}

#[pymethods]
impl Cgroups {
    #[new]
    #[pyo3(signature = (columns, *, source=None, filter=None, sort=None, once=false))]
    fn new(
        py: Python<'_>,
        columns: Option<Vec<String>>,
        source: Option<&str>,
        filter: Option<OsString>,
        sort: Option<&str>,
        once: bool,
    ) -> PyResult<Self> {
        let columns = match columns {
            None => COLUMNS.iter().collect(),
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
        let sort: Option<Sort> = sort
            .map(str::parse)
            .transpose()
            .map_err(|error| unknown(&error))?;
        let source: Option<Source> = source
            .map(str::parse)
            .transpose()
            .map_err(PyValueError::new_err)?;
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
            reader: Mutex::new(reader),
            process: std::process::id(),
        })
    }

    /// Reads them: a list for each column, by its key.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.process != std::process::id() {
            return Err(Forked::new_err(fastproc::Error::Forked.to_string()));
        }
        let reader = self.reader.lock_py_attached(py);
        let mut reader = reader.unwrap_or_else(PoisonError::into_inner);
        let reader = &mut *reader;
        py.detach(|| reader.read())
            .map_err(|error| errors::to_py_err(py, &error))?;
        let mut rows = reader.rows();
        rows.arrange(self.sort.as_ref(), None, self.filter.as_ref());
        let mut lookup = Lookup::default();
        let all = PyDict::new(py);
        for column in &self.columns {
            let values = rows
                .iter()
                .map(|row| object(py, column.value(row, &mut lookup)));
            all.set_item(column.key(), values.collect::<PyResult<Vec<_>>>()?)?;
        }
        Ok(all)
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

fn object<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Unsigned(number) => number.into_pyobject(py)?.into_any(),
        Value::Signed(number) => number.into_pyobject(py)?.into_any(),
        Value::Real(number) => number.into_pyobject(py)?.into_any(),
        Value::Truth(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        // As os.fsdecode.
        Value::Text(text) => OsStr::from_bytes(text).into_pyobject(py)?.into_any(),
        _ => py.None().into_bound(py),
    })
}

/// Names, keys and help of all columns.
#[pyfunction]
pub fn cgroup_columns() -> Vec<(&'static str, String, &'static str)> {
    COLUMNS
        .iter()
        .map(|column| (column.name, column.key(), column.help))
        .collect()
}
