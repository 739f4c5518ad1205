//! Completes help texts, and rewrites errors about an invalid command line.

use std::{
    error::Error as _,
    num::{ParseFloatError, ParseIntError},
};

use clap::{
    Command, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::paragraphs;

/// Ends every help text with a full stop, because the derive macro removes it from one-line comments, and joins the lines of
/// paragraphs.
pub fn complete(command: Command) -> Command {
    let ended = |text: Option<&StyledStr>| {
        let text = text?.to_string();
        let is_open = text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '\''));
        is_open.then(|| text + ".")
    };
    let command = command.mut_args(|arg| {
        let [short, long] = [ended(arg.get_help()), ended(arg.get_long_help())];
        let arg = match short {
            Some(text) => arg.help(text),
            None => arg,
        };
        match long {
            Some(text) => arg.long_help(text),
            None => arg,
        }
    });
    let command = match ended(command.get_about()) {
        Some(text) => command.about(text),
        None => command,
    };
    let joined = |text: Option<&StyledStr>| Some(paragraphs::join(&text?.to_string()));
    let [short, long] = [
        joined(command.get_after_help()),
        joined(command.get_after_long_help()),
    ];
    let command = match short {
        Some(text) => command.after_help(text),
        None => command,
    };
    let command = match long {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    command.mut_subcommands(complete)
}

/// The same error with a message that says what to type, if clap's does not.
pub fn in_our_words(error: Error) -> Error {
    let message = match error.kind() {
        ErrorKind::ValueValidation => wrong_number(&error),
        ErrorKind::UnknownArgument => unknown_option(&error),
        ErrorKind::InvalidValue => missing_value(&error),
        ErrorKind::ArgumentConflict => conflict(&error),
        ErrorKind::MissingRequiredArgument => missing_option(&error),
        _ => None,
    };
    message.map_or(error, |message| {
        Error::raw(ErrorKind::ValueValidation, format!("{message}\n"))
    })
}

fn text(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// The message for an option that needs a number and got something else.
fn wrong_number(error: &Error) -> Option<String> {
    let source = error.source()?;
    let argument = text(error, ContextKind::InvalidArg)?;
    let option = argument.split(' ').next()?;
    let value = text(error, ContextKind::InvalidValue)?.escape_debug();
    let is_number = source.is::<ParseIntError>() || source.is::<ParseFloatError>();
    if is_number {
        return Some(format!(
            "{option} needs a number, such as 10; '{value}' is not a number"
        ));
    }
    let source = source.to_string();
    let (_, range) = source.split_once(" is not in ")?;
    let (least, most) = range.split_once("..")?;
    let most = most.trim_start_matches('=');
    let most = if most.is_empty() || most.len() > 9 {
        String::new()
    } else {
        format!(" and at most {most}")
    };
    Some(format!(
        "{option} needs a number of at least {least}{most}; '{value}' is outside that range"
    ))
}

/// The options that an error names.
fn names(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(name) => Some(name.clone()),
        ContextValue::Strings(names) if !names.is_empty() => Some(names.join(", ")),
        _ => None,
    }
}

/// The message for an option without its value.
fn missing_value(error: &Error) -> Option<String> {
    let argument = text(error, ContextKind::InvalidArg)?;
    let is_missing = text(error, ContextKind::InvalidValue).is_none_or(str::is_empty);
    let has_choice = names(error, ContextKind::ValidValue).is_some();
    (is_missing && !has_choice).then(|| {
        let (option, value) = argument.split_once(' ').unwrap_or((argument, "a value"));
        format!("{option} needs a value: {option} {value}")
    })
}

fn conflict(error: &Error) -> Option<String> {
    let one = names(error, ContextKind::InvalidArg)?;
    let other = names(error, ContextKind::PriorArg)?;
    Some(format!(
        "{one} and {other} cannot be combined; leave out one of them"
    ))
}

fn missing_option(error: &Error) -> Option<String> {
    let missing = names(error, ContextKind::InvalidArg)?;
    missing
        .starts_with('-')
        .then(|| format!("{missing} is missing; the other options need it"))
}

/// The message for an unknown option: suggests the most similar one, or what to type instead.
fn unknown_option(error: &Error) -> Option<String> {
    let option = text(error, ContextKind::InvalidArg)?;
    if option[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Some(format!(
            "'{}' is a negative number, which no option accepts here",
            option.escape_debug()
        ));
    }
    let nearest = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(nearest)) => format!("; did you mean {nearest}?"),
        _ => String::new(),
    };
    let instead = OTHERS.iter().find(|(other, _)| *other == option);
    let hint = instead.map_or(nearest, |(_, instead)| format!("; {instead}"));
    Some(format!(
        "there is no option {}{hint}\n\n--help lists all options",
        option.escape_debug()
    ))
}

/// Options of ps(1) that fastproc lacks, and what to type instead.
const OTHERS: &[(&str, &str)] = &[
    ("-m", "type -L for a row for each thread"),
    ("-V", "type fastproc --version"),
    (
        "-S",
        "show the times of children as columns: --fields pid,cutime,cstime",
    ),
    (
        "--cumulative",
        "show the times of children as columns: --fields pid,cutime,cstime",
    ),
    ("--headers", "type | less, or fastproc top"),
    ("--heading", "type | less, or fastproc top"),
    ("--rows", "type | head, or --top 20"),
    ("--lines", "type | head, or --top 20"),
    ("--info", "type fastproc doctor"),
];
