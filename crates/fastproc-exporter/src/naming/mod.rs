//! Which group a process belongs to: the configuration of process-exporter.

mod file;
mod mapping;
mod regex;
mod rules;
mod subject;
mod template;

pub use self::{
    file::{Configured, parse, read},
    mapping::MappingError,
    rules::Rules,
    subject::{Subject, Wants},
};
