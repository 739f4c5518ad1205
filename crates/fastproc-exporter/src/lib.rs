//! Serves fastproc's metrics to Prometheus: HTTP, TLS and passwords.
//!
//! It reads nothing of the machine: `fastproc serve` starts it, collects, and hands it the text of each scrape.
#![allow(
    clippy::format_push_string,
    reason = "none of these strings is on the way of a scrape"
)]

pub mod collected;
pub mod document;
pub mod files;
#[cfg(test)]
mod kubernetes;
pub mod naming;
pub mod options;
pub mod web;

/// On standard error, where a service's log is. Where that is closed there is nobody to tell.
pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "fastproc: {text}");
}
