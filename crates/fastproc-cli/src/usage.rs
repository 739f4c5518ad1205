//! Completes help texts, and rewrites errors about an invalid command line.

use std::{
    error::Error as _,
    ffi::OsString,
    num::{ParseFloatError, ParseIntError},
};

use clap::{
    Command, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};
use fastproc_columns::field::nearest;

use crate::paragraphs;

/// Ends every help text with a full stop, because the derive macro removes it from one-line comments, leaves out the back-quotes
/// of Rust's comments, and joins the lines of paragraphs.
pub fn complete(command: Command) -> Command {
    let ended = |text: Option<&StyledStr>| {
        let text = text?.to_string().replace('`', "");
        let is_open =
            text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '\'' | '"'));
        Some(if is_open { text + "." } else { text })
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
    let command = match ended(command.get_long_about()) {
        Some(text) => command.long_about(text),
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

/// The same error about this command line with a message that says what to type, if clap's does not.
pub fn in_our_words(error: Error, arguments: &[OsString]) -> Error {
    let message = match error.kind() {
        ErrorKind::ValueValidation => wrong_number(&error).or_else(|| wrong_value(&error)),
        ErrorKind::UnknownArgument => unknown_option(&error),
        ErrorKind::InvalidValue => missing_value(&error),
        ErrorKind::ArgumentConflict => conflict(&error),
        ErrorKind::MissingRequiredArgument => missing_option(&error, arguments),
        ErrorKind::InvalidSubcommand => unknown_command(&error),
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

/// The message for an unknown field: what lists all, unless it has a similar one.
pub fn unknown_field(mut problem: String, option: &str) -> String {
    if !problem.contains("did you mean") {
        problem.extend(["; ", option, " help lists all fields"]);
    }
    problem
}

/// The message for a value that cannot be parsed: what the parser says, which may repeat the value.
fn wrong_value(error: &Error) -> Option<String> {
    let problem = error.source()?.to_string();
    let value = text(error, ContextKind::InvalidValue)?;
    let option = text(error, ContextKind::InvalidArg)?.split(' ').next()?;
    Some(if problem.contains('\n') {
        problem
    } else if problem.starts_with("there is no field") {
        unknown_field(problem, option)
    } else if problem.contains(&format!("'{value}'")) {
        problem
    } else {
        format!("{option} '{}': {problem}", value.escape_debug())
    })
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
    let choices = names(error, ContextKind::ValidValue).map_or(0, |names| names.len());
    // The names of fields are more than a message can list.
    let are_fields = choices > 200;
    (is_missing && (choices == 0 || are_fields)).then(|| {
        let (option, value) = argument.split_once(' ').unwrap_or((argument, "a value"));
        if are_fields {
            format!("{option} needs a value: {option} {value}; {option} help lists them")
        } else if option.starts_with('-') {
            format!("{option} needs a value: {option} {value}")
        } else {
            let name = option.trim_matches(|c: char| !c.is_alphabetic());
            format!("{name} must not be empty; give one, or leave it out")
        }
    })
}

fn conflict(error: &Error) -> Option<String> {
    let one = names(error, ContextKind::InvalidArg)?;
    let other = names(error, ContextKind::PriorArg)?;
    if one == other {
        let option = one.split(' ').next()?;
        let instead = if option == "--filter" {
            "join the two expressions with &&"
        } else {
            "give it once"
        };
        return Some(format!("{option} is given twice; {instead}"));
    }
    Some(format!(
        "{one} and {other} cannot be combined; leave out one of them"
    ))
}

/// Options that need another one. Clap names only the other one.
const NEEDS: &[(&str, &str)] = &[
    ("--count", "--interval"),
    ("--exited", "--interval"),
    ("-y", "-l"),
    ("--idle-exit", "--no-metrics"),
    ("--group", "--socket"),
    ("--format", "--once"),
    ("--json", "--once"),
    ("--format", "--system"),
    ("--json", "--system"),
    ("--json", "--status"),
];

fn missing_option(error: &Error, arguments: &[OsString]) -> Option<String> {
    let missing = names(error, ContextKind::InvalidArg)?;
    let missing = missing.split(' ').next().filter(|it| it.starts_with('-'))?;
    let is_given = |option: &str| {
        let mut texts = arguments.iter().filter_map(|argument| argument.to_str());
        texts.any(|text| text.split('=').next() == Some(option))
    };
    let needs = NEEDS
        .iter()
        .filter(|(option, other)| *other == missing && is_given(option));
    let needs: Vec<_> = needs.map(|(option, _)| *option).collect();
    Some(match needs[..] {
        [] => format!("{missing} is missing; the other options need it"),
        [one] => format!("{one} needs {missing}"),
        _ => format!("{} need {missing}", needs.join(" and ")),
    })
}

/// The message for an unknown command.
fn unknown_command(error: &Error) -> Option<String> {
    let command = text(error, ContextKind::InvalidSubcommand)?;
    let hint = match command {
        "version" => "; type fastproc --version".into(),
        "aux" | "ax" => format!("; type fastproc ps {command}"),
        "pgrep" | "w" => format!("; type fastproc run -- {command}"),
        _ => {
            let others = match error.get(ContextKind::SuggestedSubcommand) {
                Some(ContextValue::Strings(others)) => &others[..],
                _ => &[],
            };
            let near = nearest(command, others.iter().map(String::as_str));
            near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"))
        }
    };
    Some(format!(
        "there is no command '{}'{hint}\n\nfastproc --help lists all commands",
        command.escape_debug()
    ))
}

/// Whether the error is about a call of this command.
fn is_of(error: &Error, command: &str) -> bool {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return false;
    };
    command.is_empty() || usage.to_string().contains(&format!(" {command} "))
}

/// The message for an unknown option: suggests the most similar one, or what to type instead.
fn unknown_option(error: &Error) -> Option<String> {
    let option = text(error, ContextKind::InvalidArg)?;
    if !option.starts_with('-') {
        let hint = if is_of(error, "run") {
            format!("; type fastproc run -- {}", option.escape_debug())
        } else {
            String::new()
        };
        return Some(format!(
            "'{}' is not expected here{hint}\n\n--help lists what is",
            option.escape_debug()
        ));
    }
    if option[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Some(format!(
            "'{}' is a negative number, which no option accepts here",
            option.escape_debug()
        ));
    }
    let near = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(other)) => nearest(option, [other.as_str()].into_iter()),
        _ => None,
    };
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let instead = OTHERS.iter().find(|(command, others, _)| {
        others.split(' ').any(|other| other == option) && is_of(error, command)
    });
    let hint = instead.map_or(near, |(.., instead)| format!("; {instead}"));
    Some(format!(
        "there is no option {}{hint}\n\n--help lists all options",
        option.escape_debug()
    ))
}

/// Options of ps(1), and of commands that list, that a command lacks; and what to type instead, or why.
const OTHERS: &[(&str, &str, &str)] = &[
    ("ps", "-m", "type -L for a row for each thread"),
    (
        "ps",
        "-S --cumulative",
        "show the times of children as columns: --fields pid,cutime,cstime",
    ),
    ("ps", "--headers --heading", "type | less, or fastproc top"),
    ("ps", "--rows --lines", "type | head, or --top 20"),
    ("ps", "--info", "type fastproc doctor"),
    (
        "top",
        "--top",
        "a screen has as many rows as fit; type fastproc ps --top 20",
    ),
    ("top", "--quiet -q", "a screen has no summary"),
    (
        "exits",
        "--interval",
        "processes are shown as they exit; type fastproc ps --exited --interval 1",
    ),
    (
        "exits",
        "--source",
        "exits are recorded by BPF, by this command or by a service; /proc shows none",
    ),
    (
        "verify",
        "--fields -o --filter --sort --top",
        "every field of every process is compared; --pid selects processes",
    ),
    ("verify", "--interval --count", "type --rounds N"),
    (
        "verify",
        "--quiet -q",
        "type > /dev/null; the exit status is the result",
    ),
    ("", "-V --version", "type fastproc --version"),
];
