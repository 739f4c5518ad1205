//! A table: a snapshot as columns.

use std::sync::Arc;

use pyo3::{
    exceptions::{PyKeyError, PyTypeError},
    prelude::*,
    types::{PyCapsule, PyDict, PyString},
};

use crate::{
    arrow::{ArrowArrayStream, ArrowSchema},
    column::Column,
    columns::{ColumnData, Subject, TableData},
    errors,
    place::place,
    row::{Row, Rows},
    show,
    value::date_of,
};

impl TableData {
    /// The column with this key, name or alias.
    pub fn column(&self, name: &str) -> PyResult<&Arc<ColumnData>> {
        if let Some(column) = self.columns.iter().find(|column| column.key == name) {
            return Ok(column);
        }
        let beside = self
            .columns
            .first()
            .map_or(Subject::ReadAt, |column| column.subject);
        let none = |key: &str| {
            PyKeyError::new_err(format!(
                "this table has no column '{key}': name it in fields"
            ))
        };
        // Columns of a history have one name each.
        if let Subject::Past(_) = beside {
            return Err(none(name));
        }
        let subject = beside.find_beside(name).map_err(errors::unknown_field)?;
        let same = |column: &&Arc<ColumnData>| column.subject.name() == subject.name();
        let found = self.columns.iter().find(same);
        found.ok_or_else(|| none(&subject.key()))
    }
}

/// Processes or cgroups at one moment, as columns.
///
/// ``table["rss_bytes"]`` is a column, ``table[0]`` a row; iterating yields rows. ``to_polars()``, ``to_pandas()`` and
/// ``to_arrow()`` make data frames, which compute. Polars, pandas, `PyArrow`, `DuckDB` and others use the table without a copy, by
/// the Arrow `PyCapsule` interface.
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
    /// Converts the table with another package.
    fn converted<'py>(slf: &Bound<'py, Self>, to: &str) -> PyResult<Bound<'py, PyAny>> {
        let frames = slf.py().import("fastproc._frames")?;
        frames.call_method1(to, (slf,))
    }
}

#[pymethods]
impl Table {
    /// The names of the columns, with the units of their numbers.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        let columns = self.table.columns.iter();
        columns.map(|column| column.key.as_str()).collect()
    }

    /// The numbers of rows and of columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.table.len, self.table.columns.len())
    }

    /// A table of the first rows.
    #[pyo3(signature = (rows=5))]
    fn head(&self, rows: usize) -> Self {
        self.table.head(rows).into()
    }

    /// The source: ``service``, ``bpf``, ``bpf-iter`` or ``procfs``; of cgroups ``files`` instead of the last two; or ``history``.
    #[getter]
    fn source(&self) -> &'static str {
        self.table.origin.source
    }

    /// When reading began, in nanoseconds since boot (``CLOCK_BOOTTIME``).
    #[getter]
    fn boottime_ns(&self) -> u64 {
        self.table.origin.boottime_ns
    }

    /// When reading began, as a ``datetime`` in UTC.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        date_of(py, self.table.origin.time_us)
    }

    /// How long it took, in nanoseconds.
    #[getter]
    fn took_ns(&self) -> u64 {
        self.table.origin.took_ns
    }

    /// The number of records that were replaced while they were read, and read again from ``/proc``.
    #[getter]
    fn torn(&self) -> u32 {
        self.table.origin.torn
    }

    /// The number of processes that the source misses, and that were read from ``/proc``.
    #[getter]
    fn missed(&self) -> u32 {
        self.table.origin.missed
    }

    /// Pids of the processes that have exited since the snapshot before, for a difference.
    #[getter]
    fn gone(&self) -> Vec<u32> {
        self.table.gone.clone()
    }

    /// Processes that have exited since that snapshot, also the shortest-lived, with their final values: a table with
    /// the same columns. None if the collector does not record them.
    #[getter]
    fn exited(&self) -> Option<Self> {
        self.table.exited.clone().map(|table| Self { table })
    }

    /// A dictionary of lists, by the keys of the columns. Unknown values are None.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for column in &self.table.columns {
            all.set_item(&column.key, column.list(py, self.table.text)?)?;
        }
        Ok(all)
    }

    /// For each row the row of the table ``before`` with the same numbers in these columns; None if there is none.
    ///
    /// The first of the columns must ascend in both tables.
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

    /// A pandas data frame, for which only pandas 1.5 or later is needed.
    ///
    /// Unknown values are NA: such columns have pandas types with NA, such as ``UInt64``.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::converted(slf, "to_pandas")
    }

    /// A data frame of Polars, without a copy.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::converted(slf, "to_polars")
    }

    /// A table of `PyArrow`, without a copy.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::converted(slf, "to_arrow")
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let text = self.table.text;
        if let Ok(name) = key.cast::<PyString>() {
            let column = Column::new(self.table.column(&name.to_cow()?)?, text);
            return Ok(Bound::new(py, column)?.into_any());
        }
        let at = place(key, self.table.len)?.ok_or_else(|| {
            PyTypeError::new_err(
                "in brackets stands the name of a column, or the number of a row; to_polars() and to_pandas() select others",
            )
        })?;
        Ok(Bound::new(py, Row::new(&self.table, at))?.into_any())
    }

    fn __contains__(&self, name: &str) -> bool {
        self.table.column(name).is_ok()
    }

    fn __iter__(&self) -> Rows {
        Rows::new(&self.table)
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
        // A consumer may request another type, but need not get it.
        drop(requested_schema);
        let stream = ArrowArrayStream::of_table(&self.table);
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
