//! The commands as their users see them. One module per command and view; `serve` and `top` are folders.
//!
//! - `fastproc ps`: `ps_usage` (help, standard error, JSON), `ps_names`, `ps_as_ps` (beside ps(1)), `ps_privileges`,
//!   `ps_terminal`
//! - every table, text and scrape of the machine in `fixtures/`, without privileges: `frozen`
//! - the running kernel: `live` (every field, source and error), `exits`, `containers`, `pid_namespaces`
//! - `fastproc files` and `sockets`: `files`
//! - what `fastproc record` has kept: `history`
//! - readers of a service: `service`, `service_exits`, `service_views`
//! - `fastproc serve` for Prometheus: `serve`; on a terminal: `top`
//! - `fastproc record`: `record`; killed, and without power: `power`
//! - every command: `closed_pipe`, `generated` (man pages and completions), `bench`, `package`
//!
//! A test of one module without a process belongs beside its code in `src`.

mod bench;
mod closed_pipe;
mod common;
mod containers;
mod exits;
mod files;
mod frozen;
mod generated;
mod history;
mod live;
mod package;
mod pid_namespaces;
mod power;
mod ps_as_ps;
mod ps_names;
mod ps_privileges;
mod ps_terminal;
mod ps_usage;
mod record;
mod serve;
mod served;
mod service;
mod service_exits;
mod service_views;
mod top;
