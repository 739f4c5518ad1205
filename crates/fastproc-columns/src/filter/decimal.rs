//! Exact decimal numbers.

use std::cmp::Ordering;

use crate::value::Unit;

/// The largest number of decimals with which every 64-bit value can be compared exactly.
const MOST_DECIMALS: usize = 18;

/// `digits / 10^decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// All digits.
    pub digits: i128,
    /// How many of the digits are behind the point.
    pub decimals: u32,
}

impl Decimal {
    /// Compares a number with this one.
    pub fn order(self, number: i128) -> Ordering {
        // 2^64 times 10^18 is below 2^127.
        (number * 10_i128.pow(self.decimals)).cmp(&self.digits)
    }

    /// The nearest real number.
    pub fn real(self) -> f64 {
        self.digits as f64 / 10_f64.powi(self.decimals as i32)
    }

    /// Whether `number`, rounded to this many decimals, is this one.
    pub fn rounds(self, number: f64) -> bool {
        (number * 10_f64.powi(self.decimals as i32)).round() as i128 == self.digits
    }

    /// Multiplies by a unit.
    pub fn times(self, multiplier: u64) -> Result<Self, LiteralError> {
        let digits = self.digits.checked_mul(multiplier.into());
        let digits = digits.ok_or(LiteralError::TooLarge)?;
        Ok(Self { digits, ..self })
    }

    /// The sum, with the decimals of the more precise number.
    pub fn plus(self, other: Self) -> Result<Self, LiteralError> {
        let decimals = self.decimals.max(other.decimals);
        let scaled = |number: Self| {
            number
                .digits
                .checked_mul(10_i128.pow(decimals - number.decimals))
        };
        let sum = scaled(self)
            .zip(scaled(other))
            .and_then(|(a, b)| a.checked_add(b));
        let digits = sum.ok_or(LiteralError::TooLarge)?;
        Ok(Self { digits, decimals })
    }
}

/// The digits at the start of a text, with or without a point, and the rest of the text.
pub fn decimal(text: &str) -> Result<(Decimal, &str), LiteralError> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(LiteralError::NotANumber);
    }
    if fraction.len() > MOST_DECIMALS {
        return Err(LiteralError::TooLarge);
    }
    let digits = [whole, fraction].concat().parse();
    let number = Decimal {
        digits: digits.map_err(|_| LiteralError::TooLarge)?,
        decimals: fraction.len() as u32,
    };
    Ok((number, suffix))
}

/// Why a literal is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiteralError {
    /// It lacks digits where a number needs them.
    #[error("this is not a number")]
    NotANumber,
    /// It has more digits than any value.
    #[error("this number is too large or too precise")]
    TooLarge,
    /// It is not in the form of values of this unit.
    #[error("{}", units(*.0))]
    Unit(Unit),
}

const fn units(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => {
            "a time is a number of seconds, or has units: ns, us, ms, s, m, h or d, as in 1h30m; or it is h:m:s, as in 01:30:00"
        }
        Unit::Bytes | Unit::BytesPerSecond => {
            "the units of a size are K, M, G, T and P, of 1024 each, as in 100M"
        }
        Unit::Percent => "the only unit of a percentage is %",
        Unit::Set => "this is not a set: hexadecimal digits, 16 at most, as in 0000000000004002",
        Unit::Octal => "this is not a mask: octal digits, as in 0022",
        Unit::Date | Unit::Start => {
            "this is not a date: a day, a time of day, or both, as in 2026-03-01, 09:30 or '2026-03-01 09:30:00'"
        }
        Unit::Policy => "this is not a policy: TS, FF, RR, B, ISO, IDL, DLN, EXT, or its number",
        _ => "this number has no unit",
    }
}
