//! `/proc/PID/status`: a line for each of about sixty labels (`proc_pid_status()` of fs/proc/array.c).
//!
//! The labels and their order differ from kernel to kernel. [`Format`] learns them from the running kernel's own
//! file. A label that is unknown, or whose line cannot be reproduced from a record, is copied from the kernel's
//! file of the process. So the text is right even on an unknown kernel.
//!
//! The kernel hides no line of this file from a reader who may open it.

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
pub use parse::parse_rights;
pub use parse::{parse, tells_text};
pub use render::Renderer;

pub use crate::base::error::parse::FormatError;
