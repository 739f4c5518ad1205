//! A point in time as people type it: `03:12`, `yesterday 03:12`, `2026-11-30T03:12:05Z`, `-10min`.

use fastproc::frozen;
use jiff::{
    SignedDuration, Timestamp, Zoned,
    civil::{Date, DateTime, Time},
    tz::{AmbiguousOffset, Offset, TimeZone},
};
use rustix::time::ClockId;

use crate::{duration::parse_duration, filter::date::time_of_day};

/// Why a text is no point in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstantError {
    /// It has none of the forms.
    #[error(
        "give a time of day, as in 03:12, 03:12:05 or 'yesterday 03:12', a day and a time, as in '2026-11-30 03:12' or \
         2026-11-30T03:12:05Z, or how long ago, as in -10min"
    )]
    Malformed,
    /// The reader's time zone is not known.
    #[error("TZ is '{}', which is no time zone; give another, or a time with its offset, as in 2026-11-30T03:12:05Z", .0.escape_debug())]
    Zone(String),
    /// Clocks were set back, and showed it twice.
    #[error("{date}, clocks were set back and showed {clock} twice: give {first} or {second}")]
    Twice {
        /// The day.
        date: Date,
        /// The time of day.
        clock: Time,
        /// The first one, with its offset.
        first: String,
        /// The second one.
        second: String,
    },
    /// Clocks were set forward, and never showed it.
    #[error("{date}, clocks were set forward and never showed {clock}")]
    Never {
        /// The day.
        date: Date,
        /// The time of day.
        clock: Time,
    },
}

const SECOND: i64 = 1_000_000;

/// Parses a point in time, in microseconds of the calendar. Without an offset it is in the reader's time zone. A time of day
/// without a day is the last one that has passed.
///
/// # Errors
/// If the text has another form, if clocks showed that time twice or never, or if there is no such time zone.
pub fn parse_instant(text: &str) -> Result<i64, InstantError> {
    let now = frozen::clock(ClockId::Realtime);
    let now = Timestamp::new(now.tv_sec, now.tv_nsec as i32);
    let now = now.map_err(|_| InstantError::Malformed)?;
    let zone = TimeZone::system();
    let named = std::env::var("TZ").ok();
    let unknown = named.filter(|name| zone.is_unknown() && !name.is_empty());
    parse_at(text.trim(), &now.to_zoned(zone), unknown)
}

/// `unknown`: the time zone of `now`, if there is none of that name.
fn parse_at(text: &str, now: &Zoned, unknown: Option<String>) -> Result<i64, InstantError> {
    let wrong = InstantError::Malformed;
    if text == "now" {
        return Ok(now.timestamp().as_microsecond());
    }
    if let Some(ago) = text.strip_prefix('-') {
        let ago = parse_duration(ago).map_err(|_| wrong.clone())?;
        let ago = SignedDuration::try_from(ago).map_err(|_| wrong.clone())?;
        let then = now.timestamp().checked_sub(ago).map_err(|_| wrong)?;
        return Ok(then.as_microsecond());
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp.as_microsecond());
    }
    let (text, micros) = without_fraction(text).ok_or(wrong)?;
    let seconds = parse_local(text, now)?;
    unknown.map_or(Ok(seconds * SECOND + micros), |zone| {
        Err(InstantError::Zone(zone))
    })
}

/// Takes microseconds from the end of `03:12:05.25`.
fn without_fraction(text: &str) -> Option<(&str, i64)> {
    let Some((clock, digits)) = text.split_once('.') else {
        return Some((text, 0));
    };
    let right = clock.matches(':').count() == 2
        && matches!(digits.len(), 1..=6)
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((clock, right.then(|| format!("{digits:0<6}").parse().ok())??))
}

/// A time without an offset, in seconds.
fn parse_local(text: &str, now: &Zoned) -> Result<i64, InstantError> {
    let wrong = InstantError::Malformed;
    let named = |name: &str| match name {
        "today" => Some(now.date()),
        "yesterday" => now.date().yesterday().ok(),
        day => day.parse().ok(),
    };
    if let Some((day, clock)) = text.split_once(['T', ' ']) {
        let (day, clock) = named(day).zip(time_of_day(clock.trim())).ok_or(wrong)?;
        return local(day.to_datetime(clock.0), now);
    }
    if let Some(day) = named(text) {
        return local(day.to_datetime(Time::midnight()), now);
    }
    let (clock, _) = time_of_day(text).ok_or(wrong.clone())?;
    // Of two that clocks show today, the first may have passed alone.
    match local(now.date().to_datetime(clock), now) {
        Ok(seconds) if seconds > now.timestamp().as_second() => {
            let day = now.date().yesterday().map_err(|_| wrong)?;
            local(day.to_datetime(clock), now)
        }
        today => today,
    }
}

fn local(time: DateTime, now: &Zoned) -> Result<i64, InstantError> {
    let ambiguous = now.time_zone().to_ambiguous_timestamp(time);
    let (date, clock) = (time.date(), time.time());
    match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => Err(InstantError::Never { date, clock }),
        AmbiguousOffset::Fold { before, after } => {
            let shown = |offset: Offset| {
                let timestamp = offset.to_timestamp(time);
                timestamp.map_or_else(
                    |_| String::new(),
                    |timestamp| timestamp.display_with_offset(offset).to_string(),
                )
            };
            Err(InstantError::Twice {
                date,
                clock,
                first: shown(before),
                second: shown(after),
            })
        }
        AmbiguousOffset::Unambiguous { .. } => {
            let timestamp = ambiguous.unambiguous();
            timestamp.map_or(Err(InstantError::Malformed), |time| Ok(time.as_second()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, now: &str) -> Result<String, String> {
        let now: Zoned = format!("{now}[Europe/Berlin]").parse().expect("a time");
        let micros = parse_at(text, &now, None).map_err(|error| error.to_string())?;
        let time = Timestamp::from_microsecond(micros).expect("a time");
        Ok(time.to_string())
    }

    #[test]
    fn points_in_time_are_written_in_many_ways() {
        for (text, time) in [
            ("03:12", "2026-11-30T02:12:00Z"),
            ("3:12:05", "2026-11-30T02:12:05Z"),
            ("3:12:05.2", "2026-11-30T02:12:05.2Z"),
            ("yesterday 03:12:05.000025", "2026-11-29T02:12:05.000025Z"),
            ("2026-11-30T03:12:05.25Z", "2026-11-30T03:12:05.25Z"),
            ("-200ms", "2026-11-30T10:59:59.8Z"),
            // It has not passed today.
            ("13:00", "2026-11-29T12:00:00Z"),
            ("yesterday 03:12", "2026-11-29T02:12:00Z"),
            ("today 03:12", "2026-11-30T02:12:00Z"),
            ("yesterday", "2026-11-28T23:00:00Z"),
            ("2026-11-30 03:12", "2026-11-30T02:12:00Z"),
            ("2026-07-01T03:12:05", "2026-07-01T01:12:05Z"),
            ("2026-11-30T03:12:05Z", "2026-11-30T03:12:05Z"),
            ("2026-11-30T03:12:05+05:00", "2026-11-29T22:12:05Z"),
            ("2026-11-30", "2026-11-29T23:00:00Z"),
            ("-10min", "2026-11-30T10:50:00Z"),
            ("-1h30m", "2026-11-30T09:30:00Z"),
            ("-90", "2026-11-30T10:58:30Z"),
            ("now", "2026-11-30T11:00:00Z"),
        ] {
            assert_eq!(
                parsed(text, "2026-11-30T12:00:00+01:00").as_deref(),
                Ok(time),
                "{text}"
            );
        }
        for text in [
            "",
            "5",
            "x",
            "25:00",
            "tomorrow 3:00",
            "2026-11-31",
            "-x",
            "- 5",
            "3:12 x",
            "3:12.5",
            "3:12:05.",
            "3:12:05.-1",
        ] {
            assert!(parsed(text, "2026-11-30T12:00:00+01:00").is_err(), "{text}");
        }
    }

    #[test]
    fn without_a_time_zone_only_times_with_an_offset_are_known() {
        let now: Zoned = "2026-11-30T12:00:00+00:00[UTC]".parse().expect("a time");
        let parsed = |text| parse_at(text, &now, Some("Nonsense".into()));
        let unknown = Err(InstantError::Zone("Nonsense".into()));
        assert_eq!(
            [parsed("03:12"), parsed("yesterday")],
            [unknown.clone(), unknown]
        );
        for text in ["2026-11-30T03:12:05+01:00", "-10min", "now"] {
            assert!(parsed(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn of_two_equal_times_it_asks_which() {
        let now = "2026-10-25T12:00:00+01:00";
        for text in ["02:30", "today 02:30", "2026-10-25T02:30"] {
            let error = parsed(text, now).expect_err("it was twice");
            assert_eq!(
                error,
                "2026-10-25, clocks were set back and showed 02:30:00 twice: give 2026-10-25T02:30:00+02:00 or \
                 2026-10-25T02:30:00+01:00"
            );
        }
        assert_eq!(
            parsed("2026-10-25T02:30:00+02:00", now).as_deref(),
            Ok("2026-10-25T00:30:00Z")
        );
        assert!(parsed("03:00", now).is_ok());
    }

    #[test]
    fn a_time_that_clocks_skipped_is_refused() {
        let error = parsed("2026-03-29 02:30", "2026-03-29T12:00:00+02:00");
        let error = error.expect_err("there was none");
        assert_eq!(
            error,
            "2026-03-29, clocks were set forward and never showed 02:30:00"
        );
    }
}
