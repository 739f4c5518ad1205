//! Evaluates a parsed template for a process.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::{self, Display, Formatter, Write},
};

use jiff::{Timestamp, tz::TimeZone};

use super::parse::{Expression, Function, Node};
use crate::{names, naming::subject::Subject};

/// The longest name, in bytes.
const LONGEST: usize = 64 * 1024;

/// Renders the name. Like process-exporter, it ends the name at an expression without a value. The error is the most
/// bytes that a name may have.
pub(super) fn render(
    nodes: &[Node],
    subject: &Subject<'_>,
    matches: &BTreeMap<String, String>,
) -> Result<String, usize> {
    let process = Process { subject, matches };
    let mut name = Name(String::new());
    match process.write(nodes, &mut name) {
        Err(Stop::TooLong) => Err(LONGEST),
        Ok(()) | Err(Stop::NoValue) => Ok(name.0),
    }
}

/// Why a template ends early.
enum Stop {
    NoValue,
    TooLong,
}

impl From<fmt::Error> for Stop {
    fn from(_: fmt::Error) -> Self {
        Self::TooLong
    }
}

/// A text that refuses to become longer than the longest name.
struct Name(String);

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0 += text;
        Ok(())
    }
}

#[derive(PartialEq)]
enum Value<'a> {
    /// An expression has no group of this name.
    Missing,
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    List(&'a [String]),
    Map(&'a BTreeMap<String, String>),
}

impl Value<'_> {
    /// Whether `if` takes the first branch: for any value that is not empty.
    fn is_true(&self) -> bool {
        match self {
            Self::Missing => false,
            Self::Bool(value) => *value,
            Self::Int(number) => *number != 0,
            Self::Text(text) => !text.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Map(entries) => !entries.is_empty(),
        }
    }

    fn equals(&self, other: &Self) -> Result<bool, Stop> {
        match (self, other) {
            (Self::Int(_), Self::Int(_))
            | (Self::Bool(_), Self::Bool(_))
            | (Self::Text(_), Self::Text(_))
            | (Self::Missing, _)
            | (_, Self::Missing) => Ok(self == other),
            _ => Err(Stop::NoValue),
        }
    }
}

/// As Go prints it.
impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("<no value>"),
            Self::Bool(value) => value.fmt(f),
            Self::Int(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::List(items) => write!(f, "[{}]", items.join(" ")),
            Self::Map(entries) => {
                f.write_str("map[")?;
                for (at, (name, value)) in entries.iter().enumerate() {
                    let space = if at == 0 { "" } else { " " };
                    write!(f, "{space}{name}:{value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

struct Process<'a> {
    subject: &'a Subject<'a>,
    matches: &'a BTreeMap<String, String>,
}

impl<'a> Process<'a> {
    fn write(&self, nodes: &'a [Node], name: &mut Name) -> Result<(), Stop> {
        for node in nodes {
            match node {
                Node::Text(text) => name.write_str(text)?,
                Node::Print(expression) => write!(name, "{}", self.value(expression)?)?,
                Node::If(condition, then, otherwise) => {
                    let is_true = self.value(condition)?.is_true();
                    self.write(if is_true { then } else { otherwise }, name)?;
                }
            }
        }
        Ok(())
    }

    fn value(&self, expression: &'a Expression) -> Result<Value<'a>, Stop> {
        Ok(match expression {
            Expression::Text(text) => Value::Text(text.into()),
            Expression::Int(number) => Value::Int(*number),
            Expression::Field(name, member) => self.field(name, member),
            Expression::Call(function, arguments) => self.call(*function, arguments)?,
        })
    }

    fn field(&self, name: &str, member: &str) -> Value<'a> {
        let Self { subject, matches } = *self;
        match (name, member) {
            ("Cgroups", _) => Value::List(subject.cgroups),
            ("Comm", _) => Value::Text(names::text(subject.comm)),
            ("ExeBase", _) => Value::Text(names::text(subject.exe_base())),
            ("ExeFull", _) => Value::Text(names::text(subject.exe())),
            ("Username", _) => Value::Text(subject.username.into()),
            ("PID", _) => Value::Int(subject.pid.into()),
            ("StartTime", "Unix") => Value::Int((subject.start_unix_ns / 1_000_000_000) as i64),
            ("StartTime", _) => {
                let time = Timestamp::from_nanosecond(subject.start_unix_ns.into());
                let time = time.unwrap_or_default().to_zoned(TimeZone::UTC);
                let text = time.strftime("%Y-%m-%d %H:%M:%S%.f +0000 UTC");
                Value::Text(text.to_string().into())
            }
            ("Matches", "") => Value::Map(matches),
            ("Matches", group) => match matches.get(group) {
                Some(text) => Value::Text(text.into()),
                None => Value::Missing,
            },
            (name, _) => {
                let container = subject.container.and_then(|container| container.get(name));
                Value::Text(container.map_or("", String::as_str).into())
            }
        }
    }

    fn call(&self, function: Function, arguments: &'a [Expression]) -> Result<Value<'a>, Stop> {
        let (first, others) = arguments.split_first().ok_or(Stop::NoValue)?;
        let first = self.value(first)?;
        Ok(match function {
            Function::Not => Value::Bool(!first.is_true()),
            Function::And | Function::Or => {
                // The first value that decides; Go evaluates no further ones.
                let mut value = first;
                for other in others {
                    if value.is_true() == (function == Function::Or) {
                        break;
                    }
                    value = self.value(other)?;
                }
                value
            }
            Function::Ne => {
                let second = self.value(others.first().ok_or(Stop::NoValue)?)?;
                Value::Bool(!first.equals(&second)?)
            }
            Function::Eq => {
                let mut equal = false;
                for other in others {
                    equal = equal || first.equals(&self.value(other)?)?;
                }
                Value::Bool(equal)
            }
            Function::Index => {
                let key = self.value(others.first().ok_or(Stop::NoValue)?)?;
                match (first, key) {
                    // A missing key has the empty text.
                    (Value::Map(entries), Value::Text(key)) => {
                        Value::Text(entries.get(&*key).map_or("", |text| text).into())
                    }
                    (Value::List(items), Value::Int(at)) => {
                        let at = usize::try_from(at).ok();
                        let item = at.and_then(|at| items.get(at)).ok_or(Stop::NoValue)?;
                        Value::Text(item.into())
                    }
                    _ => return Err(Stop::NoValue),
                }
            }
        })
    }
}
