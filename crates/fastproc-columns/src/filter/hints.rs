//! What a filter cannot mean, and what to type instead.

use nix::sys::signal::Signal;

/// Operators of other languages, each with an example of a regular expression.
const OTHERS: [(&str, &str); 11] = [
    ("~", "^ssh"),
    ("=*", "^ssh"),
    ("ilike", "(?i)ssh"),
    ("like", "ssh"),
    ("matches", "^ssh"),
    ("match", "^ssh"),
    ("regex", "^ssh"),
    ("contains", "ssh"),
    ("includes", "ssh"),
    ("startswith", "^ssh"),
    ("endswith", "d$"),
];

/// The operator of another language at the start of this text.
pub(super) fn other_operator(text: &str) -> Option<(&'static str, &'static str)> {
    let text = text.to_ascii_lowercase();
    let other = OTHERS.iter().find(|(other, _)| text.starts_with(other));
    other.copied()
}

/// The regular expression for a shell pattern, if the text is one: it has a star at either end.
pub(super) fn glob(text: &str) -> Option<String> {
    let is_escaped = |text: &str| text.ends_with('\\');
    let middle = text.trim_matches('*');
    if text.len() == middle.len() || middle.is_empty() || is_escaped(middle) {
        return None;
    }
    let start = if text.starts_with('*') { "" } else { "^" };
    let end = if text.ends_with('*') { "" } else { "$" };
    let parts: Vec<_> = middle.split('*').map(regex::escape).collect();
    let pattern = format!("{start}{}{end}", parts.join(".*"));
    Some(pattern.replace(char::is_control, "."))
}

/// The status of an exited process in the form of the field, which has names of signals without `SIG`. `None`: it is
/// neither a number nor the name of a signal.
pub(super) fn status(text: &[u8]) -> Option<&[u8]> {
    let text = str::from_utf8(text).ok()?;
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let number = text.strip_prefix("signal ").unwrap_or(text);
    let is_one = number.parse::<u8>().is_ok() || format!("SIG{name}").parse::<Signal>().is_ok();
    is_one.then_some(name.as_bytes())
}
