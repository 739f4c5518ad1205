//! Recordings: snapshots of a machine in a file, to be shown later. docs/dev/top-record.md describes the format.
//!
//! A file is a header and blocks. A block is compressed and can be read without the others; in it each frame holds the
//! differences to the previous frame. The reader checks everything: a file may be truncated or malicious.

mod coding;
mod file;
mod frame;
mod names;
mod recorder;
mod writer;

pub use self::{
    file::{Facts, Reader},
    frame::{Frame, Key, Texts},
    names::labels,
    recorder::Recorder,
    writer::Writer,
};

pub use crate::error::RecordingError as Error;
