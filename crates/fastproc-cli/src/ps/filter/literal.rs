//! What a field is compared with.

use std::cmp::Ordering;

use crate::ps::value::{Unit, Value};

/// A value that was written in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// `digits / 10^decimals`, in the unit of the field.
    Number {
        /// All digits.
        digits: i128,
        /// How many of them are behind the point.
        decimals: u32,
    },
    /// Yes or no.
    Truth(bool),
    /// Bytes.
    Text(Vec<u8>),
}

/// What is wrong with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// It has no digits where they belong.
    #[error("this is not a number")]
    NotANumber,
    /// It has more digits than any value.
    #[error("this number is too large or too precise")]
    TooLarge,
    /// It has a unit that the field does not have.
    #[error("{}", units(*.0))]
    Unit(Unit),
}

const fn units(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "a time has a unit: ns, us, ms, s, m, h or d, as in 1.5s",
        Unit::Bytes | Unit::BytesPerSecond => {
            "the units of a size are K, M, G, T and P, of 1024 each, as in 100M"
        }
        Unit::Percent => "the only unit of a percentage is %",
        _ => "this number has no unit",
    }
}

/// The largest number of decimals with which every 64-bit value can be compared exactly.
const MOST_DECIMALS: usize = 18;

impl Literal {
    /// Parses a number in the units of a field.
    pub fn number(text: &str, unit: Unit) -> Result<Self, NumberError> {
        let (negative, unsigned) = text
            .strip_prefix('-')
            .map_or((false, text), |rest| (true, rest));
        let (digits, decimals) = match unsigned.strip_prefix("0x") {
            Some(hexadecimal) => {
                let digits =
                    u64::from_str_radix(hexadecimal, 16).map_err(|_| NumberError::NotANumber)?;
                (digits.into(), 0)
            }
            None => decimal(unsigned, unit)?,
        };
        Ok(Self::Number {
            digits: if negative { -digits } else { digits },
            decimals,
        })
    }

    /// How this value stands to the literal. `None` if it is not known.
    pub fn compare(&self, value: &Value<'_>, scratch: &mut Vec<u8>) -> Option<Ordering> {
        match self {
            &Self::Number { digits, decimals } => {
                // 2^64 times 10^18 is below 2^127.
                let scaled = |number: i128| (number * 10_i128.pow(decimals)).cmp(&digits);
                match *value {
                    Value::Unsigned(number) => Some(scaled(number.into())),
                    Value::Signed(number) => Some(scaled(number.into())),
                    Value::Real(number) => {
                        number.partial_cmp(&(digits as f64 / 10_f64.powi(decimals as i32)))
                    }
                    _ => None,
                }
            }
            Self::Truth(truth) => Some(value.truth()?.cmp(truth)),
            Self::Text(text) => Some(value.text(scratch)?.cmp(text)),
        }
    }
}

/// Digits, perhaps with a point, and a unit. Returns the digits multiplied by the unit, and the decimals.
fn decimal(text: &str, unit: Unit) -> Result<(i128, u32), NumberError> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(NumberError::NotANumber);
    }
    if fraction.len() > MOST_DECIMALS {
        return Err(NumberError::TooLarge);
    }
    let digits = [whole, fraction]
        .concat()
        .parse::<i128>()
        .map_err(|_| NumberError::TooLarge)?;
    // Nothing is the same in every unit.
    let multiplier = match multiplier(suffix, unit) {
        None if suffix.is_empty() && digits == 0 => 1,
        multiplier => multiplier.ok_or(NumberError::Unit(unit))?,
    };
    let digits = digits
        .checked_mul(multiplier.into())
        .ok_or(NumberError::TooLarge)?;
    Ok((digits, fraction.len() as u32))
}

fn multiplier(suffix: &str, unit: Unit) -> Option<u64> {
    match unit {
        Unit::Time => Some(match suffix {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return None,
        }),
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
            let power = ["K", "M", "G", "T", "P"]
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

    #[test]
    fn units_are_multiplied() {
        for (text, unit, digits, decimals) in [
            ("100M", Unit::Bytes, 100 << 20, 0),
            ("1.5k", Unit::Bytes, 15 << 10, 1),
            ("7B", Unit::Bytes, 7, 0),
            ("2MiB/s", Unit::BytesPerSecond, 2 << 20, 0),
            ("1.5s", Unit::Time, 15_000_000_000, 1),
            ("0", Unit::Time, 0, 0),
            ("2min", Unit::Time, 120_000_000_000, 0),
            ("12.5%", Unit::Percent, 125, 1),
            ("-20", Unit::Number, -20, 0),
            ("0xffffffffffffffff", Unit::Set, u64::MAX.into(), 0),
        ] {
            assert_eq!(
                Literal::number(text, unit),
                Ok(Literal::Number { digits, decimals }),
                "{text}"
            );
        }
    }

    #[test]
    fn wrong_numbers_are_refused() {
        for (text, unit, error) in [
            ("", Unit::Number, NumberError::NotANumber),
            ("-", Unit::Number, NumberError::NotANumber),
            ("1.", Unit::Number, NumberError::NotANumber),
            (".5", Unit::Number, NumberError::NotANumber),
            ("1.2.3", Unit::Number, NumberError::NotANumber),
            ("0x", Unit::Number, NumberError::NotANumber),
            ("1.5", Unit::Time, NumberError::Unit(Unit::Time)),
            ("5M", Unit::Number, NumberError::Unit(Unit::Number)),
            ("5iB", Unit::Bytes, NumberError::Unit(Unit::Bytes)),
            ("5X", Unit::Bytes, NumberError::Unit(Unit::Bytes)),
            (
                "1.0000000000000000001",
                Unit::Percent,
                NumberError::TooLarge,
            ),
            (
                "9999999999999999999999999999999999999P",
                Unit::Bytes,
                NumberError::TooLarge,
            ),
        ] {
            assert_eq!(Literal::number(text, unit), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn comparisons_are_exact(number in any::<u64>(), other in any::<u64>(), decimals in 0..=18_usize) {
            let text = format!("{other}.{}", "0".repeat(decimals));
            let literal = Literal::number(text.trim_end_matches('.'), Unit::Number);
            let literal = literal.expect("a number");
            prop_assert_eq!(literal.compare(&Value::Unsigned(number), &mut Vec::new()), Some(number.cmp(&other)));
        }

        #[test]
        fn no_text_is_a_panic(text in "-?[0-9.xXa-fKMGTPBis/%]{0,45}", unit in prop::sample::select(vec![Unit::Number, Unit::Bytes, Unit::Time, Unit::Percent, Unit::BytesPerSecond])) {
            if let Ok(literal) = Literal::number(&text, unit) {
                literal.compare(&Value::Unsigned(u64::MAX), &mut Vec::new());
                literal.compare(&Value::Signed(i64::MIN), &mut Vec::new());
                literal.compare(&Value::Real(f64::MAX), &mut Vec::new());
            }
        }
    }
}
