//! Compares columns with a value or with each other, which results in masks.

use std::{cmp::Ordering, ffi::OsString, os::unix::ffi::OsStringExt};

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    pyclass::CompareOp,
    types::{PyBool, PyBytes, PyFloat, PyInt, PyString},
};

use crate::{
    column::Column,
    columns::{ColumnData, Resolution},
    data::{Data, Values},
};

/// A value that can be compared.
enum Scalar<'a> {
    Whole(i128),
    Real(f64),
    Text(&'a [u8]),
    Truth(bool),
    /// Microseconds of calendar time.
    Date(i128),
}

impl Scalar<'_> {
    /// `None` if they cannot be compared, or are not ordered.
    fn order(&self, other: &Scalar<'_>) -> Option<Ordering> {
        use Scalar::{Date, Real, Text, Truth, Whole};
        match (self, other) {
            (Whole(a), Whole(b)) | (Date(a), Date(b)) => Some(a.cmp(b)),
            (Real(a), Real(b)) => a.partial_cmp(b),
            (Whole(a), Real(b)) => order(*a, *b),
            (Real(a), Whole(b)) => order(*b, *a).map(Ordering::reverse),
            (Text(a), Text(b)) => Some(a.cmp(b)),
            (Truth(a), Truth(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// Compares a whole number with any other exactly: not every whole number is a `f64`.
fn order(whole: i128, real: f64) -> Option<Ordering> {
    if real.is_nan() {
        return None;
    }
    // A number out of range becomes the smallest or the largest, and all numbers of columns are between these.
    let floor = real.floor() as i128;
    Some(match whole.cmp(&floor) {
        Ordering::Equal if real > real.floor() => Ordering::Less,
        order => order,
    })
}

impl ColumnData {
    /// The value at this index, if it is known and not a list.
    fn scalar(&self, at: usize) -> Option<Scalar<'_>> {
        if !self.data.is_known(at) {
            return None;
        }
        Some(match &self.data.values {
            Values::Unsigned(numbers) => Scalar::Whole(numbers[at].into()),
            Values::Signed(numbers) => match self.subject.resolution() {
                None => Scalar::Whole(numbers[at].into()),
                Some(Resolution::Seconds) => Scalar::Date(i128::from(numbers[at]) * 1_000_000),
                Some(Resolution::Microseconds) => Scalar::Date(numbers[at].into()),
            },
            Values::Real(numbers) => Scalar::Real(numbers[at]),
            Values::Truth(bits) => Scalar::Truth(bits.get(at)),
            Values::Text(texts) => Scalar::Text(texts.get(at)),
            Values::Arguments(_) | Values::Numbers(_) => return None,
        })
    }

    /// The type that a value must have to be compared with the column.
    fn comparable(&self) -> Option<&'static str> {
        match &self.data.values {
            Values::Signed(_) if self.subject.resolution().is_some() => {
                Some("a datetime that has a time zone")
            }
            Values::Unsigned(_) | Values::Signed(_) | Values::Real(_) => Some("a number"),
            Values::Truth(_) => Some("True or False"),
            Values::Text(_) => Some("a text"),
            Values::Arguments(_) | Values::Numbers(_) => None,
        }
    }

    /// Compares each row with a value, or with the same row of another column; `None` if `other` is an array, which
    /// compares itself. An unknown value satisfies no comparison.
    pub fn compare(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Option<Data>> {
        let meets = |order: Option<Ordering>| match op {
            CompareOp::Ne => order != Some(Ordering::Equal),
            _ => order.is_some_and(|order| op.matches(order)),
        };
        let Some(comparable) = self.comparable() else {
            return Err(PyTypeError::new_err(format!(
                "'{}' has lists, which are not compared here; use to_list()",
                self.key
            )));
        };
        if let Ok(column) = other.cast::<Column>() {
            let column = &column.get().column;
            if column.comparable() != Some(comparable) {
                return Err(self.incomparable(&format!("the column '{}'", column.key), comparable));
            }
            if column.data.len != self.data.len {
                return Err(PyValueError::new_err(format!(
                    "columns of one length can be compared, and not of {} and of {} rows",
                    self.data.len, column.data.len
                )));
            }
            let truths = (0..self.data.len).map(|at| {
                let (one, other) = (self.scalar(at), column.scalar(at));
                Some(
                    one.zip(other)
                        .is_some_and(|(one, other)| meets(one.order(&other))),
                )
            });
            return Ok(Some(Data::of_truths(truths)));
        }
        if has_dimensions(other) {
            return Ok(None);
        }
        let text;
        let value = if self.subject.resolution().is_some() {
            date(other)?
        } else if other.is_instance_of::<PyString>() {
            text = other.extract::<OsString>()?.into_vec();
            Some(Scalar::Text(&text))
        } else if let Ok(bytes) = other.cast::<PyBytes>() {
            Some(Scalar::Text(bytes.as_bytes()))
        } else {
            number(other, matches!(self.data.values, Values::Truth(_)))
        };
        let fits = |value: &Scalar<'_>| match value {
            Scalar::Whole(_) | Scalar::Real(_) => comparable == "a number",
            Scalar::Text(_) => comparable == "a text",
            Scalar::Truth(_) => comparable == "True or False",
            Scalar::Date(_) => true,
        };
        let Some(value) = value.filter(fits) else {
            let kind = other.get_type().name()?.to_string();
            let without = if kind == "datetime" && self.subject.resolution().is_some() {
                " without a time zone"
            } else {
                ""
            };
            return Err(self.incomparable(&format!("{kind}{without}"), comparable));
        };
        let truths = (0..self.data.len)
            .map(|at| Some(self.scalar(at).is_some_and(|one| meets(one.order(&value)))));
        Ok(Some(Data::of_truths(truths)))
    }

    fn incomparable(&self, other: &str, comparable: &str) -> PyErr {
        let key = &self.key;
        let hint = if other == "NoneType" {
            "; is_null() tells what is not known"
        } else {
            ""
        };
        PyTypeError::new_err(format!(
            "'{key}' is compared with {comparable}, and not with {other}{hint}"
        ))
    }
}

/// Whether it is an array with more than one value, from `NumPy` or convertible to it.
fn has_dimensions(other: &Bound<'_, PyAny>) -> bool {
    other.hasattr("__array__").unwrap_or(false)
        && !other
            .getattr("ndim")
            .and_then(|count| count.extract::<usize>())
            .is_ok_and(|count| count == 0)
}

/// A number of Python or `NumPy`; also True and False, which are numbers as well.
fn number<'a>(other: &Bound<'_, PyAny>, is_truth: bool) -> Option<Scalar<'a>> {
    if is_truth {
        return other.extract().ok().map(Scalar::Truth);
    }
    if other.is_instance_of::<PyFloat>() {
        return other.extract().ok().map(Scalar::Real);
    }
    if let Ok(whole) = other.extract::<i128>() {
        return Some(Scalar::Whole(whole));
    }
    if other.is_instance_of::<PyInt>() || other.is_instance_of::<PyBool>() {
        // Larger than in any column.
        return other
            .lt(0)
            .ok()
            .map(|is_below| Scalar::Whole(if is_below { i128::MIN } else { i128::MAX }));
    }
    other.extract().ok().map(Scalar::Real)
}

/// A `datetime` with a time zone.
fn date<'a>(other: &Bound<'_, PyAny>) -> PyResult<Option<Scalar<'a>>> {
    let py = other.py();
    let module = py.import("datetime")?;
    let datetime = module.getattr("datetime")?;
    if !other.is_instance(&datetime)? || other.call_method0("utcoffset")?.is_none() {
        return Ok(None);
    }
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let epoch = datetime.call_method1("fromtimestamp", (0, utc))?;
    let since = other.sub(epoch)?;
    let part = |name: &str| since.getattr(name)?.extract::<i128>();
    let seconds = part("days")? * 86_400 + part("seconds")?;
    Ok(Some(Scalar::Date(
        seconds * 1_000_000 + part("microseconds")?,
    )))
}
