//! Where records come from.

pub(crate) mod bpf;
pub(crate) mod calibrate;
pub(crate) mod order;
pub mod procfs;
pub mod service;

pub use crate::{
    base::source_kind::{SourceKind, UnknownSource},
    snapshot::table::Table,
};
