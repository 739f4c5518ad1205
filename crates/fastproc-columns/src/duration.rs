//! Durations as people write them on a command line: `2`, `0.5`, `500ms`, `2s`, `1h30m`.

use std::{ops::RangeInclusive, time::Duration};

use crate::filter::{LiteralError, time};

/// The intervals that a command takes.
const INTERVALS: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(10_000_000);

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// The text is neither a number nor a number with a unit.
    #[error(
        "give a number of seconds, as in 2 or 0.5, or a number with a unit (ns, us, ms, s, m, h, d), as in 500ms"
    )]
    Malformed,
    /// The duration is longer than 64 bits of nanoseconds can say.
    #[error("the duration is too long; give at most 18446744073 seconds")]
    TooLong,
    /// The duration is shorter or longer than an interval can be.
    #[error("give an interval of at least 0.01 seconds (10ms) and at most 10000000 seconds")]
    OutOfRange,
}

/// Parses a duration: a number of seconds, or numbers with units.
///
/// # Errors
/// If the text is negative or malformed.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let duration = if let Ok(seconds) = text.parse::<f64>() {
        if seconds.is_nan() || seconds < 0.0 {
            return Err(DurationError::Malformed);
        }
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    } else {
        let ns = time::parse(text, false).map_err(|error| match error {
            LiteralError::TooLarge => DurationError::TooLong,
            _ => DurationError::Malformed,
        })?;
        let ns = ns.digits / 10_i128.pow(ns.decimals);
        u64::try_from(ns).map_or(Duration::MAX, Duration::from_nanos)
    };
    let fits = duration <= Duration::from_nanos(u64::MAX);
    fits.then_some(duration).ok_or(DurationError::TooLong)
}

/// Parses the duration between two snapshots.
///
/// # Errors
/// If the text is not a duration, or the duration is out of range.
pub fn parse_interval(text: &str) -> Result<Duration, DurationError> {
    match parse_duration(text) {
        Ok(interval) if is_interval(interval) => Ok(interval),
        Ok(_) | Err(DurationError::TooLong) => Err(DurationError::OutOfRange),
        Err(error) => Err(error),
    }
}

/// Whether a duration can be the interval between two snapshots.
#[must_use]
pub fn is_interval(duration: Duration) -> bool {
    INTERVALS.contains(&duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_of_seconds_or_has_units() {
        for (text, milliseconds) in [
            ("0", 0),
            ("2", 2000),
            ("0.5", 500),
            ("1e1", 10_000),
            ("500ms", 500),
            ("2s", 2000),
            ("1.5s", 1500),
            ("1h30m", 5_400_000),
            ("1m", 60_000),
            ("250000us", 250),
            ("250000µs", 250),
        ] {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!(parse_duration(text), Ok(duration), "{text}");
        }
        for wrong in ["", "-1", "nan", "x", "5x", "-1s", "1 s", "-1e300"] {
            let error = parse_duration(wrong);
            assert_eq!(error, Err(DurationError::Malformed), "{wrong}");
        }
        for long in ["inf", "1e300", "1e11", "99999999999999999999d", "300000d"] {
            let error = parse_duration(long);
            assert_eq!(error, Err(DurationError::TooLong), "{long}");
        }
    }

    #[test]
    fn an_interval_has_a_least_and_a_most() {
        assert_eq!(parse_interval("10ms"), Ok(Duration::from_millis(10)));
        for wrong in ["0", "9ms", "0.001", "200d", "1e300"] {
            let error = parse_interval(wrong);
            assert_eq!(error, Err(DurationError::OutOfRange), "{wrong}");
        }
    }
}
