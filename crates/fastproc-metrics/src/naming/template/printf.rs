//! Go's `printf`.

use super::value::{Value, float};

/// What stands between `%` and the verb.
#[derive(Clone, Copy, Default)]
struct Flags {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// Widths beyond this are as wide: a name of a group needs no more.
const WIDEST: usize = 1000;

pub(super) fn printf(format: &str, arguments: &[Value]) -> String {
    let mut text = String::new();
    let mut next = arguments.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut flags = Flags::default();
        while let Some(flag) = chars.next_if(|c| "+-# 0".contains(*c)) {
            match flag {
                '+' => flags.plus = true,
                '-' => flags.minus = true,
                '#' => flags.sharp = true,
                ' ' => flags.space = true,
                _ => flags.zero = true,
            }
        }
        let mut number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            if chars.next_if_eq(&'*').is_some() {
                return match next.next() {
                    Some(Value::Int(number)) => Some(*number),
                    _ => None,
                };
            }
            let mut number = None;
            while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                chars.next();
                number = Some((number.unwrap_or(0) * 10 + i64::from(digit)).min(WIDEST as i64));
            }
            number
        };
        if let Some(width) = number(&mut chars) {
            // A negative one, which only `*` can have, is to the left.
            if width < 0 {
                flags.minus = true;
                flags.zero = false;
            }
            flags.width = Some(width.unsigned_abs().min(WIDEST as u64) as usize);
        }
        if chars.next_if_eq(&'.').is_some() {
            // A negative one counts as none.
            let precision = usize::try_from(number(&mut chars).unwrap_or(0)).ok();
            flags.precision = precision.map(|precision| precision.min(WIDEST));
        }
        text += &match chars.next() {
            None => "%!(NOVERB)".into(),
            Some('%') => "%".into(),
            Some(verb) => match next.next() {
                Some(value) => pad(&one(verb, value, flags), verb, value, flags),
                None => format!("%!{verb}(MISSING)"),
            },
        };
    }
    let rest: Vec<String> = next
        .map(|value| format!("{}={}", value.type_name(), value.shown()))
        .collect();
    if !rest.is_empty() {
        text += &format!("%!(EXTRA {})", rest.join(", "));
    }
    text
}

fn one(verb: char, value: &Value, flags: Flags) -> String {
    match (verb, value) {
        ('T', value) => value.type_name().into(),
        ('v', Value::Text(text)) if flags.sharp => quote(text),
        ('v', value) if !matches!(value, Value::Int(_) | Value::Float(_)) => value.shown(),
        ('t', Value::Bool(value)) => value.to_string(),
        (_, Value::Int(number)) | ('d' | 'x' | 'X' | 'o' | 'b', Value::Named(number, _)) => {
            integer(verb, *number, flags)
        }
        (_, Value::Float(number)) => floating(verb, *number, flags),
        ('s', Value::Time(_) | Value::Named(..) | Value::Map(_)) => value.shown(),
        ('s' | 'q' | 'x' | 'X', Value::Text(text)) => string(verb, text, flags),
        ('s' | 'q' | 'x' | 'X', Value::List(items)) => {
            let items: Vec<String> = items.iter().map(|item| string(verb, item, flags)).collect();
            format!("[{}]", items.join(" "))
        }
        (_, Value::Nil) => format!("%!{verb}(<nil>)"),
        (_, value) => wrong(verb, value),
    }
}

fn wrong(verb: char, value: &Value) -> String {
    format!("%!{verb}({}={})", value.type_name(), value.shown())
}

fn string(verb: char, text: &str, flags: Flags) -> String {
    let cut: String = match flags.precision {
        Some(most) => text.chars().take(most).collect(),
        None => text.into(),
    };
    let hexadecimal = |upper: bool| {
        let bytes = cut.bytes().map(|byte| {
            if upper {
                format!("{byte:02X}")
            } else {
                format!("{byte:02x}")
            }
        });
        bytes.collect()
    };
    match verb {
        'q' => quote(&cut),
        'x' => hexadecimal(false),
        'X' => hexadecimal(true),
        _ => cut,
    }
}

/// As Go writes a string in its own language.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        quoted += &match c {
            '"' => "\\\"".into(),
            '\\' => "\\\\".into(),
            '\x07' => "\\a".into(),
            '\x08' => "\\b".into(),
            '\x0c' => "\\f".into(),
            '\n' => "\\n".into(),
            '\r' => "\\r".into(),
            '\t' => "\\t".into(),
            '\x0b' => "\\v".into(),
            c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.into(),
        };
    }
    quoted + "\""
}

fn integer(verb: char, number: i64, flags: Flags) -> String {
    let magnitude = number.unsigned_abs();
    let (prefix, digits) = match verb {
        'd' | 'v' => ("", magnitude.to_string()),
        'x' => ("0x", format!("{magnitude:x}")),
        'X' => ("0X", format!("{magnitude:X}")),
        'o' => ("0", format!("{magnitude:o}")),
        'O' => ("0o", format!("{magnitude:o}")),
        'b' => ("0b", format!("{magnitude:b}")),
        'c' | 'q' | 'U' => {
            let c = u32::try_from(number).ok().and_then(char::from_u32);
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            return match verb {
                'c' => c.into(),
                'q' => format!("'{c}'"),
                _ => format!("U+{number:04X}"),
            };
        }
        _ => return wrong(verb, &Value::Int(number)),
    };
    let sign = match (number < 0, flags.plus, flags.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    let prefix = if flags.sharp || verb == 'O' {
        prefix
    } else {
        ""
    };
    let mut least = flags.precision.unwrap_or(1);
    if flags.zero && !flags.minus && flags.precision.is_none() {
        least = flags
            .width
            .unwrap_or(0)
            .saturating_sub(sign.len() + prefix.len());
    }
    format!("{sign}{prefix}{digits:0>least$}")
}

fn floating(verb: char, number: f64, flags: Flags) -> String {
    let precision = flags.precision.unwrap_or(6);
    let text = match verb {
        'f' | 'F' => format!("{number:.precision$}"),
        'e' | 'E' => {
            let text = format!("{number:.precision$e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}{}{sign}{:02}", verb, exponent.abs())
        }
        'g' | 'G' | 'v' => float(number),
        _ => return wrong(verb, &Value::Float(number)),
    };
    if number < 0.0 || !flags.plus {
        text
    } else {
        format!("+{text}")
    }
}

/// To the width that was asked for, in characters.
fn pad(text: &str, verb: char, value: &Value, flags: Flags) -> String {
    let missing = flags
        .width
        .unwrap_or(0)
        .saturating_sub(text.chars().count());
    if missing == 0 {
        return text.into();
    }
    if flags.minus {
        return format!("{text}{}", " ".repeat(missing));
    }
    if flags.zero && verb != 'T' && !matches!(value, Value::Nil) {
        let (sign, digits) = match value {
            Value::Int(_) | Value::Float(_) => {
                text.split_at(usize::from(text.starts_with(['+', '-'])))
            }
            _ => ("", text),
        };
        return format!("{sign}{}{digits}", "0".repeat(missing));
    }
    format!("{}{text}", " ".repeat(missing))
}
