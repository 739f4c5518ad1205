//! Reductions of a column: sum, minimum, maximum, mean.

use std::cmp::Ordering;

use pyo3::{exceptions::PyTypeError, prelude::*};

use crate::{
    columns::ColumnData,
    data::{Data, Values},
};

/// A whole number, or a real one.
#[derive(IntoPyObject)]
pub enum Sum {
    Whole(i128),
    Real(f64),
}

impl ColumnData {
    fn cannot(&self, what: &str) -> PyErr {
        PyTypeError::new_err(format!(
            "'{}' has no {what}: it is no column of numbers",
            self.key
        ))
    }

    /// The sum of the known values; for truths the number of true ones.
    pub fn sum(&self) -> PyResult<Sum> {
        let Data { values, known, .. } = &self.data;
        let is_known = |at: &usize| known.get(*at);
        let places = (0..self.data.len).filter(is_known);
        Ok(match values {
            _ if self.subject.resolution().is_some() => return Err(self.cannot("sum")),
            Values::Unsigned(numbers) => Sum::Whole(places.map(|at| i128::from(numbers[at])).sum()),
            Values::Signed(numbers) => Sum::Whole(places.map(|at| i128::from(numbers[at])).sum()),
            Values::Real(numbers) => Sum::Real(places.map(|at| numbers[at]).sum()),
            Values::Truth(bits) => Sum::Whole(places.filter(|&at| bits.get(at)).count() as i128),
            _ => return Err(self.cannot("sum")),
        })
    }

    /// The mean of the known values; `None` if there are none.
    pub fn mean(&self) -> PyResult<Option<f64>> {
        let count = self.data.len - self.data.unknown;
        let sum = match self.sum().map_err(|_| self.cannot("mean"))? {
            Sum::Whole(sum) => sum as f64,
            Sum::Real(sum) => sum,
        };
        Ok((count > 0).then(|| sum / count as f64))
    }

    /// The index of the smallest or largest known value; `None` if there are none.
    pub fn extreme(&self, wanted: Ordering) -> PyResult<Option<usize>> {
        let order = |a: usize, b: usize| match &self.data.values {
            Values::Unsigned(numbers) => Some(numbers[a].cmp(&numbers[b])),
            Values::Signed(numbers) => Some(numbers[a].cmp(&numbers[b])),
            Values::Real(numbers) => Some(numbers[a].total_cmp(&numbers[b])),
            Values::Truth(bits) => Some(bits.get(a).cmp(&bits.get(b))),
            Values::Text(texts) => Some(texts.get(a).cmp(texts.get(b))),
            Values::Arguments(_) | Values::Numbers(_) => None,
        };
        if self.data.len > 0 && order(0, 0).is_none() {
            return Err(PyTypeError::new_err(format!(
                "'{}' has lists, of which none is the least or the greatest",
                self.key
            )));
        }
        let known = (0..self.data.len).filter(|&at| self.data.is_known(at));
        Ok(known.reduce(|best, at| {
            if order(at, best) == Some(wanted) {
                at
            } else {
                best
            }
        }))
    }

    /// Fails unless the column has truths.
    pub fn must_be_truths(&self) -> PyResult<()> {
        match self.data.values {
            Values::Truth(_) => Ok(()),
            _ => Err(PyTypeError::new_err(format!(
                "'{}' is no mask: compare it with something",
                self.key
            ))),
        }
    }

    /// Its truths; unknown ones count as false.
    pub fn truths(&self) -> PyResult<impl Iterator<Item = bool>> {
        self.must_be_truths()?;
        Ok((0..self.data.len).map(|at| self.data.truth(at) == Some(true)))
    }
}
