//! One column, as Python sees it.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, sync::Arc};

use fastproc_columns::Unit;
use pyo3::{
    exceptions::{PyAttributeError, PyIndexError, PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyCapsule, PyDict, PyList, PyTuple},
};

use crate::{
    arrow::{ArrowArray, ArrowSchema},
    columns::ColumnData,
    data::Values,
};

/// One column of a table.
#[pyclass(frozen, module = "fastproc")]
pub struct Column {
    column: Arc<ColumnData>,
    text: bool,
}

/// `datetime.timezone.utc`, and how to make a `datetime` of a number.
static FROM_TIMESTAMP: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();

fn date(py: Python<'_>, seconds: i64) -> PyResult<Bound<'_, PyAny>> {
    let (from, utc) = FROM_TIMESTAMP.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let from = module.getattr("datetime")?.getattr("fromtimestamp")?;
        let utc = module.getattr("timezone")?.getattr("utc")?;
        Ok::<_, PyErr>((from.unbind(), utc.unbind()))
    })?;
    from.bind(py).call1((seconds, utc))
}

fn text<'py>(py: Python<'py>, bytes: &[u8], text: bool) -> PyResult<Bound<'py, PyAny>> {
    Ok(if text {
        // As os.fsdecode: what is not UTF-8 can be had back by os.fsencode.
        OsStr::from_bytes(bytes).into_pyobject(py)?.into_any()
    } else {
        PyBytes::new(py, bytes).into_any()
    })
}

impl ColumnData {
    /// The value at this place, which must be there.
    pub fn value<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        as_text: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        if !self.data.is_known(at) {
            return Ok(py.None().into_bound(py));
        }
        Ok(match &self.data.values {
            Values::Signed(numbers) if self.is_date() => date(py, numbers[at])?,
            Values::Unsigned(numbers) => numbers[at].into_pyobject(py)?.into_any(),
            Values::Signed(numbers) => numbers[at].into_pyobject(py)?.into_any(),
            Values::Real(numbers) => numbers[at].into_pyobject(py)?.into_any(),
            Values::Truth(bits) => bits.get(at).into_pyobject(py)?.to_owned().into_any(),
            Values::Text(texts) => text(py, texts.get(at), as_text)?,
            Values::Arguments(lists) => {
                let items = lists.range(at).map(|item| lists.items.get(item));
                let items: Vec<_> = items
                    .map(|item| text(py, item, as_text))
                    .collect::<PyResult<_>>()?;
                PyList::new(py, items)?.into_any()
            }
            Values::Numbers(lists) => PyList::new(py, &lists.items[lists.range(at)])?.into_any(),
        })
    }

    fn is_date(&self) -> bool {
        matches!(self.field.unit, Unit::Date | Unit::Start)
    }

    /// All values as a list.
    pub fn list<'py>(&self, py: Python<'py>, as_text: bool) -> PyResult<Bound<'py, PyList>> {
        let all_known = self.data.unknown == 0;
        match &self.data.values {
            Values::Unsigned(numbers) if all_known => return PyList::new(py, numbers),
            Values::Signed(numbers) if all_known && !self.is_date() => {
                return PyList::new(py, numbers);
            }
            Values::Real(numbers) if all_known => return PyList::new(py, numbers),
            Values::Text(texts) => {
                // Neighbours often have the same: users, states.
                let mut last: Option<(&[u8], Bound<'py, PyAny>)> = None;
                let mut all = Vec::with_capacity(self.data.len);
                for at in 0..self.data.len {
                    let bytes = texts.get(at);
                    let object = match &last {
                        _ if !self.data.is_known(at) => py.None().into_bound(py),
                        Some((same, object)) if *same == bytes => object.clone(),
                        _ => {
                            let object = text(py, bytes, as_text)?;
                            last = Some((bytes, object.clone()));
                            object
                        }
                    };
                    all.push(object);
                }
                return PyList::new(py, all);
            }
            _ => {}
        }
        let all: Vec<_> = (0..self.data.len)
            .map(|at| self.value(py, at, as_text))
            .collect::<PyResult<_>>()?;
        PyList::new(py, all)
    }

    /// The numbers as bytes, and their format as in the module `struct`.
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

    /// Where the numbers lie, and their type as `NumPy` writes it.
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
        self.column.field.name
    }

    /// Its name with the unit of its numbers, as ``ps --format json`` has it: the key of the column.
    #[getter]
    fn key(&self) -> &str {
        &self.column.key
    }

    /// A line of help: what the values mean.
    #[getter]
    fn help(&self) -> &'static str {
        self.column.field.help
    }

    /// How many values are not known.
    #[getter]
    fn null_count(&self) -> usize {
        self.column.data.unknown
    }

    /// The values, as a list. What is not known is None.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.column.list(py, self.text)
    }

    /// The numbers as a memoryview of format Q, q or d, a copy that Python owns.
    ///
    /// Raises `ValueError` if one is not known: ``filled`` says what to put there.
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

    /// The same, with ``value`` for what is not known.
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

    /// The numbers for `NumPy`, without a copy. There is none if a value is not known, or if it holds no numbers.
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

    /// An array of objects, where `__array_interface__` has none.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // There is none to share.
        drop(copy);
        let values = self.to_list(py)?;
        let dtype = match dtype {
            Some(dtype) => dtype,
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
        // Another type than the one there is may be asked for, and need not be given.
        drop(requested_schema);
        let schema = self.__arrow_c_schema__(py)?;
        let array = ArrowArray::of_column(&self.column, self.text);
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    fn __len__(&self) -> usize {
        self.column.data.len
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let at = place(index, self.column.data.len)?;
        self.column.value(py, at, self.text)
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

/// A place counted from the end if it is negative.
pub fn place(index: isize, len: usize) -> PyResult<usize> {
    let at = if index < 0 {
        len.checked_sub(index.unsigned_abs())
    } else {
        Some(index as usize)
    };
    at.filter(|&at| at < len)
        .ok_or_else(|| PyIndexError::new_err("no such row"))
}
