//! Restores pickled tables, rows and columns.

use std::sync::Arc;

use pyo3::{prelude::*, types::PyTuple};

use crate::{
    column::Column,
    columns::{ColumnData, TableData},
    kept::{KeptColumn, is_damaged},
    row::Row,
    table::Table,
};

/// Restores a table from the arguments of ``__reduce__``.
#[pyfunction]
pub fn restore_table(kept: &Bound<'_, PyTuple>) -> PyResult<Table> {
    TableData::restore(kept).map(Table::from)
}

/// Restores a row from the table that was pickled with it.
#[pyfunction]
pub fn restore_row(kept: &Bound<'_, PyTuple>) -> PyResult<Row> {
    let table = TableData::restore(kept)?;
    if table.len == 0 {
        return Err(is_damaged());
    }
    Ok(Row::new(&Arc::new(table), 0))
}

/// Restores a column.
#[pyfunction]
pub fn restore_column(kept: KeptColumn, text: bool) -> PyResult<Column> {
    Ok(Column::new(&ColumnData::restore(kept)?, text))
}
