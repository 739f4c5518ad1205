//! An index in brackets.

use pyo3::{exceptions::PyIndexError, prelude::*, types::PyInt};

/// An index below `len`, counted from the end if it is negative; `None` if `key` is not a number.
pub fn place(key: &Bound<'_, PyAny>, len: usize) -> PyResult<Option<usize>> {
    if !key.is_instance_of::<PyInt>() && !key.hasattr("__index__")? {
        return Ok(None);
    }
    let Ok(index) = key.extract::<isize>() else {
        // A number that is too large is out of range; an array of numbers is not a number.
        return if key.is_instance_of::<PyInt>() {
            Err(PyIndexError::new_err("there is no such place"))
        } else {
            Ok(None)
        };
    };
    let at = if index < 0 {
        len.checked_sub(index.unsigned_abs())
    } else {
        Some(index as usize)
    };
    let at = at.filter(|&at| at < len);
    at.map(Some)
        .ok_or_else(|| PyIndexError::new_err(format!("there is no place {index} among {len}")))
}
