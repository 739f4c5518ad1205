//! The functions that every template of Go has.

use std::cmp::Ordering;

use super::{printf::printf, value::Value};

const NAMES: [&str; 18] = [
    "and", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or", "print",
    "printf", "println", "slice", "urlquery",
];

pub(super) fn is_function(name: &str) -> bool {
    NAMES.contains(&name)
}

pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let few = || Err(format!("{name} takes more arguments"));
    match (name, arguments) {
        ("print", _) => Ok(Value::Text(print(arguments))),
        ("println", _) => {
            let texts: Vec<String> = arguments.iter().map(Value::shown).collect();
            Ok(Value::Text(texts.join(" ") + "\n"))
        }
        ("printf", [Value::Text(format), rest @ ..]) => Ok(Value::Text(printf(format, rest))),
        ("not", [value]) => Ok(Value::Bool(!value.is_true())),
        ("len", [value]) => match value {
            Value::Text(text) => Ok(Value::Int(text.len() as i64)),
            Value::List(items) => Ok(Value::Int(items.len() as i64)),
            Value::Map(entries) => Ok(Value::Int(entries.len() as i64)),
            other => Err(format!("a {} has no length", other.type_name())),
        },
        ("index", [of, keys @ ..]) => keys.iter().try_fold(of.clone(), |of, key| index(&of, key)),
        ("slice", [of, bounds @ ..]) => slice(of, bounds),
        ("eq", [first, others @ ..]) if !others.is_empty() => {
            for other in others {
                if equal(first, other)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        ("ne", [left, right]) => Ok(Value::Bool(!equal(left, right)?)),
        ("lt" | "le" | "gt" | "ge", [left, right]) => {
            let order = order(left, right)?;
            Ok(Value::Bool(match name {
                "lt" => order == Ordering::Less,
                "le" => order != Ordering::Greater,
                "gt" => order == Ordering::Greater,
                _ => order != Ordering::Less,
            }))
        }
        ("html", _) => Ok(Value::Text(replace(&print(arguments), html))),
        ("js", _) => Ok(Value::Text(replace(&print(arguments), js))),
        ("urlquery", _) => Ok(Value::Text(urlquery(&print(arguments)))),
        _ => few(),
    }
}

/// With a space between two that are no strings.
fn print(values: &[Value]) -> String {
    let mut text = String::new();
    let mut before_is_text = true;
    for value in values {
        let is_text = matches!(value, Value::Text(_));
        if !before_is_text && !is_text {
            text.push(' ');
        }
        text += &value.shown();
        before_is_text = is_text;
    }
    text
}

fn index(of: &Value, key: &Value) -> Result<Value, String> {
    match (of, key) {
        // A key that is not there has the empty string.
        (Value::Map(entries), Value::Text(key)) => {
            Ok(Value::Text(entries.get(key).cloned().unwrap_or_default()))
        }
        (Value::List(items), Value::Int(at)) => usize::try_from(*at)
            .ok()
            .and_then(|at| items.get(at))
            .map(|text| Value::Text(text.clone()))
            .ok_or_else(|| format!("index {at} is out of range")),
        (Value::Text(text), Value::Int(at)) => usize::try_from(*at)
            .ok()
            .and_then(|at| text.as_bytes().get(at))
            .map(|&byte| Value::Int(byte.into()))
            .ok_or_else(|| format!("index {at} is out of range")),
        _ => Err(format!(
            "a {} has no index {}",
            of.type_name(),
            key.type_name()
        )),
    }
}

fn slice(of: &Value, bounds: &[Value]) -> Result<Value, String> {
    let length = match of {
        Value::Text(text) => text.len(),
        Value::List(items) => items.len(),
        other => return Err(format!("a {} cannot be sliced", other.type_name())),
    };
    let mut ends = [0, length];
    if bounds.len() > 2 {
        return Err("slice takes two bounds".into());
    }
    for (end, bound) in ends.iter_mut().zip(bounds) {
        let Value::Int(bound) = bound else {
            return Err("a bound of slice is no number".into());
        };
        *end = usize::try_from(*bound)
            .ok()
            .filter(|&bound| bound <= length)
            .ok_or_else(|| format!("bound {bound} is out of range"))?;
    }
    let [from, to] = ends;
    if from > to {
        return Err("the bounds of slice are reversed".into());
    }
    Ok(match of {
        Value::List(items) => Value::List(items[from..to].to_vec()),
        Value::Text(text) => {
            Value::Text(String::from_utf8_lossy(&text.as_bytes()[from..to]).into_owned())
        }
        _ => Value::Nil,
    })
}

/// Numbers with names are numbers here.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) | Value::Named(number, _) => Some(*number),
        _ => None,
    }
}

fn equal(left: &Value, right: &Value) -> Result<bool, String> {
    match (left, right) {
        (Value::Nil, _) | (_, Value::Nil) => Ok(left == right),
        (Value::List(_) | Value::Map(_), _) | (_, Value::List(_) | Value::Map(_)) => {
            Err("lists and maps cannot be compared".into())
        }
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => Ok(left == right),
            _ if left.type_name() == right.type_name() => Ok(left == right),
            _ => Err(incomparable(left, right)),
        },
    }
}

fn order(left: &Value, right: &Value) -> Result<Ordering, String> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Ok(left.cmp(right)),
        (Value::Float(left), Value::Float(right)) => left
            .partial_cmp(right)
            .ok_or_else(|| "NaN has no order".into()),
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => Ok(left.cmp(&right)),
            _ => Err(incomparable(left, right)),
        },
    }
}

fn incomparable(left: &Value, right: &Value) -> String {
    let (left, right) = (left.type_name(), right.type_name());
    format!("a {left} and a {right} cannot be compared")
}

fn replace(text: &str, other: fn(char) -> Option<String>) -> String {
    let mut replaced = String::new();
    for c in text.chars() {
        match other(c) {
            Some(text) => replaced += &text,
            None => replaced.push(c),
        }
    }
    replaced
}

fn html(c: char) -> Option<String> {
    let text = match c {
        '"' => "&#34;",
        '\'' => "&#39;",
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '\0' => "\u{fffd}",
        _ => return None,
    };
    Some(text.into())
}

fn js(c: char) -> Option<String> {
    match c {
        '\\' | '\'' | '"' => Some(format!("\\{c}")),
        '<' | '>' | '&' | '=' | '\0'..=' ' if c != ' ' => Some(format!("\\u{:04X}", u32::from(c))),
        _ => None,
    }
}

fn urlquery(text: &str) -> String {
    let mut query = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                query.push(byte.into());
            }
            b' ' => query.push('+'),
            byte => query += &format!("%{byte:02X}"),
        }
    }
    query
}
