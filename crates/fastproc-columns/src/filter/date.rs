//! Days and times of day, in the reader's time zone unless the text names another.

use fastproc::frozen;
use jiff::{
    Timestamp, Zoned,
    civil::{Date, Time},
    tz::TimeZone,
};
use rustix::time::ClockId;

/// The first and the last second of a date: of `2026-03-01` the whole day, of `09:30` a minute. `None`: this is not a
/// date.
///
/// A time of day without a day is the last one that has passed; the same holds for a day without a year, like `Mar 01`.
pub fn parse(text: &str) -> Option<(i64, i64)> {
    parse_as_of(text, frozen::clock(ClockId::Realtime).tv_sec)
}

/// Parses a date as of another time than now, in seconds of the calendar.
pub fn parse_as_of(text: &str, seconds: i64) -> Option<(i64, i64)> {
    let now = Timestamp::from_second(seconds).ok()?;
    parse_at(text, &now.to_zoned(TimeZone::system()))
}

fn parse_at(text: &str, now: &Zoned) -> Option<(i64, i64)> {
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some((timestamp.as_second(), timestamp.as_second()));
    }
    if let Some((day, clock)) = text.split_once(['T', ' '])
        && let Ok(day) = day.parse::<Date>()
    {
        let (time, seconds) = time_of_day(clock)?;
        return range(day, time, seconds, now);
    }
    if let Ok(day) = text.parse::<Date>() {
        return whole_day(day, now);
    }
    if let Some((time, seconds)) = time_of_day(text) {
        let today = range(now.date(), time, seconds, now)?;
        // As `start` shows a time within the last 24 hours.
        return if today.0 > now.timestamp().as_second() {
            range(now.date().yesterday().ok()?, time, seconds, now)
        } else {
            Some(today)
        };
    }
    let this_year = i64::from(now.year());
    let years = [this_year, this_year - 1];
    let days = years
        .iter()
        .filter_map(|year| Date::strptime("%Y %b %d", format!("{year} {text}")).ok());
    days.filter(|day| *day <= now.date())
        .find_map(|day| whole_day(day, now))
}

fn whole_day(day: Date, now: &Zoned) -> Option<(i64, i64)> {
    let (first, _) = range(day, Time::midnight(), 1, now)?;
    let (next, _) = range(day.tomorrow().ok()?, Time::midnight(), 1, now)?;
    Some((first, next - 1))
}

/// Parses `09:30` or `09:30:15`; returns also the number of seconds that it covers.
pub(crate) fn time_of_day(text: &str) -> Option<(Time, i64)> {
    let seconds = match text.split(':').count() {
        2 => 60,
        3 => 1,
        _ => return None,
    };
    let digits =
        |part: &str| matches!(part.len(), 1..=2) && part.bytes().all(|byte| byte.is_ascii_digit());
    if !text.split(':').all(digits) {
        return None;
    }
    let mut parts = text.split(':').filter_map(|part| part.parse::<i8>().ok());
    let (hour, minute) = (parts.next()?, parts.next()?);
    let time = Time::new(hour, minute, parts.next().unwrap_or(0), 0).ok()?;
    Some((time, seconds))
}

fn range(day: Date, time: Time, seconds: i64, now: &Zoned) -> Option<(i64, i64)> {
    let first = day
        .to_datetime(time)
        .to_zoned(now.time_zone().clone())
        .ok()?;
    let first = first.timestamp().as_second();
    Some((first, first + seconds - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_in_many_ways() {
        let zone = TimeZone::get("Europe/Berlin").expect("the machine has time zones");
        let now: Zoned = "2026-03-02T12:00:00+01:00[Europe/Berlin]"
            .parse()
            .expect("a time");
        assert_eq!(now.time_zone(), &zone);
        let at = |text: &str| text.parse::<Timestamp>().expect("a time").as_second();
        for (text, first, last) in [
            (
                "2026-03-01T09:30:00+05:00",
                "2026-03-01T04:30:00Z",
                "2026-03-01T04:30:00Z",
            ),
            (
                "2026-03-01 09:30:15",
                "2026-03-01T08:30:15Z",
                "2026-03-01T08:30:15Z",
            ),
            (
                "2026-03-01T09:30",
                "2026-03-01T08:30:00Z",
                "2026-03-01T08:30:59Z",
            ),
            ("2026-03-01", "2026-02-28T23:00:00Z", "2026-03-01T22:59:59Z"),
            // A day of 23 hours.
            ("2025-03-30", "2025-03-29T23:00:00Z", "2025-03-30T21:59:59Z"),
            ("09:30:00", "2026-03-02T08:30:00Z", "2026-03-02T08:30:00Z"),
            ("13:30", "2026-03-01T12:30:00Z", "2026-03-01T12:30:59Z"),
            ("Mar 01", "2026-02-28T23:00:00Z", "2026-03-01T22:59:59Z"),
            ("Mar 2", "2026-03-01T23:00:00Z", "2026-03-02T22:59:59Z"),
            ("Nov 21", "2025-11-20T23:00:00Z", "2025-11-21T22:59:59Z"),
        ] {
            assert_eq!(parse_at(text, &now), Some((at(first), at(last))), "{text}");
        }
        for text in [
            "",
            "5",
            "x",
            "2026-13-01",
            "25:00",
            "1:2:3:4",
            "-1:00",
            "2026-03-01 x",
            "Foo 12",
            "Mar 32",
        ] {
            assert_eq!(parse_at(text, &now), None, "{text}");
        }
    }
}
