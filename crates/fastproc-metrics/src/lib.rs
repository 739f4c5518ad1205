//! Process and host metrics for Prometheus: one snapshot of the kernel's own structures for each scrape.
//!
//! The collecting process makes the text. [`link`] connects it with the process that serves the text to the network.
#![allow(
    clippy::struct_excessive_bools,
    reason = "a switch for each thing that can be switched"
)]
#![allow(
    clippy::format_push_string,
    reason = "none of these strings is on the way of a scrape"
)]

pub mod collecting;
mod command_lines;
pub mod costly;
mod describer;
pub mod descriptors;
pub mod exporter;
pub mod exposition;
pub mod groups;
pub mod link;
pub mod memory;
pub mod metrics;
mod names;
pub mod naming;
pub mod page;
pub mod parts;
pub mod privileges;
pub mod reloaded;
pub mod sys_root;

// Formats an error and its causes on one line.
pub use fastproc::error_chain;

/// Writes a line to standard error, where a service's log goes. If that is closed, the line is lost.
pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "fastproc: {}", fastproc::log_line(text));
}
