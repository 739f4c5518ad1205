//! `fastproc serve` as its clients see it: over the wire, by a real Prometheus, and from `/proc`.

mod actor;
mod client;
mod clients;
mod configuration;
mod costly;
mod counters;
mod exposition;
mod folder;
mod groups;
mod help;
mod negotiation;
mod node;
mod peer;
mod privileges;
mod prometheus;
mod scraped;
mod security;
mod server;
mod starting;
mod tls;
mod unit;

/// Where tests say which of them ran.
const FASTPROC: &str = env!("CARGO_BIN_EXE_fastproc");
