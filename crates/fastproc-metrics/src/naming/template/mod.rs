//! Names of groups by templates: the part of Go's text/template that configurations of process-exporter use.

mod eval;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::parse::{Expression, Node};
use super::subject::{OF_CGROUP, OF_RUNTIME, Subject, Wants};

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    text: String,
    nodes: Vec<Node>,
}

/// The name that a template makes is too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the template {template:?} makes more than {most} bytes, so it names no process")]
pub struct NameError {
    template: String,
    most: usize,
}

impl Template {
    /// Parses a template. The error says what fastproc does not understand.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self {
            text: text.into(),
            nodes: parse::parse(text)?,
        })
    }

    /// What must be read of a process to name it.
    pub fn wants(&self) -> Wants {
        let mut wants = Wants::default();
        parse::each_expression(&self.nodes, &mut |expression| {
            if let Expression::Field(name, _) = expression {
                wants.cmdline |= name.starts_with("Exe");
                wants.username |= name == "Username";
                wants.cgroups |= name == "Cgroups";
                wants.container_names |= OF_RUNTIME.contains(&name.as_str());
                wants.container |= wants.container_names || OF_CGROUP.contains(&name.as_str());
            }
        });
        wants
    }

    /// The name of this process.
    pub fn render(
        &self,
        subject: &Subject<'_>,
        matches: &BTreeMap<String, String>,
    ) -> Result<String, NameError> {
        eval::render(&self.nodes, subject, matches).map_err(|most| NameError {
            template: self.text.clone(),
            most,
        })
    }
}
