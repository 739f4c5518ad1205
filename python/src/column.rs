//! A column of a table, for Python.

use std::{cmp::Ordering, sync::Arc};

use pyo3::{
    exceptions::{PyAttributeError, PyTypeError, PyValueError},
    prelude::*,
    pyclass::CompareOp,
    types::{PyBytes, PyCapsule, PyDict, PyList, PyTuple},
};

use crate::{
    arrow::{ArrowArray, ArrowSchema},
    columns::{ColumnData, Subject},
    data::{Data, Values},
    kept,
    reduce::Sum,
    select::{Selection, place},
};

/// One column of a table.
#[pyclass(frozen, module = "fastproc")]
pub struct Column {
    pub column: Arc<ColumnData>,
    text: bool,
}

impl ColumnData {
    /// The numbers as bytes, and their format in the module `struct`.
    fn numbers<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyBytes>, char)> {
        let mut format = ' ';
        let mut bytes = |letter, len, fill: &dyn Fn(&mut [u8])| {
            format = letter;
            PyBytes::new_with(py, 8 * len, |to| {
                fill(to);
                Ok(())
            })
        };
        let copied = match &self.data.values {
            Values::Unsigned(numbers) => bytes('Q', numbers.len(), &|to| {
                copy(numbers.iter().map(|number| number.to_ne_bytes()), to);
            }),
            Values::Signed(numbers) => bytes('q', numbers.len(), &|to| {
                copy(numbers.iter().map(|number| number.to_ne_bytes()), to);
            }),
            Values::Real(numbers) => bytes('d', numbers.len(), &|to| {
                copy(numbers.iter().map(|number| number.to_ne_bytes()), to);
            }),
            _ => return None,
        };
        copied.ok().map(|bytes| (bytes, format))
    }

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

fn copy(numbers: impl Iterator<Item = [u8; 8]>, to: &mut [u8]) {
    for (to, number) in to.chunks_exact_mut(8).zip(numbers) {
        to.copy_from_slice(&number);
    }
}

impl Column {
    pub fn new(column: &Arc<ColumnData>, text: bool) -> Self {
        Self {
            column: Arc::clone(column),
            text,
        }
    }

    /// A mask, whose key is its origin.
    fn mask(&self, key: String, data: Data) -> Self {
        let subject = Subject::Mask;
        Self {
            column: Arc::new(ColumnData { subject, key, data }),
            text: self.text,
        }
    }

    /// Joins two masks; `NotImplemented` if the other one is not a mask, such as an array.
    fn joined<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        sign: char,
        join: impl Fn(Option<bool>, Option<bool>) -> Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let (one, other) = match other.cast::<Self>() {
            Ok(other) => (&self.column, &other.get().column),
            Err(_) => return Ok(py.NotImplemented().into_bound(py)),
        };
        one.must_be_truths()?;
        other.must_be_truths()?;
        if one.data.len != other.data.len {
            return Err(PyValueError::new_err(format!(
                "masks of one length can be joined, and not of {} and of {} rows",
                one.data.len, other.data.len
            )));
        }
        let truths = (0..one.data.len).map(|at| join(one.data.truth(at), other.data.truth(at)));
        let key = format!("({}) {sign} ({})", one.key, other.key);
        Ok(Bound::new(py, self.mask(key, Data::of_truths(truths)))?.into_any())
    }

    fn no_numbers(&self) -> PyErr {
        let key = &self.column.key;
        PyTypeError::new_err(format!("'{key}' is no column of numbers; use to_list()"))
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

    /// The numbers as a memoryview of format Q, q or d, a copy that Python owns.
    ///
    /// Raises `ValueError` if a value is unknown: use ``filled`` then.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (bytes, format) = self.column.numbers(py).ok_or_else(|| self.no_numbers())?;
        let Column { column, .. } = self;
        if column.data.unknown > 0 {
            return Err(PyValueError::new_err(format!(
                "{} of {} values of '{}' are not known; use to_list(), or filled(…) to say what stands for them",
                column.data.unknown, column.data.len, column.key
            )));
        }
        pyo3::types::PyMemoryView::from(&bytes)?.call_method1("cast", (format,))
    }

    /// The numbers, with ``value`` in place of unknown ones.
    fn filled<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let data = &self.column.data;
        let put = |numbers: Vec<[u8; 8]>, format: &str| {
            let bytes = PyBytes::new(py, numbers.as_flattened());
            pyo3::types::PyMemoryView::from(&bytes)?.call_method1("cast", (format,))
        };
        let known = |at: usize| data.is_known(at);
        match &data.values {
            Values::Unsigned(numbers) => {
                let value: u64 = value.extract()?;
                let numbers = numbers.iter().enumerate();
                let all = numbers.map(|(at, &number)| if known(at) { number } else { value });
                put(all.map(u64::to_ne_bytes).collect(), "Q")
            }
            Values::Signed(numbers) => {
                let value: i64 = value.extract()?;
                let numbers = numbers.iter().enumerate();
                let all = numbers.map(|(at, &number)| if known(at) { number } else { value });
                put(all.map(i64::to_ne_bytes).collect(), "q")
            }
            Values::Real(numbers) => {
                let value: f64 = value.extract()?;
                let numbers = numbers.iter().enumerate();
                let all = numbers.map(|(at, &number)| if known(at) { number } else { value });
                put(all.map(f64::to_ne_bytes).collect(), "d")
            }
            _ => Err(self.no_numbers()),
        }
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
        let len = self.column.data.len;
        if let Some(at) = place(key, len)? {
            return self.column.value(py, at, self.text);
        }
        let rows = match Selection::new(key, len, mask(key))? {
            Selection::Rows(rows) => rows,
            Selection::Columns(_) => {
                return Err(PyTypeError::new_err(
                    "a column has rows, which have numbers",
                ));
            }
        };
        let column = Self::new(&Arc::new(self.column.take(&rows)), self.text);
        Ok(Bound::new(py, column)?.into_any())
    }

    fn __richcmp__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(data) = self.column.compare(other, op)? else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let sign = match op {
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        };
        let other = match other.cast::<Self>() {
            Ok(other) => other.get().column.key.clone(),
            Err(_) => other.repr()?.to_string(),
        };
        let key = format!("{} {sign} {other}", self.column.key);
        Ok(Bound::new(py, self.mask(key, data))?.into_any())
    }

    fn __and__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.joined(other, '&', |one, other| match (one, other) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (one, other) => one.and(other),
        })
    }

    fn __or__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.joined(other, '|', |one, other| match (one, other) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (one, other) => one.and(other),
        })
    }

    fn __xor__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.joined(other, '^', |one, other| Some(one? ^ other?))
    }

    fn __invert__(&self) -> PyResult<Self> {
        self.column.must_be_truths()?;
        let data = &self.column.data;
        let truths = (0..data.len).map(|at| data.truth(at).map(|truth| !truth));
        let key = format!("~({})", self.column.key);
        Ok(self.mask(key, Data::of_truths(truths)))
    }

    /// As for an array: the truth of many values is ambiguous.
    fn __bool__(&self) -> PyResult<bool> {
        if matches!(self.column.data.values, Values::Truth(_)) {
            return Err(PyValueError::new_err(
                "a mask is neither true nor false: any() and all() tell, and & and | join masks",
            ));
        }
        Ok(self.column.data.len > 0)
    }

    /// A mask of the unknown values.
    fn is_null(&self) -> Self {
        let data = &self.column.data;
        let truths = (0..data.len).map(|at| Some(!data.is_known(at)));
        self.mask(
            format!("{}.is_null()", self.column.key),
            Data::of_truths(truths),
        )
    }

    /// The sum of the known numbers; for a mask the number of its rows.
    ///
    /// `NumPy` calls this and the following methods with its own arguments.
    #[pyo3(signature = (**numpy))]
    fn sum(&self, numpy: Option<Bound<'_, PyDict>>) -> PyResult<Sum> {
        drop(numpy);
        self.column.sum()
    }

    /// The mean of the known numbers, or None.
    #[pyo3(signature = (**numpy))]
    fn mean(&self, numpy: Option<Bound<'_, PyDict>>) -> PyResult<Option<f64>> {
        drop(numpy);
        self.column.mean()
    }

    /// The smallest known value, or None.
    #[pyo3(signature = (**numpy))]
    fn min<'py>(
        &self,
        py: Python<'py>,
        numpy: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        drop(numpy);
        let at = self.column.extreme(Ordering::Less)?;
        at.map(|at| self.column.value(py, at, self.text))
            .transpose()
    }

    /// The largest known value, or None.
    #[pyo3(signature = (**numpy))]
    fn max<'py>(
        &self,
        py: Python<'py>,
        numpy: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        drop(numpy);
        let at = self.column.extreme(Ordering::Greater)?;
        at.map(|at| self.column.value(py, at, self.text))
            .transpose()
    }

    /// Whether a mask selects any row.
    #[pyo3(signature = (**numpy))]
    fn any(&self, numpy: Option<Bound<'_, PyDict>>) -> PyResult<bool> {
        drop(numpy);
        Ok(self.column.truths()?.any(|truth| truth))
    }

    /// Whether a mask selects every row.
    #[pyo3(signature = (**numpy))]
    fn all(&self, numpy: Option<Bound<'_, PyDict>>) -> PyResult<bool> {
        drop(numpy);
        Ok(self.column.truths()?.all(|truth| truth))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<kept::Reduced<'py, (Bound<'py, PyTuple>, bool)>> {
        let kept = self.column.keep(py)?;
        Ok((kept::restoring(py, "restore_column")?, (kept, self.text)))
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

/// The truths of a column, to select rows; `None` if `key` is not a column of truths.
pub fn mask(key: &Bound<'_, PyAny>) -> Option<Vec<bool>> {
    let column = key.cast::<Column>().ok()?;
    let truths = column.get().column.truths().ok()?;
    Some(truths.collect())
}
