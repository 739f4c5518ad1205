//! Assigns processes to groups by the rules of process-exporter.

mod items;
mod mapping;
mod regex;
mod rules;
mod subject;
mod template;

pub use self::{
    items::{Item, WrongRules, check_expression, check_name},
    mapping::MappingError,
    rules::Rules,
    subject::{Container, Subject, Wants},
    template::NameError,
};
