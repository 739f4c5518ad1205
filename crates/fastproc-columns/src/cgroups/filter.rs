//! `--filter` of cgroups: which rows to show.

use std::str::FromStr;

use regex::bytes::Regex;

use super::{Column, Invalid, Row, find};
use crate::{
    duration::parse_duration,
    filter::reason,
    value::{Unit, Value},
};

/// Comparisons that must all be true.
#[derive(Clone, Debug)]
pub struct Filter(Vec<Comparison>);

#[derive(Clone, Debug)]
struct Comparison {
    column: &'static Column,
    operator: Operator,
    value: Operand,
}

#[derive(Clone, Debug)]
enum Operand {
    Number(f64),
    Text(Vec<u8>),
    Pattern(Regex),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    AtLeast,
    AtMost,
    Equal,
    Differs,
    Contains,
    Matches,
    MatchesNot,
    Less,
    More,
}

/// Longer operators come first.
const OPERATORS: [(&str, Operator); 9] = [
    ("=~", Operator::Matches),
    ("!~", Operator::MatchesNot),
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("==", Operator::Equal),
    ("!=", Operator::Differs),
    ("~", Operator::Contains),
    ("<", Operator::Less),
    (">", Operator::More),
];

impl FromStr for Filter {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.split("&&")
            .map(Comparison::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl Filter {
    /// The columns that the filter compares.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> {
        self.0.iter().map(|comparison| comparison.column)
    }

    /// Whether the filter shows this row.
    pub fn admits(&self, row: &Row<'_>) -> bool {
        self.0.iter().all(|comparison| comparison.is_true(row))
    }
}

impl Comparison {
    fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let places = OPERATORS
            .iter()
            .filter_map(|(word, operator)| Some((text.find(word)?, word, *operator)));
        let Some((at, word, operator)) = places.min_by_key(|(at, word, _)| (*at, 2 - word.len()))
        else {
            return Err(Invalid(format!(
                "{text:?} is no comparison; write one as in: memory > 100M"
            )));
        };
        let column = find(text[..at].trim())?;
        let operand = text[at + word.len()..].trim().trim_matches(['\'', '"']);
        let matches = matches!(operator, Operator::Matches | Operator::MatchesNot);
        let value = match column.unit {
            Unit::Text if matches => Operand::Pattern(Regex::new(operand).map_err(|error| {
                Invalid(format!(
                    "the regular expression {operand:?} is invalid: {}",
                    reason(&error)
                ))
            })?),
            Unit::Text => Operand::Text(operand.into()),
            Unit::Truth => match operand {
                "true" => Operand::Number(1.0),
                "false" => Operand::Number(0.0),
                _ => return Err(Invalid(format!("{} is true or false", column.name))),
            },
            _ if matches || operator == Operator::Contains => {
                return Err(Invalid(format!("{} is no text", column.name)));
            }
            unit => Operand::Number(number(operand, unit)?),
        };
        Ok(Self {
            column,
            operator,
            value,
        })
    }

    fn is_true(&self, row: &Row<'_>) -> bool {
        let value = self.column.value(row);
        let order = match (&self.value, value) {
            (Operand::Number(wanted), value) => {
                value.number().and_then(|number| number.partial_cmp(wanted))
            }
            (Operand::Text(wanted), Value::Text(text)) => {
                if self.operator == Operator::Contains {
                    return wanted.is_empty()
                        || text.windows(wanted.len()).any(|part| part == wanted);
                }
                Some(text.cmp(wanted.as_slice()))
            }
            (Operand::Pattern(pattern), Value::Text(text)) => {
                return pattern.is_match(text) == (self.operator == Operator::Matches);
            }
            // A comparison with an unknown value is not true.
            _ => None,
        };
        order.is_some_and(|order| match self.operator {
            Operator::AtLeast => order.is_ge(),
            Operator::AtMost => order.is_le(),
            Operator::Equal => order.is_eq(),
            Operator::Differs => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::More => order.is_gt(),
            Operator::Contains | Operator::Matches | Operator::MatchesNot => false,
        })
    }
}

/// Parses a number in the unit of the column: sizes may end in K, M, G, T or P, times are durations.
fn number(text: &str, unit: Unit) -> Result<f64, Invalid> {
    if unit == Unit::Time {
        let duration = parse_duration(text).map_err(|error| Invalid(error.to_string()))?;
        return Ok(duration.as_nanos() as f64);
    }
    let factor = text
        .chars()
        .next_back()
        .and_then(|last| "KMGTP".find(last.to_ascii_uppercase()));
    let (digits, factor) = match factor {
        Some(power) => (&text[..text.len() - 1], 1024_f64.powi(power as i32 + 1)),
        None => (text, 1.0),
    };
    let number = digits
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite());
    number
        .map(|number| number * factor)
        .ok_or_else(|| Invalid(format!("{text:?} is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood_or_refused_with_a_reason() {
        let one = |text: &str| {
            text.parse::<Filter>().map(|filter| {
                let last = filter.0.last().expect("one at least");
                let value = match &last.value {
                    Operand::Number(number) => number.to_string(),
                    Operand::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    Operand::Pattern(pattern) => pattern.to_string(),
                };
                (last.column.name, last.operator, value)
            })
        };
        for (text, column, operator, value) in [
            ("memory>=1.5K", "memory", Operator::AtLeast, "1536"),
            ("cpu > 5 && path ~ kube", "path", Operator::Contains, "kube"),
            ("path=~'^/a$'", "path", Operator::Matches, "^/a$"),
            ("path !~ a", "path", Operator::MatchesNot, "a"),
            ("path == a=~b", "path", Operator::Equal, "a=~b"),
            ("cpu_time < 2m", "cpu_time", Operator::Less, "120000000000"),
            ("frozen == true", "frozen", Operator::Equal, "1"),
        ] {
            assert_eq!(one(text), Ok((column, operator, value.into())), "{text}");
        }
        for wrong in [
            "",
            "memory",
            "memory > ",
            "memory > x",
            "nothing > 1",
            "memory ~ 1",
            "memory =~ 1",
            "path =~ (",
            "frozen == 2",
            "cpu > 1 &&",
        ] {
            assert!(one(wrong).is_err(), "{wrong:?}");
        }
    }
}
