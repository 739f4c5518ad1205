//! Serves fastproc's metrics to Prometheus: HTTP, TLS and passwords.
//!
//! It does not read the machine: `fastproc serve` starts it, collects, and gives it the text of each scrape.
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

pub use fastproc_metrics::say;
