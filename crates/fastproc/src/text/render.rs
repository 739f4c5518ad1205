//! What keeps a text from being rendered.

use thiserror::Error;

use crate::{records::fields::Fields, snapshot::process::Process};

/// Why a record does not yield the kernel's text. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RenderError {
    /// The record was collected without field groups that the text shows.
    #[error(
        "the record lacks {0:?}, which this text needs; request these fields when opening the collector"
    )]
    MissingFields(Fields),
    /// This kernel prints a line whose value records lack. It is in the kernel's own file for the process, which the
    /// renderer needs as an argument.
    #[error("only the kernel's own file has the line {label}")]
    KernelText {
        /// Label of the line, as `x86_Thread_features`.
        label: String,
    },
}

/// Refuses a record that lacks some of these groups.
#[inline]
pub(super) fn require(process: Process<'_>, needed: Fields) -> Result<(), RenderError> {
    let missing = needed.difference(process.fields());
    if missing.is_empty() {
        Ok(())
    } else {
        Err(RenderError::MissingFields(missing))
    }
}
