//! Converts tables and columns to what pickle accepts, so that they can be sent to other processes of a pool.

use std::sync::Arc;

use fastproc_columns::Kind;
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyTuple},
};

use crate::{
    columns::{ColumnData, Origin, Subject, TableData},
    data::{Bits, Data, Lists, Texts, Values},
    errors,
};

/// The version of the format below.
const FORM: u32 = 1;

/// Source, time since boot, calendar time, duration, torn, missed.
type KeptOrigin = (String, u64, i64, u64, u32, u32);
/// The version, whether texts are `str`, the columns, pids of exited processes, and the table of these.
type KeptTable<'py> = (
    u32,
    bool,
    KeptOrigin,
    Vec<KeptColumn>,
    Vec<u32>,
    Option<Bound<'py, PyTuple>>,
);
/// The result of `__reduce__`: a function, and its arguments.
pub type Reduced<'py, Arguments> = (Bound<'py, PyAny>, Arguments);
/// Subject, key, number of rows, bitmap of known values, buffers.
pub type KeptColumn = (String, String, usize, Vec<u8>, Vec<Vec<u8>>);

pub fn is_damaged() -> PyErr {
    PyValueError::new_err("this is no table of fastproc, or one of another version of it")
}

/// Numbers as little-endian bytes.
macro_rules! number_bytes {
    ($numbers:expr) => {
        $numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    };
}

macro_rules! numbers_of {
    ($type:ty, $bytes:expr) => {
        $bytes
            .as_chunks()
            .0
            .iter()
            .map(|chunk| <$type>::from_le_bytes(*chunk))
            .collect()
    };
}

impl Data {
    fn buffers(&self) -> Vec<Vec<u8>> {
        match &self.values {
            Values::Unsigned(numbers) => vec![number_bytes!(numbers)],
            Values::Signed(numbers) => vec![number_bytes!(numbers)],
            Values::Real(numbers) => vec![number_bytes!(numbers)],
            Values::Truth(bits) => vec![bits.as_bytes().to_vec()],
            Values::Text(texts) => vec![number_bytes!(texts.offsets), texts.items.clone()],
            Values::Arguments(lists) => vec![
                number_bytes!(lists.offsets),
                number_bytes!(lists.items.offsets),
                lists.items.items.clone(),
            ],
            Values::Numbers(lists) => {
                vec![number_bytes!(lists.offsets), number_bytes!(lists.items)]
            }
        }
    }

    /// `None` if the buffers do not fit this number of rows.
    fn of_buffers(kind: Kind, len: usize, known: &[u8], buffers: &[Vec<u8>]) -> Option<Self> {
        let has_numbers = |bytes: &[u8]| Some(bytes.len()) == len.checked_mul(8);
        let values = match (kind, buffers) {
            (Kind::Unsigned, [bytes]) if has_numbers(bytes) => {
                Values::Unsigned(numbers_of!(u64, bytes))
            }
            (Kind::Signed, [bytes]) if has_numbers(bytes) => {
                Values::Signed(numbers_of!(i64, bytes))
            }
            (Kind::Real, [bytes]) if has_numbers(bytes) => Values::Real(numbers_of!(f64, bytes)),
            (Kind::Truth, [bytes]) => Values::Truth(Bits::from_bytes(bytes, len)?),
            (Kind::Text, [offsets, bytes]) => Values::Text(texts(offsets, bytes, Some(len))?),
            (Kind::Arguments, [offsets, of_items, bytes]) => {
                let items = texts(of_items, bytes, None)?;
                let offsets = checked(offsets, Some(len), items.len())?;
                Values::Arguments(Lists { offsets, items })
            }
            (Kind::Numbers, [offsets, bytes]) => {
                let items: Vec<u32> = numbers_of!(u32, bytes);
                let offsets = checked(offsets, Some(len), items.len())?;
                Values::Numbers(Lists { offsets, items })
            }
            _ => return None,
        };
        let known = Bits::from_bytes(known, len)?;
        Some(Self {
            values,
            unknown: len - known.count(),
            known,
            len,
        })
    }
}

fn texts(offsets: &[u8], bytes: &[u8], len: Option<usize>) -> Option<Texts> {
    let offsets = checked(offsets, len, bytes.len())?;
    let items = bytes.to_vec();
    Some(Lists { offsets, items })
}

/// Offsets that begin at 0, never decrease, and end at `items`; `len` of them, if given.
fn checked(offsets: &[u8], len: Option<usize>, items: usize) -> Option<Vec<i64>> {
    if !offsets.len().is_multiple_of(8) {
        return None;
    }
    let offsets: Vec<i64> = numbers_of!(i64, offsets);
    let are_good = offsets.first() == Some(&0)
        && offsets.is_sorted()
        && offsets.last() == Some(&(items as i64))
        && len.is_none_or(|len| Some(offsets.len()) == len.checked_add(1));
    are_good.then_some(offsets)
}

impl ColumnData {
    pub fn keep<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let known = PyBytes::new(py, self.data.known.as_bytes());
        let buffers = self.data.buffers();
        let buffers: Vec<_> = buffers
            .iter()
            .map(|bytes| PyBytes::new(py, bytes))
            .collect();
        (
            self.subject.name(),
            &self.key,
            self.data.len,
            known,
            buffers,
        )
            .into_pyobject(py)
    }

    pub fn restore((subject, key, len, known, buffers): KeptColumn) -> PyResult<Arc<Self>> {
        let subject = Subject::kept(&subject).map_err(errors::unknown_field)?;
        let data = Data::of_buffers(subject.kind(), len, &known, &buffers);
        let data = data.ok_or_else(is_damaged)?;
        Ok(Arc::new(Self { subject, key, data }))
    }
}

impl TableData {
    pub fn keep<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let columns = self.columns.iter().map(|column| column.keep(py));
        let columns: Vec<_> = columns.collect::<PyResult<_>>()?;
        let exited = self
            .exited
            .as_ref()
            .map(|table| table.keep(py))
            .transpose()?;
        let Origin {
            source,
            boottime_ns,
            time_us,
            took_ns,
            torn,
            missed,
        } = self.origin;
        let origin = (source.name(), boottime_ns, time_us, took_ns, torn, missed);
        (FORM, self.text, origin, columns, &self.gone, exited).into_pyobject(py)
    }

    pub fn restore(kept: &Bound<'_, PyTuple>) -> PyResult<Self> {
        if kept.get_item(0)?.extract::<u32>()? != FORM {
            return Err(is_damaged());
        }
        let kept: KeptTable<'_> = kept.extract()?;
        let (_, text, origin, columns, gone, exited) = kept;
        let (source, boottime_ns, time_us, took_ns, torn, missed) = origin;
        let columns = columns.into_iter().map(ColumnData::restore);
        let columns: Vec<_> = columns.collect::<PyResult<_>>()?;
        let len = columns.first().ok_or_else(is_damaged)?.data.len;
        if columns.iter().any(|column| column.data.len != len) {
            return Err(is_damaged());
        }
        Ok(Self {
            columns,
            len,
            text,
            origin: Origin {
                source: source.parse().map_err(|_| is_damaged())?,
                boottime_ns,
                time_us,
                took_ns,
                torn,
                missed,
            },
            gone,
            exited: exited
                .map(|table| Self::restore(&table).map(Arc::new))
                .transpose()?,
        })
    }
}

/// The function of `restore.rs` that has this name, for pickle.
pub fn restoring<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("fastproc._native")?.getattr(name)
}
