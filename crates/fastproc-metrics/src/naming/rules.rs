//! Rules that select and name processes.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    regex::Expression,
    subject::{Subject, Wants, base},
    template::{NameError, Template},
};
use crate::names;

/// Matches a process if all its selectors match.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    pub comms: Option<HashSet<Vec<u8>>>,
    /// By the base of the path; with the whole path if that must match.
    pub exes: Option<HashMap<Vec<u8>, Option<Vec<u8>>>>,
    pub cmdlines: Option<Vec<Expression>>,
    pub name: Template,
}

impl Rule {
    fn name_of(&self, subject: &Subject<'_>) -> Option<Result<String, NameError>> {
        if let Some(comms) = &self.comms
            && !comms.contains(subject.comm)
        {
            return None;
        }
        if let Some(exes) = &self.exes {
            let argv0 = subject.argv0()?;
            let whole = exes.get(base(argv0))?;
            if whole.as_ref().is_some_and(|whole| whole != argv0) {
                return None;
            }
        }
        let mut matches = BTreeMap::new();
        if let Some(cmdlines) = &self.cmdlines {
            let line = subject.line();
            for Expression(regex) in cmdlines {
                let captures = regex.captures(&line)?;
                // As in process-exporter, all unnamed groups share the empty name; the last of them counts.
                for (name, found) in regex.capture_names().zip(captures.iter()) {
                    let text = found.map_or("", |found| found.as_str());
                    matches.insert(name.unwrap_or_default().to_owned(), text.to_owned());
                }
            }
        }
        Some(self.name.render(subject, &matches))
    }

    fn wants(&self) -> Wants {
        Wants {
            cmdline: self.exes.is_some() || self.cmdlines.is_some(),
            ..Wants::default()
        }
        .and(self.name.wants())
    }
}

/// For each name, the expression whose first non-empty capture is appended to it; `None`: only the name.
pub(super) type Mapping = HashMap<Vec<u8>, Option<Expression>>;

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    File(Vec<Rule>),
    Names(Mapping),
}

/// The rules. The first that matches names a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules(Kind);

impl Rules {
    pub(super) fn from_rules(rules: Vec<Rule>) -> Self {
        Self(Kind::File(rules))
    }

    pub(super) fn from_mapping(mapping: Mapping) -> Self {
        Self(Kind::Names(mapping))
    }

    /// Whether no process can be in a group.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Kind::File(rules) if rules.is_empty())
    }

    /// The group of this process, if a rule matches.
    pub fn name_of(&self, subject: &Subject<'_>) -> Result<Option<String>, NameError> {
        match &self.0 {
            Kind::File(rules) => {
                let mut names = rules.iter().filter_map(|rule| rule.name_of(subject));
                names.next().transpose()
            }
            Kind::Names(mapping) => Ok(mapped(mapping, subject)),
        }
    }

    /// What must be read of a process before it can be named.
    pub fn wants(&self) -> Wants {
        match &self.0 {
            Kind::File(rules) => rules
                .iter()
                .fold(Wants::default(), |wants, rule| wants.and(rule.wants())),
            Kind::Names(mapping) => Wants {
                cmdline: mapping.values().any(Option::is_some),
                ..Wants::default()
            },
        }
    }
}

fn mapped(mapping: &Mapping, subject: &Subject<'_>) -> Option<String> {
    let comm = names::text(subject.comm);
    let Some(expression) = mapping.get(subject.comm)? else {
        return Some(comm.into_owned());
    };
    let line = subject.line();
    let captures = expression.0.captures(&line)?;
    let found = captures.iter().skip(1).flatten();
    let mut found = found.map(|found| found.as_str());
    let first = found.find(|found| !found.is_empty())?;
    Some(format!("{comm}:{first}"))
}
