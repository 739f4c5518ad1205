//! The native half of the Python package `fastproc`: snapshots as columns, and columns as Arrow arrays.
//!
//! A `Collector` makes a snapshot without holding the interpreter's lock, and fills columns from it; a `Table` makes
//! these available to Python. Python objects for processes are made only on demand.

mod arrow;
mod cgroups;
mod collector;
mod column;
mod columns;
mod counters;
mod data;
mod errors;
mod files;
mod filter;
mod history;
mod place;
mod process;
mod reuse;
mod row;
mod show;
mod table;
mod value;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        cgroups::Cgroups,
        collector::{Collector, fields},
        column::Column,
        counters::Counters,
        errors::{Error, FilterError, Forked, ServiceError, UnknownField},
        files::Files,
        history::history,
        process::{proc_inode, start_ticks},
        row::{Row, Rows},
        table::Table,
    };
    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
