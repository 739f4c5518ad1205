//! Selects rows or columns of a table.

use std::sync::Arc;

use pyo3::{
    exceptions::{PyIndexError, PyTypeError},
    prelude::*,
    types::{PyInt, PySlice, PyString},
};

use crate::{
    columns::{ColumnData, TableData},
    data::{Bits, Data, Lists, Values},
};

/// The index in brackets after a table or a column, other than a single name or number.
pub enum Selection {
    Rows(Vec<usize>),
    Columns(Vec<String>),
}

impl Selection {
    /// Parses a slice, a mask, numbers of rows, or names of columns, for `len` rows. `mask`: the truths of a column, if
    /// `key` is one.
    pub fn new(key: &Bound<'_, PyAny>, len: usize, mask: Option<Vec<bool>>) -> PyResult<Self> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let indices = slice.indices(len as isize)?;
            let place = |nth| (indices.start + nth * indices.step) as usize;
            return Ok(Self::Rows(
                (0..indices.slicelength as isize).map(place).collect(),
            ));
        }
        if let Some(mask) = mask {
            return Self::masked(&mask, len);
        }
        let no_key = || {
            PyTypeError::new_err(
                "in brackets stands a name or a list of names for columns; and a number, a slice, a mask or a list of numbers for rows",
            )
        };
        // The error for other types names the type.
        let items: Vec<Bound<'_, PyAny>> = key
            .try_iter()
            .map_err(|_| no_key())?
            .collect::<PyResult<_>>()?;
        if !items.is_empty() && items.iter().all(PyAnyMethods::is_instance_of::<PyString>) {
            let names = items.iter().map(PyAnyMethods::extract);
            return Ok(Self::Columns(names.collect::<PyResult<_>>()?));
        }
        // True is a number as well; NumPy's is not.
        let is_truth = |item: &Bound<'_, PyAny>| {
            !item.is_exact_instance_of::<PyInt>() && item.extract::<bool>().is_ok()
        };
        if !items.is_empty() && items.iter().all(is_truth) {
            let truths: Vec<bool> = items
                .iter()
                .map(PyAnyMethods::extract)
                .collect::<PyResult<_>>()?;
            return Self::masked(&truths, len);
        }
        let row = |item: &Bound<'_, PyAny>| {
            let at = if is_truth(item) {
                None
            } else {
                place(item, len)?
            };
            at.ok_or_else(no_key)
        };
        Ok(Self::Rows(items.iter().map(row).collect::<PyResult<_>>()?))
    }

    fn masked(truths: &[bool], len: usize) -> PyResult<Self> {
        let count = truths.len();
        if count != len {
            return Err(PyIndexError::new_err(format!(
                "a mask has a value for each row: this one has {count}, and there are {len} rows"
            )));
        }
        let rows = (0..len).zip(truths).filter(|(_, is_chosen)| **is_chosen);
        Ok(Self::Rows(rows.map(|(row, _)| row).collect()))
    }
}

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

impl TableData {
    /// The table of these rows, which must exist.
    pub fn take(&self, rows: &[usize]) -> Self {
        let columns = self.columns.iter();
        Self {
            columns: columns.map(|column| Arc::new(column.take(rows))).collect(),
            len: rows.len(),
            ..self.clone()
        }
    }

    /// The table of these columns.
    pub fn with_columns(&self, names: &[String]) -> PyResult<Self> {
        let mut columns: Vec<Arc<ColumnData>> = Vec::with_capacity(names.len());
        for name in names {
            let column = self.column(name)?;
            if !columns.iter().any(|other| other.key == column.key) {
                columns.push(Arc::clone(column));
            }
        }
        Ok(Self {
            columns,
            ..self.clone()
        })
    }
}

impl ColumnData {
    /// The column of these rows, which must exist.
    pub fn take(&self, rows: &[usize]) -> Self {
        Self {
            subject: self.subject,
            key: self.key.clone(),
            data: self.data.take(rows),
        }
    }
}

impl Data {
    fn take(&self, rows: &[usize]) -> Self {
        let values = match &self.values {
            Values::Unsigned(numbers) => Values::Unsigned(numbers.taken(rows)),
            Values::Signed(numbers) => Values::Signed(numbers.taken(rows)),
            Values::Real(numbers) => Values::Real(numbers.taken(rows)),
            Values::Truth(bits) => Values::Truth(rows.iter().map(|&at| bits.get(at)).collect()),
            Values::Text(texts) => {
                let mut taken = Lists::new(Vec::new(), rows.len());
                for &at in rows {
                    taken.push(texts.get(at));
                }
                Values::Text(taken)
            }
            Values::Arguments(lists) => {
                let items = Lists::new(Vec::new(), rows.len());
                let mut taken = Lists::new(items, rows.len());
                for &at in rows {
                    for item in lists.range(at) {
                        taken.items.push(lists.items.get(item));
                    }
                    taken.offsets.push(taken.items.len() as i64);
                }
                Values::Arguments(taken)
            }
            Values::Numbers(lists) => {
                let mut taken = Lists::new(Vec::new(), rows.len());
                for &at in rows {
                    taken.items.extend_from_slice(&lists.items[lists.range(at)]);
                    taken.offsets.push(taken.items.len() as i64);
                }
                Values::Numbers(taken)
            }
        };
        let known: Bits = rows.iter().map(|&at| self.known.get(at)).collect();
        Self {
            values,
            unknown: rows.len() - known.count(),
            known,
            len: rows.len(),
        }
    }
}

/// The values at some indexes.
trait Taken {
    fn taken(&self, rows: &[usize]) -> Self;
}

impl<T: Copy> Taken for Vec<T> {
    fn taken(&self, rows: &[usize]) -> Self {
        rows.iter().map(|&at| self[at]).collect()
    }
}
