//! `/proc/PID/status`: a line for each of some sixty labels (`proc_pid_status()` of fs/proc/array.c).
//!
//! Which labels there are, and in what order, differs from kernel to kernel. [`Format`] learns it from the running
//! kernel's own file. A label that is not known, or whose line cannot be reproduced from a record, is copied from the
//! kernel's file for the process in question, so that the text is right on kernels that nobody has seen yet.
//!
//! The kernel hides nothing of this file from anybody who may open it.

mod format;
mod learn;
mod lines;
mod mask;
mod parse;
mod render;
mod speculation;

#[cfg(test)]
mod tests;

pub use format::Format;
pub use learn::SpeculationControl;
pub use parse::{parse, tells_text};
pub use render::Renderer;

pub use crate::base::error::parse::FormatError;
