//! The values of a column as Python objects.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyList},
};

use crate::{
    columns::{ColumnData, Resolution},
    data::Values,
};

/// `datetime.timezone.utc`, and the function that makes a `datetime` from a number.
static FROM_TIMESTAMP: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();

/// A `datetime` in UTC.
pub fn date_of(py: Python<'_>, us: i64) -> PyResult<Bound<'_, PyAny>> {
    let microsecond = PyDict::new(py);
    microsecond.set_item("microsecond", us.rem_euclid(1_000_000))?;
    date(py, us.div_euclid(1_000_000))?.call_method("replace", (), Some(&microsecond))
}

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
        // As by os.fsdecode: os.fsencode restores bytes that are not UTF-8.
        OsStr::from_bytes(bytes).into_pyobject(py)?.into_any()
    } else {
        PyBytes::new(py, bytes).into_any()
    })
}

impl ColumnData {
    /// The value at this index, which must exist.
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
            Values::Signed(numbers) => match self.subject.resolution() {
                None => numbers[at].into_pyobject(py)?.into_any(),
                Some(Resolution::Seconds) => date(py, numbers[at])?,
                Some(Resolution::Microseconds) => date_of(py, numbers[at])?,
            },
            Values::Unsigned(numbers) => numbers[at].into_pyobject(py)?.into_any(),
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

    /// All values as a list.
    pub fn list<'py>(&self, py: Python<'py>, as_text: bool) -> PyResult<Bound<'py, PyList>> {
        let all_known = self.data.unknown == 0;
        match &self.data.values {
            Values::Unsigned(numbers) if all_known => return PyList::new(py, numbers),
            Values::Signed(numbers) if all_known && self.subject.resolution().is_none() => {
                return PyList::new(py, numbers);
            }
            Values::Real(numbers) if all_known => return PyList::new(py, numbers),
            Values::Text(texts) => {
                // Neighbours often have the same value, such as users and states.
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
}
