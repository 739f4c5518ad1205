//! procps's process functions, implemented by records.
//!
//! `ps`, `top`, `pgrep` and `w` read processes by nine functions of libproc2. The small library in `shim` exports them,
//! and calls this library or procps's own. Here a context is filled from records; what records lack comes from procps's
//! own library: everything if records are not available, otherwise few columns or few processes. So every value that is
//! hard to make comes from procps, whatever its version.
//!
//! This code runs inside other programs. It prints nothing, starts no thread, changes no capabilities, and lets no
//! panic escape.

mod abi;
mod arena;
mod context;
mod exports;
mod history;
mod items;
mod lazy;
mod names;
mod plan;
mod real;
mod records;
mod rows;
mod sort;
mod stacks;
mod tty;
mod values;
