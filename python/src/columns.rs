//! A snapshot as columns, before Python or Arrow look at it.

use std::sync::Arc;

use fastproc::SnapshotStats;
use fastproc_columns::Field;

use crate::data::Data;

/// A column: a field, its key, its values.
#[derive(Debug)]
pub struct ColumnData {
    pub field: &'static Field,
    pub key: String,
    pub data: Data,
}

/// The columns, and how they came about.
#[derive(Debug)]
pub struct TableData {
    /// At least one.
    pub columns: Vec<Arc<ColumnData>>,
    pub len: usize,
    /// Whether texts are `str` rather than `bytes`.
    pub text: bool,
    pub stats: SnapshotStats,
    /// Pids of the processes that have ended since the snapshot before, if there was one.
    pub gone: Vec<u32>,
    /// Those that have ended since, if exits are recorded.
    pub exited: Option<Arc<TableData>>,
}
