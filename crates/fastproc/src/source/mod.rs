//! Sources of records.

pub(crate) mod bpf;
pub(crate) mod calibrate;
pub(crate) mod order;
pub mod procfs;
pub mod service;
