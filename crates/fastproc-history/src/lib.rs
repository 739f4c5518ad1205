//! What ran on a machine, second by second: recorded, kept within bounds, and read again.
//!
//! A history is a folder. Its sealed hours are Parquet files below `host=NAME/date=…/hour=…/` (UTC), which any engine
//! reads as they are. [`table`] names the tables and their columns.

pub mod escape;
pub mod file;
pub mod folder;
pub mod read;
pub mod recorder;
pub mod rows;
pub mod table;
