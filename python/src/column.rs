//! A column of a table, for Python.

use std::sync::Arc;

use pyo3::{
    exceptions::{PyAttributeError, PyTypeError},
    prelude::*,
    pyclass::CompareOp,
    types::{PyCapsule, PyDict, PyList, PyTuple},
};

use crate::{
    arrow::{ArrowArray, ArrowSchema},
    columns::ColumnData,
    data::Values,
    place::place,
};

/// One column of a table.
#[pyclass(frozen, module = "fastproc")]
pub struct Column {
    pub column: Arc<ColumnData>,
    text: bool,
}

impl ColumnData {
    /// The address of the numbers, and their type in `NumPy`'s notation.
    fn address(&self) -> Option<(usize, char)> {
        match &self.data.values {
            Values::Unsigned(numbers) => Some((numbers.as_ptr() as usize, 'u')),
            Values::Signed(numbers) => Some((numbers.as_ptr() as usize, 'i')),
            Values::Real(numbers) => Some((numbers.as_ptr() as usize, 'f')),
            _ => None,
        }
    }
}

impl Column {
    pub fn new(column: &Arc<ColumnData>, text: bool) -> Self {
        Self {
            column: Arc::clone(column),
            text,
        }
    }
}

#[pymethods]
impl Column {
    /// Its name, as in proc(5) or ps(1).
    #[getter]
    fn name(&self) -> &'static str {
        self.column.subject.name()
    }

    /// Its name with the unit of its numbers, as in ``ps --format json``: the key of the column.
    #[getter]
    fn key(&self) -> &str {
        &self.column.key
    }

    /// The kind of its values: ``unsigned``, ``signed``, ``real``, ``truth``, ``text``, ``date``, or lists of
    /// ``arguments`` or ``numbers``.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.column.data.values {
            Values::Signed(_) if self.column.subject.resolution().is_some() => "date",
            Values::Unsigned(_) => "unsigned",
            Values::Signed(_) => "signed",
            Values::Real(_) => "real",
            Values::Truth(_) => "truth",
            Values::Text(_) => "text",
            Values::Arguments(_) => "arguments",
            Values::Numbers(_) => "numbers",
        }
    }

    /// A line of help: the meaning of the values.
    #[getter]
    fn help(&self) -> &'static str {
        self.column.subject.help()
    }

    /// The number of unknown values.
    #[getter]
    fn null_count(&self) -> usize {
        self.column.data.unknown
    }

    /// The values as a list. Unknown values are None.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.column.list(py, self.text)
    }

    /// The numbers for `NumPy`, without a copy. Missing if a value is unknown, or if the column has no numbers.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let address = self.column.address();
        let (address, letter) = address
            .filter(|_| self.column.data.unknown == 0)
            .ok_or_else(|| PyAttributeError::new_err("__array_interface__"))?;
        let interface = PyDict::new(py);
        let order = if cfg!(target_endian = "little") {
            '<'
        } else {
            '>'
        };
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.column.data.len,))?;
        interface.set_item("typestr", format!("{order}{letter}8"))?;
        // It must not be written to.
        interface.set_item("data", (address, true))?;
        Ok(interface)
    }

    /// An array of truths, or of objects, if there is no `__array_interface__`.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // There is no array to share.
        drop(copy);
        let values = self.to_list(py)?;
        let dtype = match dtype {
            Some(dtype) => dtype,
            None if matches!(self.column.data.values, Values::Truth(_))
                && self.column.data.unknown == 0 =>
            {
                "?".into_pyobject(py)?.into_any()
            }
            None => "O".into_pyobject(py)?.into_any(),
        };
        py.import("numpy")?.call_method1("array", (values, dtype))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = ArrowSchema::of_column(&self.column, self.text);
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // A consumer may request another type, but need not get it.
        drop(requested_schema);
        let schema = self.__arrow_c_schema__(py)?;
        let array = ArrowArray::of_column(&self.column, self.text);
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    fn __len__(&self) -> usize {
        self.column.data.len
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let at = place(key, self.column.data.len)?.ok_or_else(|| {
            PyTypeError::new_err(
                "in brackets stands the number of a value; to_list(), to_polars() and to_pandas() have the rest",
            )
        })?;
        self.column.value(py, at, self.text)
    }

    /// Raises: without it, a comparison as of an array would be False for any value.
    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<bool> {
        let _ = (other, op);
        Err(PyTypeError::new_err(format!(
            "'{}' is not compared here; to_polars() and to_pandas() of the table do that, as does its filter",
            self.column.key
        )))
    }

    fn __repr__(&self) -> String {
        let ColumnData { key, data, .. } = &*self.column;
        let nulls = match data.unknown {
            0 => String::new(),
            unknown => format!(", {unknown} of them not known"),
        };
        format!("<fastproc.Column '{key}': {} values{nulls}>", data.len)
    }
}
