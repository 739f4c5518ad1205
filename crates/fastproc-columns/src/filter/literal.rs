//! Literals: the values that a filter compares fields with.

use std::cmp::Ordering;

use super::{
    date,
    decimal::{Decimal, LiteralError, decimal},
    time,
};
use crate::{
    field::{Field, Subject},
    value::{POLICIES, Unit, Value},
};

/// A value in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    meaning: Meaning,
    /// Its form in a table.
    shown: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A number in the unit of the field.
    Number(Decimal),
    /// First and last second of the date, in seconds of the calendar.
    Dates(i64, i64),
    /// True or false.
    Truth(bool),
    /// Bytes.
    Text(Vec<u8>),
}

impl Literal {
    /// A text to compare with.
    pub fn text(bytes: Vec<u8>) -> Self {
        let mut shown = Vec::new();
        crate::escape::escape(&bytes, &mut shown);
        let meaning = Meaning::Text(bytes);
        Self { meaning, shown }
    }

    /// True or false.
    pub const fn truth(truth: bool) -> Self {
        Self {
            meaning: Meaning::Truth(truth),
            shown: Vec::new(),
        }
    }

    /// Parses a literal for a field of this unit. `bare`: a number without a unit is in the unit of csv and JSON.
    pub fn parse(text: &str, unit: Unit, bare: bool) -> Result<Self, LiteralError> {
        let meaning = match unit {
            Unit::Date | Unit::Start => {
                let (first, last) = date::parse(text).ok_or(LiteralError::Unit(unit))?;
                Meaning::Dates(first, last)
            }
            _ => Meaning::Number(number(text, unit, bare)?),
        };
        Ok(Self {
            meaning,
            shown: text.into(),
        })
    }

    /// Whether this is a text that begins with a cut command line, so that the missing end decides how they compare.
    pub fn may_begin_with(&self, value: &Value<'_>, scratch: &mut Vec<u8>) -> bool {
        let Meaning::Text(text) = &self.meaning else {
            return false;
        };
        value.is_cut()
            && value
                .text(scratch)
                .is_some_and(|start| text.starts_with(start))
    }

    /// Compares a value with the literal. `None` if the value is unknown.
    pub fn compare(&self, value: &Value<'_>, scratch: &mut Vec<u8>) -> Option<Ordering> {
        match (&self.meaning, *value) {
            (Meaning::Number(literal), Value::Unsigned(number)) => {
                Some(literal.order(number.into()))
            }
            (Meaning::Number(literal), Value::Signed(number)) => Some(literal.order(number.into())),
            (Meaning::Number(literal), Value::Real(number)) => number.partial_cmp(&literal.real()),
            (&Meaning::Dates(first, last), Value::Signed(seconds)) => Some(if seconds < first {
                Ordering::Less
            } else if seconds > last {
                Ordering::Greater
            } else {
                Ordering::Equal
            }),
            (Meaning::Truth(truth), _) => Some(value.truth()?.cmp(truth)),
            (Meaning::Text(text), _) => Some(value.text(scratch)?.cmp(text)),
            _ => None,
        }
    }

    /// Whether the value equals this literal, or is shown like it: rounded to its decimals, or in the form of a table; or
    /// `if_cut`, if the missing end of a command line decides that.
    pub fn equals<S: Subject>(
        &self,
        field: &Field<S>,
        (row, lookup): (&S::Row<'_>, &mut S::Lookup),
        if_cut: bool,
        scratch: &mut Vec<u8>,
    ) -> Option<bool> {
        let value = field.value(row, lookup);
        if self.may_begin_with(&value, scratch) {
            return Some(if_cut);
        }
        if self.compare(&value, scratch)?.is_eq() {
            return Some(true);
        }
        if let (Meaning::Text(text), Value::Numbers(numbers)) = (&self.meaning, value)
            && has(numbers, text)
        {
            return Some(true);
        }
        if let (Meaning::Number(literal), Value::Real(number)) = (&self.meaning, value)
            && literal.rounds(number)
        {
            return Some(true);
        }
        scratch.clear();
        field.write_for_table(row, lookup, scratch);
        Some(!self.shown.is_empty() && *scratch == self.shown)
    }
}

/// Whether one of these numbers is this text.
fn has(numbers: &[u32], text: &[u8]) -> bool {
    let number = std::str::from_utf8(text).ok();
    let number = number.and_then(|text| text.parse().ok());
    number.is_some_and(|number| numbers.contains(&number))
}

fn number(text: &str, unit: Unit, bare: bool) -> Result<Decimal, LiteralError> {
    let (negative, unsigned) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    let whole = |digits: u64| Decimal {
        digits: digits.into(),
        decimals: 0,
    };
    let of_radix = |digits: &str, radix| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let number = u64::from_str_radix(digits, radix).ok().filter(|_| plain);
        number.map(whole).ok_or(LiteralError::NotANumber)
    };
    let mut number = match (unit, unsigned.strip_prefix("0x")) {
        (_, Some(digits)) => of_radix(digits, 16)?,
        (Unit::Set, None) => of_radix(unsigned, 16).map_err(|_| LiteralError::Unit(unit))?,
        (Unit::Octal, None) => of_radix(unsigned, 8).map_err(|_| LiteralError::Unit(unit))?,
        (Unit::Time, None) => time::parse(unsigned, bare)?,
        (Unit::Bytes, None) if unsigned == "unlimited" => whole(u64::MAX),
        (Unit::Policy, None) => match POLICIES
            .iter()
            .position(|name| name.eq_ignore_ascii_case(unsigned))
        {
            Some(policy) => whole(policy as u64),
            None => of_radix(unsigned, 10).map_err(|_| LiteralError::Unit(unit))?,
        },
        (_, None) => {
            let (number, suffix) = decimal(unsigned)?;
            // Zero needs no unit.
            let multiplier = multiplier(suffix, unit).ok_or(LiteralError::Unit(unit))?;
            number.times(multiplier)?
        }
    };
    if negative {
        number.digits = -number.digits;
    }
    Ok(number)
}

fn multiplier(suffix: &str, unit: Unit) -> Option<u64> {
    match unit {
        Unit::Bytes | Unit::BytesPerSecond => {
            let suffix = if unit == Unit::BytesPerSecond {
                suffix.strip_suffix("/s").unwrap_or(suffix)
            } else {
                suffix
            };
            let prefix = suffix
                .strip_suffix("iB")
                .or(suffix.strip_suffix('B'))
                .unwrap_or(suffix);
            if prefix.is_empty() {
                return (suffix != "iB").then_some(1);
            }
            let power = ["K", "M", "G", "T", "P", "E"]
                .iter()
                .position(|known| prefix.eq_ignore_ascii_case(known))?;
            Some(1 << (10 * (power + 1)))
        }
        Unit::Percent => matches!(suffix, "" | "%").then_some(1),
        Unit::PerSecond => matches!(suffix, "" | "/s").then_some(1),
        _ => suffix.is_empty().then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str, unit: Unit) -> Result<(i128, u32), LiteralError> {
        number(text, unit, false).map(|number| (number.digits, number.decimals))
    }

    #[test]
    fn values_are_written_as_their_columns_have_them() {
        for (text, unit, digits, decimals) in [
            ("100M", Unit::Bytes, 100 << 20, 0),
            ("1.5k", Unit::Bytes, 15 << 10, 1),
            ("7B", Unit::Bytes, 7, 0),
            ("unlimited", Unit::Bytes, u64::MAX.into(), 0),
            ("2MiB/s", Unit::BytesPerSecond, 2 << 20, 0),
            ("12.5%", Unit::Percent, 125, 1),
            ("-20", Unit::Number, -20, 0),
            ("0xffffffffffffffff", Unit::Set, u64::MAX.into(), 0),
            ("000001ffffffffff", Unit::Set, 0x1ff_ffff_ffff, 0),
            ("10", Unit::Set, 16, 0),
            ("0022", Unit::Octal, 0o22, 0),
            ("0x12", Unit::Octal, 0o22, 0),
            ("0x14002", Unit::Flags, 0x14002, 0),
            ("14002", Unit::Flags, 14002, 0),
            ("FF", Unit::Policy, 1, 0),
            ("idl", Unit::Policy, 5, 0),
            ("1", Unit::Policy, 1, 0),
        ] {
            assert_eq!(parsed(text, unit), Ok((digits, decimals)), "{text}");
        }
    }

    #[test]
    fn wrong_numbers_are_refused() {
        for (text, unit, error) in [
            ("", Unit::Number, LiteralError::NotANumber),
            ("-", Unit::Number, LiteralError::NotANumber),
            ("1.", Unit::Number, LiteralError::NotANumber),
            (".5", Unit::Number, LiteralError::NotANumber),
            ("1.2.3", Unit::Number, LiteralError::NotANumber),
            ("0x", Unit::Number, LiteralError::NotANumber),
            ("0x+1", Unit::Number, LiteralError::NotANumber),
            ("5M", Unit::Number, LiteralError::Unit(Unit::Number)),
            ("5iB", Unit::Bytes, LiteralError::Unit(Unit::Bytes)),
            ("5X", Unit::Bytes, LiteralError::Unit(Unit::Bytes)),
            ("19", Unit::Octal, LiteralError::Unit(Unit::Octal)),
            ("+7", Unit::Octal, LiteralError::Unit(Unit::Octal)),
            ("g0", Unit::Set, LiteralError::Unit(Unit::Set)),
            (
                "10000000000000000",
                Unit::Set,
                LiteralError::Unit(Unit::Set),
            ),
            ("XX", Unit::Policy, LiteralError::Unit(Unit::Policy)),
            (
                "1.0000000000000000001",
                Unit::Percent,
                LiteralError::TooLarge,
            ),
            (
                "9999999999999999999999999999999999999P",
                Unit::Bytes,
                LiteralError::TooLarge,
            ),
        ] {
            assert_eq!(parsed(text, unit), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn comparisons_are_exact(number in any::<u64>(), other in any::<u64>(), decimals in 0..=18_usize) {
            let text = format!("{other}.{}", "0".repeat(decimals));
            let literal = Literal::parse(text.trim_end_matches('.'), Unit::Number, false);
            let literal = literal.expect("a number");
            prop_assert_eq!(literal.compare(&Value::Unsigned(number), &mut Vec::new()), Some(number.cmp(&other)));
        }

        #[test]
        fn no_text_is_a_panic(text in "-?[0-9.xXa-fKMGTPBis/%:dhm -]{0,45}", unit in prop::sample::select(vec![
            Unit::Number, Unit::Bytes, Unit::Time, Unit::Percent, Unit::BytesPerSecond, Unit::Set, Unit::Octal, Unit::Date, Unit::Start, Unit::Policy,
        ])) {
            if let Ok(literal) = Literal::parse(&text, unit, false) {
                literal.compare(&Value::Unsigned(u64::MAX), &mut Vec::new());
                literal.compare(&Value::Signed(i64::MIN), &mut Vec::new());
                literal.compare(&Value::Real(f64::MAX), &mut Vec::new());
            }
        }
    }
}
