//! Recordings: snapshots of a machine in a file, to be looked at later. docs/top-record.md describes the format.
//!
//! A file is a header and blocks. A block is compressed, and can be read without any other; in it a frame holds what is
//! different from the frame before. Nothing that is read is believed: a file may have been cut, or made to do harm.

mod coding;
mod file;
mod frame;
mod recorder;

pub use self::{
    file::{Facts, Reader, Writer},
    frame::{Frame, Key, Texts},
    recorder::Recorder,
};

/// Why a file is no recording, or a part of one cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is something else.
    #[error("it is no recording of fastproc top")]
    NotARecording,
    /// It has no snapshot.
    #[error("it holds no snapshot")]
    Empty,
    /// It was made by a later version.
    #[error("its format is version {0}, and this program knows version 1; use a newer one")]
    Version(u32),
    /// It is damaged.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}
