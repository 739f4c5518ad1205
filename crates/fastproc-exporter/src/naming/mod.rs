//! Which group a process belongs to: the configuration of process-exporter.

mod file;
mod mapping;
mod rules;
mod template;

pub use self::{
    file::{parse, read},
    mapping::MappingError,
    rules::{Rules, Subject, Wants},
};
