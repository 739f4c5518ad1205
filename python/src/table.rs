//! A snapshot as columns.

use std::sync::Arc;

use fastproc_columns::field;
use pyo3::{
    exceptions::{PyAttributeError, PyKeyError, PyTypeError},
    prelude::*,
    types::{PyCapsule, PyDict, PyString},
};

use crate::{
    arrow::{ArrowArrayStream, ArrowSchema},
    column::{Column, place},
    columns::{ColumnData, TableData},
    errors, show,
};

impl TableData {
    /// The column of this key, name or alias.
    fn column(&self, name: &str) -> PyResult<&Arc<ColumnData>> {
        if let Some(column) = self.columns.iter().find(|column| column.key == name) {
            return Ok(column);
        }
        let field = field::find(name).map_err(errors::unknown_field)?;
        let same = |column: &&Arc<ColumnData>| column.field.name == field.name;
        self.columns.iter().find(same).ok_or_else(|| {
            PyKeyError::new_err(format!(
                "this table has no column '{}': name it in fields",
                field.key()
            ))
        })
    }
}

/// The processes of one moment, as columns.
///
/// ``table["rss_bytes"]`` is a column, ``table[0]`` a row, and so is what iterating gives. Polars, pandas, `PyArrow`,
/// `DuckDB` and others take the table as it is, by the Arrow `PyCapsule` interface and without a copy.
#[pyclass(frozen, module = "fastproc")]
pub struct Table {
    pub table: Arc<TableData>,
}

impl From<TableData> for Table {
    fn from(data: TableData) -> Self {
        Self {
            table: Arc::new(data),
        }
    }
}

impl Table {
    fn row(&self, at: usize) -> Row {
        Row {
            table: Arc::clone(&self.table),
            at,
        }
    }
}

#[pymethods]
impl Table {
    /// The keys of the columns.
    #[getter]
    fn keys(&self) -> Vec<&str> {
        let columns = self.table.columns.iter();
        columns.map(|column| column.key.as_str()).collect()
    }

    /// The columns.
    #[getter]
    fn columns(&self) -> Vec<Column> {
        let columns = self.table.columns.iter();
        columns
            .map(|column| Column::new(column, self.table.text))
            .collect()
    }

    /// What the processes were read by: ``service``, ``bpf``, ``bpf-iter`` or ``procfs``.
    #[getter]
    fn source(&self) -> &'static str {
        self.table.stats.source.name()
    }

    /// When reading began, in nanoseconds since boot (``CLOCK_BOOTTIME``).
    #[getter]
    fn boottime_ns(&self) -> u64 {
        self.table.stats.boottime_ns
    }

    /// How long it took, in nanoseconds.
    #[getter]
    fn took_ns(&self) -> u64 {
        self.table.stats.took.as_nanos() as u64
    }

    /// How many records were replaced while they were read, and read again from ``/proc``.
    #[getter]
    fn torn(&self) -> u32 {
        self.table.stats.torn
    }

    /// How many processes the source does not meet, and were read from ``/proc``.
    #[getter]
    fn missed(&self) -> u32 {
        self.table.stats.missed
    }

    /// Process ids of those that have ended since the snapshot that this one is the difference to.
    #[getter]
    fn gone(&self) -> Vec<u32> {
        self.table.gone.clone()
    }

    /// Processes that have ended since that snapshot, however short they lived, with their final values: a table of the same
    /// columns. None if the collector does not record them.
    #[getter]
    fn exited(&self) -> Option<Self> {
        self.table.exited.clone().map(|table| Self { table })
    }

    /// A dictionary of lists, by the keys of the columns. What is not known is None.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for column in &self.table.columns {
            all.set_item(&column.key, column.list(py, self.table.text)?)?;
        }
        Ok(all)
    }

    /// For each row the row of the table ``before`` that has the same numbers in these columns; None where there is none.
    ///
    /// The first of the columns says which row that may be, and ascends in both.
    #[allow(clippy::needless_pass_by_value, reason = "they are Python's")]
    fn rows_before(
        &self,
        before: &Bound<'_, Self>,
        columns: Vec<String>,
    ) -> PyResult<Vec<Option<usize>>> {
        let mut pairs = Vec::with_capacity(columns.len());
        for name in &columns {
            let (now, then) = (self.table.column(name)?, before.get().table.column(name)?);
            pairs.push((&now.data, &then.data));
        }
        let Some(((now, then), others)) = pairs.split_first() else {
            return Err(PyKeyError::new_err("name at least one column"));
        };
        let mut from = 0;
        let row = |at: usize| {
            let key = now.number(at)?;
            while from < then.len && then.number(from).is_none_or(|other| other < key) {
                from += 1;
            }
            let is_same = then.number(from) == Some(key)
                && others
                    .iter()
                    .all(|(now, then)| now.has_same_number(at, then, from));
            is_same.then_some(from)
        };
        Ok((0..now.len).map(row).collect())
    }

    fn __len__(&self) -> usize {
        self.table.len
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(name) = key.cast::<PyString>() {
            let column = self.table.column(&name.to_cow()?)?;
            let column = Column::new(column, self.table.text);
            return Ok(Bound::new(py, column)?.into_any());
        }
        let index: isize = key
            .extract()
            .map_err(|_| PyTypeError::new_err("a column has a name, and a row a number"))?;
        let at = place(index, self.table.len)?;
        Ok(Bound::new(py, self.row(at))?.into_any())
    }

    fn __contains__(&self, name: &str) -> bool {
        self.table.column(name).is_ok()
    }

    fn __iter__(&self) -> Rows {
        Rows {
            table: Arc::clone(&self.table),
            next: 0.into(),
        }
    }

    fn __repr__(&self) -> String {
        show::text(&self.table)
    }

    fn _repr_html_(&self) -> String {
        show::html(&self.table)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = ArrowSchema::of_table(&self.table);
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Another type than the one there is may be asked for, and need not be given.
        drop(requested_schema);
        let stream = ArrowArrayStream::of_table(&self.table);
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Iterates over the rows.
#[pyclass(frozen, module = "fastproc")]
pub struct Rows {
    table: Arc<TableData>,
    next: std::sync::atomic::AtomicUsize,
}

#[pymethods]
impl Rows {
    fn __iter__(rows: PyRef<'_, Self>) -> PyRef<'_, Self> {
        rows
    }

    fn __next__(&self) -> Option<Row> {
        let at = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (at < self.table.len).then(|| Row {
            table: Arc::clone(&self.table),
            at,
        })
    }
}

/// A row: a place in a table. Its values are made when they are asked for, as ``row.rss_bytes`` or ``row["rss"]``.
#[pyclass(frozen, module = "fastproc")]
pub struct Row {
    table: Arc<TableData>,
    at: usize,
}

#[pymethods]
impl Row {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let no_attribute = |_| PyAttributeError::new_err(format!("there is no column '{name}'"));
        let column = self.table.column(name).map_err(no_attribute)?;
        column.value(py, self.at, self.table.text)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.table.column(name)?.value(py, self.at, self.table.text)
    }

    /// The keys of the columns: ``dict(row)`` has all values.
    fn keys(&self) -> Vec<&str> {
        let columns = self.table.columns.iter();
        columns.map(|column| column.key.as_str()).collect()
    }

    /// A dictionary of its values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for column in &self.table.columns {
            let value = column.value(py, self.at, self.table.text)?;
            all.set_item(&column.key, value)?;
        }
        Ok(all)
    }

    fn __dir__(&self) -> Vec<&str> {
        self.keys()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let values = self.table.columns.iter().map(|column| {
            let value = column.value(py, self.at, self.table.text)?;
            Ok(format!("{}={}", column.key, value.repr()?))
        });
        let values: Vec<_> = values.collect::<PyResult<_>>()?;
        Ok(format!("Row({})", values.join(", ")))
    }
}
