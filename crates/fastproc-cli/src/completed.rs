//! Values that shells complete.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, TypedValueParser},
};

/// Lists the names that a shell offers.
type Names = fn() -> Box<dyn Iterator<Item = PossibleValue>>;

/// Parses with another parser, and lists names for shell completion.
#[derive(Clone)]
pub struct Completed<P> {
    parser: P,
    names: Names,
}

/// Adds names for shell completion to a parser, which may take other values, too.
pub fn completed<P: TypedValueParser>(parser: P, names: Names) -> Completed<P> {
    Completed { parser, names }
}

impl<P: TypedValueParser> TypedValueParser for Completed<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some((self.names)())
    }
}
