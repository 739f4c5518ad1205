//! One Parquet file of a history: written with checks, and read only where they hold.
//!
//! A file is `PAR1`, row groups without gaps, indexes of pages, a block of this crate (`sums`), and the footer. The footer
//! keeps the CRC of each row group, the block that of indexes and footer: every byte is checked before anything else
//! looks at it. Other engines do not read the block, for they find the footer from the end, and all else by offsets.
//! Folders come from other people, and whoever writes a file can write its CRCs as well: the reader trusts no number.

#[cfg(test)]
mod damage;
mod footer;
mod ours;
mod pages;
mod reader;
mod sums;
#[cfg(test)]
mod tests;
mod thrift;
mod writer;

use std::io;

use parquet::errors::ParquetError;

pub use self::{reader::File, writer::Writer};

/// The version of the format, which a file names. A reader refuses a greater one.
pub const VERSION: u32 = 1;
/// A row group has at most so many rows; the writer begins another one.
pub const MOST_ROWS: usize = if cfg!(test) { 1 << 16 } else { 1 << 20 };
/// The encoded values of a row group are at most so many bytes.
pub const MOST_GROUP_BYTES: u64 = 256 << 20;
/// What is decoded at once is at most so many bytes: pages, and texts. Numbers take 16 bytes a row besides.
pub const MOST_READ_BYTES: usize = 512 << 20;
/// Footer and indexes of pages are at most so many bytes each.
pub const MOST_FOOTER_BYTES: u64 = 4 << 20;
/// A file has at most so many row groups.
pub const MOST_GROUPS: usize = 1 << 10;

/// Names of values of the footer that are ours.
mod key {
    pub const VERSION: &str = "fastproc.version";
    pub const TABLE: &str = "fastproc.table";
    pub const MEANING: &str = "fastproc.meaning";
    pub const SUMS: &str = "fastproc.crc32";
    /// Followed by the name of a column.
    pub const COLUMN: &str = "fastproc.column.";
}

/// What one file or row group covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first value of `time`: microseconds since 1970, UTC.
    pub from: i64,
    /// The last one.
    pub to: i64,
}

/// Why a file is not written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be read or written.
    #[error("the file cannot be read or written")]
    Io(#[from] io::Error),
    /// It is not a file of a history, or it is cut.
    #[error("it is not a file of a history, or its end is lost: none of its rows are read")]
    NoHistory,
    /// Its footer is damaged: no row of it is read.
    #[error("the footer is damaged: none of the file's rows are read ({0})")]
    Footer(&'static str),
    /// A row group is damaged: no row of it is read, those of the others are.
    #[error("row group {group} is damaged: its {rows} rows are not read ({why})")]
    Group {
        /// Its number, from 0.
        group: usize,
        /// How many rows are lost.
        rows: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// A later version wrote it.
    #[error("its format is version {0}, which is newer than this program: update fastproc")]
    Newer(u32),
    /// It holds another table.
    #[error("it holds the table {found:?}, not {expected}")]
    Table {
        /// What was asked.
        expected: &'static str,
        /// What it says.
        found: String,
    },
    /// A column has another type than in this version.
    #[error("the column {0:?} has another type")]
    Type(&'static str),
    /// It passes a limit of what is read or written at once.
    #[error("{0} passes a limit")]
    TooLarge(&'static str),
    /// There is no such row group.
    #[error("there is no row group {0}")]
    NoGroup(usize),
    /// Rows of a table were given as those of another, or columns of different lengths.
    #[error("the rows to write do not fit the table")]
    Rows,
    /// The Parquet writer fails.
    #[error("Parquet is not written")]
    Parquet(#[from] ParquetError),
}
