//! Tables, rows and columns of what pickle has kept.

use std::sync::Arc;

use pyo3::{prelude::*, types::PyTuple};

use crate::{
    column::Column,
    columns::{ColumnData, TableData},
    kept::{KeptColumn, is_damaged},
    row::Row,
    table::Table,
};

/// A table of what ``__reduce__`` gave pickle.
#[pyfunction]
pub fn restore_table(kept: &Bound<'_, PyTuple>) -> PyResult<Table> {
    TableData::restore(kept).map(Table::from)
}

/// A row of the table that it was kept in.
#[pyfunction]
pub fn restore_row(kept: &Bound<'_, PyTuple>) -> PyResult<Row> {
    let table = TableData::restore(kept)?;
    if table.len == 0 {
        return Err(is_damaged());
    }
    Ok(Row::new(&Arc::new(table), 0))
}

/// A column likewise.
#[pyfunction]
pub fn restore_column(kept: KeptColumn, text: bool) -> PyResult<Column> {
    Ok(Column::new(&ColumnData::restore(kept)?, text))
}
