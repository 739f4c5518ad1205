//! The process functions of procps's library, on records.
//!
//! `ps`, `top`, `pgrep`, `w` read processes by nine functions of libproc2. The small library in `shim` has their names and
//! hands them on, to this one or to procps's own. Here a context is filled from records, and what records do not hold
//! comes from procps's own library: wholly for a context that records cannot be had for, for few columns or few processes
//! otherwise. So every value that is hard to make is procps's, whichever version it is.
//!
//! This code runs within other programs. It prints nothing, starts no thread, keeps its capabilities, and no panic leaves it.

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
