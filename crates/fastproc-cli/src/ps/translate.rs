//! Translates a command line of ps(1) before it is parsed.

use std::ffi::OsString;

use clap::{Args as _, Command, ValueEnum};
use fastproc_columns::Names;

use super::{args::Args, ps1};
use crate::format::Format;

/// Letters that may follow `-a` and `-x` if ps(1) takes the argument for words: `-ax`, `-aux`, `-axjf`.
const LETTERS: &str = "axujlsvXfHhcnwroOkTgZ";
/// Options of one letter whose value is the next argument.
const TAKE_VALUES: &str = "oOpquUCGgst";

/// Replaces arguments of ps(1) that would have another meaning here: `-aux` by `aux`, `--format pid` by `-o pid`, and
/// `k -rss` by one word.
pub fn as_in_ps(arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_none_or(|name| name != "ps") {
        return arguments;
    }
    let mut result: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut arguments = arguments.into_iter();
    result.extend(arguments.by_ref().take(2));
    let mut arguments = arguments.peekable();
    let mut is_value = false;
    while let Some(argument) = arguments.next() {
        let Some(text) = argument.to_str().filter(|_| !std::mem::take(&mut is_value)) else {
            result.push(argument);
            continue;
        };
        if let Some(list) = text
            .strip_prefix("--format=")
            .filter(|value| is_list(value))
        {
            result.push(format!("-o{list}").into());
        } else if text == "--format" {
            let next = arguments.peek().and_then(|next| next.to_str());
            let option = if next.is_some_and(is_list) {
                "-o"
            } else {
                "--format"
            };
            result.push(option.into());
            is_value = true;
        } else if is_words(text) {
            result.push(text[1..].into());
        } else if is_sort_key(text) && arguments.peek().is_some_and(starts_with_dash) {
            let key = arguments.next().unwrap_or_default();
            let mut word = argument;
            word.push(key);
            result.push(word);
        } else {
            let next = arguments.peek().and_then(|next| next.to_str());
            let may_be_word = next.is_some_and(|next| is_sort_key(next) || is_words(next));
            is_value = takes_value(text) || may_be_word && long_takes_value(text);
            result.push(argument);
        }
    }
    result
}

/// Whether the value of `--format` is a list of columns, not an output format.
fn is_list(value: &str) -> bool {
    let is_format = Format::from_str(value, true).is_ok();
    !is_format && ps1::parse(value).is_ok()
}

/// Whether ps(1) takes the argument for words, in spite of its dash.
fn is_words(text: &str) -> bool {
    let Some(letters) = text.strip_prefix('-') else {
        return false;
    };
    letters.starts_with(['a', 'x', 'u'])
        && letters.contains('x')
        && letters.chars().all(|letter| LETTERS.contains(letter))
        && !(letters.contains('u') && is_user(letters))
}

/// Whether the letters after the u of `-aux` are the name of a user.
fn is_user(letters: &str) -> bool {
    let (_, user) = letters.split_once('u').unwrap_or_default();
    Names::user_id(user).is_some()
}

/// Whether this is a word whose last letter requires a key to sort by.
fn is_sort_key(text: &str) -> bool {
    text.ends_with('k') && text.chars().all(|letter| LETTERS.contains(letter))
}

fn starts_with_dash(argument: &OsString) -> bool {
    let bytes = argument.as_encoded_bytes();
    bytes.len() > 1 && bytes[0] == b'-'
}

/// Whether the next argument is the value of this option.
fn takes_value(text: &str) -> bool {
    match text.strip_prefix('-') {
        Some(letters) if !letters.starts_with('-') => {
            letters.find(|letter| TAKE_VALUES.contains(letter)) == letters.len().checked_sub(1)
                && !letters.is_empty()
        }
        _ => false,
    }
}

/// The same of an option with two dashes.
fn long_takes_value(text: &str) -> bool {
    let Some(name) = text.strip_prefix("--") else {
        return false;
    };
    let defined = Args::augment_args(Command::new("ps"));
    let mut options = defined.get_arguments();
    options.any(|option| option.get_long() == Some(name) && option.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_ps_reads_as_bsd_words_are_parsed_as_words() {
        for (typed, parsed) in [
            ("-aux", "aux"),
            ("-ax", "ax"),
            ("-axjf", "axjf"),
            ("-ef", "-ef"),
            ("-auroot", "-auroot"),
            ("-uroot", "-uroot"),
            ("-a", "-a"),
            ("axk -rss", "axk-rss"),
            ("k -rss,pid", "k-rss,pid"),
            ("-C k -e", "-C k -e"),
            ("-eo k", "-eo k"),
            ("--history hk -p 1", "--history hk -p 1"),
            ("--quiet k -rss", "--quiet k-rss"),
            ("--format pid,rss", "-o pid,rss"),
            ("--format=pid,rss=A", "-opid,rss=A"),
            ("--format json", "--format json"),
            ("--format=jsn", "--format=jsn"),
            ("-p 1 -aux", "-p 1 aux"),
        ] {
            let line = |text: &str| -> Vec<OsString> {
                let words = ["fastproc", "ps"].into_iter().chain(text.split(' '));
                words.map(Into::into).collect()
            };
            assert_eq!(as_in_ps(line(typed)), line(parsed), "{typed}");
        }
    }
}
