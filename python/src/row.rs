//! One row of a table.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pyo3::{
    exceptions::{PyAttributeError, PyTypeError},
    prelude::*,
    types::{PyDict, PyIterator, PyString, PyTuple},
};

use crate::{columns::TableData, data::Values, place::place};

/// Iterates over the rows.
#[pyclass(frozen, module = "fastproc")]
pub struct Rows {
    table: Arc<TableData>,
    next: AtomicUsize,
}

impl Rows {
    pub fn new(table: &Arc<TableData>) -> Self {
        Self {
            table: Arc::clone(table),
            next: 0.into(),
        }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(rows: PyRef<'_, Self>) -> PyRef<'_, Self> {
        rows
    }

    fn __next__(&self) -> Option<Row> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        (at < self.table.len).then(|| Row::new(&self.table, at))
    }
}

/// A row of a table. Its values are made on demand, as ``row.rss_bytes``, ``row["rss"]`` or ``row[0]``.
///
/// Like a named tuple it is a sequence of its values: ``pid, comm = row``.
#[pyclass(frozen, module = "fastproc")]
pub struct Row {
    table: Arc<TableData>,
    at: usize,
}

impl Row {
    /// The row with this index, which must exist.
    pub fn new(table: &Arc<TableData>, at: usize) -> Self {
        Self {
            table: Arc::clone(table),
            at,
        }
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let columns = self.table.columns.iter();
        columns
            .map(|column| column.value(py, self.at, self.table.text))
            .collect()
    }
}

#[pymethods]
impl Row {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let no_attribute = |error: PyErr| PyAttributeError::new_err(error.value(py).to_string());
        let column = self.table.column(name).map_err(no_attribute)?;
        column.value(py, self.at, self.table.text)
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(name) = key.cast::<PyString>() {
            let column = self.table.column(&name.to_cow()?)?;
            return column.value(py, self.at, self.table.text);
        }
        let columns = &self.table.columns;
        let at = place(key, columns.len())?.ok_or_else(|| {
            PyTypeError::new_err("a value of a row has the name or the number of its column")
        })?;
        columns[at].value(py, self.at, self.table.text)
    }

    /// With U+FFFD for bytes that are not UTF-8: pandas makes data frames from this, and cannot hold other texts.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let mut values = self.values(py)?;
        for (column, value) in self.table.columns.iter().zip(&mut values) {
            match &column.data.values {
                Values::Text(texts) if self.table.text && column.data.is_known(self.at) => {
                    let text = texts.get(self.at);
                    if std::str::from_utf8(text).is_err() {
                        *value = String::from_utf8_lossy(text).into_pyobject(py)?.into_any();
                    }
                }
                _ => {}
            }
        }
        PyTuple::new(py, values)?.try_iter()
    }

    fn __len__(&self) -> usize {
        self.table.columns.len()
    }

    /// The keys, under the name that a named tuple has for them, which pandas uses.
    #[getter]
    fn _fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.keys())
    }

    /// The keys of the columns, so that ``dict(row)`` has all values.
    fn keys(&self) -> Vec<&str> {
        let columns = self.table.columns.iter();
        columns.map(|column| column.key.as_str()).collect()
    }

    /// The values as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (column, value) in self.table.columns.iter().zip(self.values(py)?) {
            all.set_item(&column.key, value)?;
        }
        Ok(all)
    }

    /// The index of the first equal value.
    fn index(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        PyTuple::new(py, self.values(py)?)?
            .as_sequence()
            .index(value)
    }

    /// The number of equal values.
    fn count(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        PyTuple::new(py, self.values(py)?)?
            .as_sequence()
            .count(value)
    }

    fn __dir__(&self) -> Vec<&str> {
        self.keys()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let columns = self.table.columns.iter();
        let values = columns
            .zip(self.values(py)?)
            .map(|(column, value)| Ok(format!("{}={}", column.key, value.repr()?)));
        let values: Vec<_> = values.collect::<PyResult<_>>()?;
        Ok(format!("Row({})", values.join(", ")))
    }
}
