//! Names of fields: for shells to complete, and as `--fields help` lists them.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, TypedValueParser},
    error::{ContextKind, ContextValue, ErrorKind},
};
use fastproc_columns::{Field, Subject};

use crate::paragraphs;

/// Parses with another parser, and lists names of fields.
#[derive(Clone)]
pub struct Completed<S: Subject, P> {
    parser: P,
    fields: fn() -> Vec<&'static Field<S>>,
}

impl<S: Subject, P> Completed<S, P> {
    /// Lists only these fields.
    pub fn of(self, fields: fn() -> Vec<&'static Field<S>>) -> Self {
        Self { fields, ..self }
    }
}

/// Adds names of fields to a parser, which may take other values, too.
pub fn completed<S: Subject, P: TypedValueParser>(parser: P) -> Completed<S, P> {
    let fields = || S::fields().iter().collect();
    Completed { parser, fields }
}

impl<S: Subject + Clone + 'static, P: TypedValueParser> TypedValueParser for Completed<S, P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, Error> {
        if value == "help" {
            let list = lines((self.fields)(), |_| String::new(), usize::MAX);
            let mut help = Error::new(ErrorKind::DisplayHelp);
            help.insert(ContextKind::Custom, ContextValue::String(list));
            return Err(help);
        }
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |field: &'static Field<S>| PossibleValue::new(field.name).help(field.help);
        Some(Box::new((self.fields)().into_iter().map(value)))
    }
}

/// The column where the description of a field starts.
const INDENT: usize = 28;

/// A line for each field, with its marks and its other names. What is longer than `width` goes on below its description.
pub fn lines<S: Subject>(
    fields: impl IntoIterator<Item = &'static Field<S>>,
    marks: impl Fn(&Field<S>) -> String,
    width: usize,
) -> String {
    let mut lines = String::new();
    for field in fields {
        let heading = field.column_heading();
        let is_heading = |name: &str| heading.eq_ignore_ascii_case(name);
        let mut others = field.aliases.to_vec();
        if !is_heading(field.name) && !others.iter().any(|other| is_heading(other)) {
            others.push(&heading);
        }
        let also = if others.is_empty() {
            String::new()
        } else {
            format!(" (also {})", others.join(", "))
        };
        let line = format!("  {:<22} {:<2}", field.name, marks(field));
        let help = format!("{}{also}", field.help);
        lines += &paragraphs::wrap(line, help.split(' '), INDENT, width);
        lines.push('\n');
    }
    lines
}
