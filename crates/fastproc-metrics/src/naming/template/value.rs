//! Values of templates, and how Go prints them.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use super::{super::subject::Container, time::Time};

/// What a process has for a template.
#[derive(Debug, PartialEq)]
pub(super) struct Data {
    pub cgroups: Vec<String>,
    pub comm: String,
    pub exe_base: String,
    pub exe_full: String,
    pub username: String,
    pub pid: i64,
    pub start_time: Time,
    pub matches: BTreeMap<String, String>,
    pub container: Container,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// There is none: a key that is not in a map, and `nil`.
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<String>),
    Map(BTreeMap<String, String>),
    Time(Time),
    /// A number with a name, as Go's months and days of the week are.
    Named(i64, &'static str),
    /// All that a process has.
    Data(Arc<Data>),
}

/// What Go prints for a value that is not there.
pub(super) const NO_VALUE: &str = "<no value>";

impl Value {
    /// Whether `if` takes it for true: whatever is not empty.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(number) | Self::Named(number, _) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Map(entries) => !entries.is_empty(),
            Self::Time(_) | Self::Data(_) => true,
        }
    }

    /// How many bytes a copy of it takes, about. The data of a process is shared.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(items) => items.iter().map(|item| 8 + item.len()).sum(),
            Self::Map(entries) => {
                let entries = entries.iter();
                entries
                    .map(|(name, value)| 8 + name.len() + value.len())
                    .sum()
            }
            _ => 0,
        }
    }

    /// As `print` and the end of a pipe write it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Nil => "<nil>".into(),
            Self::Bool(value) => value.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Float(number) => float(*number),
            Self::Text(text) => text.clone(),
            Self::List(items) => format!("[{}]", items.join(" ")),
            Self::Map(entries) => {
                let pairs: Vec<String> = entries
                    .iter()
                    .map(|(name, value)| format!("{name}:{value}"))
                    .collect();
                format!("map[{}]", pairs.join(" "))
            }
            Self::Time(time) => time.to_string(),
            Self::Named(_, name) => (*name).into(),
            Self::Data(data) => {
                let Data {
                    cgroups,
                    comm,
                    exe_base,
                    exe_full,
                    username,
                    pid,
                    start_time,
                    matches,
                    // process-exporter has nothing of it.
                    container: _,
                } = &**data;
                let cgroups = Self::List(cgroups.clone()).shown();
                let matches = Self::Map(matches.clone()).shown();
                let mut text = String::new();
                // Writing to a string cannot fail.
                let _ = write!(
                    text,
                    "{{{cgroups} {comm} {exe_base} {exe_full} {username} {pid} {start_time} {matches}}}"
                );
                text
            }
        }
    }

    /// Go's name of its type.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "[]string",
            Self::Map(_) => "map[string]string",
            Self::Time(_) => "time.Time",
            Self::Named(..) => "time.Month",
            Self::Data(_) => "*config.templateParams",
        }
    }
}

/// The shortest text that is this number, with an exponent where it is very small or large.
pub(super) fn float(number: f64) -> String {
    if !number.is_finite() {
        return match number {
            number if number.is_nan() => "NaN".into(),
            number if number > 0.0 => "+Inf".into(),
            _ => "-Inf".into(),
        };
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number == 0.0 || (-4..21).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
