//! Times: `1.5s`, `1h30m`, `01:30:00`, `2-03:04:05`.

use super::decimal::{Decimal, LiteralError, decimal};
use crate::value::Unit;

const SECOND: u64 = 1_000_000_000;
const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("min", 60 * SECOND),
    ("h", 3600 * SECOND),
    ("d", 24 * 3600 * SECOND),
];

/// Parses a time into nanoseconds. `bare`: a number without a unit is in nanoseconds; otherwise in seconds.
pub fn parse(text: &str, bare: bool) -> Result<Decimal, LiteralError> {
    if text.contains(':') {
        return clock(text);
    }
    let mut sum = Decimal {
        digits: 0,
        decimals: 0,
    };
    let mut rest = text;
    loop {
        let (number, after) = decimal(rest)?;
        let end = after.find(|c: char| c.is_ascii_digit());
        let (unit, next) = after.split_at(end.unwrap_or(after.len()));
        let is_alone = rest.len() == text.len() && unit.is_empty();
        let multiplier = match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, multiplier)) => *multiplier,
            None if is_alone => {
                if bare {
                    1
                } else {
                    SECOND
                }
            }
            None => return Err(LiteralError::Unit(Unit::Time)),
        };
        sum = sum.plus(number.times(multiplier)?)?;
        if next.is_empty() {
            return Ok(sum);
        }
        rest = next;
    }
}

/// `[days-][hours:]minutes:seconds`, as tables and ps(1) show a time.
fn clock(text: &str) -> Result<Decimal, LiteralError> {
    let wrong = LiteralError::Unit(Unit::Time);
    let (days, clock) = text
        .split_once('-')
        .map_or((None, text), |(days, clock)| (Some(days), clock));
    let parts: Vec<&str> = clock.split(':').collect();
    let units = ["d", "h", "m", "s"];
    let names = &units[units.len().checked_sub(parts.len()).ok_or(wrong)?..];
    if parts.len() > 3 || days.is_some() && parts.len() < 3 {
        return Err(wrong);
    }
    let mut all = String::new();
    for (part, name) in days
        .iter()
        .zip(["d"])
        .chain(parts.iter().zip(names.iter().copied()))
    {
        if part.is_empty()
            || part.contains(|c: char| !c.is_ascii_digit() && (c != '.' || name != "s"))
        {
            return Err(wrong);
        }
        all += part;
        all += name;
    }
    parse(&all, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanoseconds(text: &str) -> Option<f64> {
        let number = parse(text, false).ok()?;
        Some(number.digits as f64 / 10_f64.powi(number.decimals as i32))
    }

    #[test]
    fn times_are_written_in_many_ways() {
        for (text, seconds) in [
            ("0", 0.0),
            ("5", 5.0),
            ("1.5", 1.5),
            ("1.5s", 1.5),
            ("2min", 120.0),
            ("250ms", 0.25),
            ("1h30m", 5400.0),
            ("1d2h3m4.5s", 93_784.5),
            ("1.5h10s", 5410.0),
            ("01:30:00", 5400.0),
            ("1:25:28", 5128.0),
            ("0:49.69", 49.69),
            ("90:00", 5400.0),
            ("1-01:01:01", 90_061.0),
        ] {
            let shown = nanoseconds(text).expect(text);
            assert!((shown / 1e9 - seconds).abs() < 1e-6, "{text}: {shown}");
        }
        assert_eq!(parse("1500", true).map(|number| number.digits), Ok(1500));
    }

    #[test]
    fn malformed_times_are_refused() {
        for text in [
            "", "s", "1h30", "1x", "1h 30m", ":", "1:", ":1", "1:2:3:4", "1-1:1", "a:b", "1.5:00",
            "1:-1", "--1:1:1",
        ] {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
    }
}
