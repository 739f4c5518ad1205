//! `fastproc serve` as its clients see it: over the network, by a real Prometheus, and in `/proc`.

mod actor;
mod cadvisor;
mod client;
mod clients;
mod containers;
mod exposition;
mod folder;
mod golden;
mod hostile;
mod hung;
mod machine;
mod namespace;
mod negotiation;
mod node;
mod node_exporter;
mod packaged;
mod peer;
mod privileges;
mod prometheus;
mod refused;
mod reload;
mod scraped;
mod security;
mod separate;
mod server;
mod starting;
mod textfile;
mod tls;
mod unit;

/// Where tests say which of them ran.
const FASTPROC: &str = env!("CARGO_BIN_EXE_fastproc");
