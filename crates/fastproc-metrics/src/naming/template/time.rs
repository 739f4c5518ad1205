//! The start time of a process, as Go's `time.Time` in UTC.

use std::fmt;

use jiff::{Timestamp, Zoned, tz::TimeZone};

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub unix_ns: u64,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

impl Time {
    /// Its date and its time of day.
    pub(super) fn calendar(self) -> Zoned {
        let timestamp = Timestamp::from_nanosecond(self.unix_ns.into());
        timestamp.unwrap_or_default().to_zoned(TimeZone::UTC)
    }

    /// By Go's layouts, whose parts are those of Monday, January 2, 15:04:05, 2006, at -07:00 (MST).
    pub(super) fn format(self, layout: &str) -> String {
        // The longer ones come before those that they begin with.
        const PARTS: [&str; 34] = [
            "January",
            "Jan",
            "Monday",
            "Mon",
            "MST",
            "2006",
            "-07:00",
            "-0700",
            "-07",
            "Z07:00",
            "Z0700",
            ".000000000",
            ".000000",
            ".000",
            ".999999999",
            ".999999",
            ".999",
            "002",
            "01",
            "02",
            "03",
            "04",
            "05",
            "06",
            "15",
            "PM",
            "pm",
            "_2",
            "1",
            "2",
            "3",
            "4",
            "5",
            ",000",
        ];
        let time = self.calendar();
        let (month, weekday) = (month(&time), weekday(&time));
        let hour12 = match time.hour() % 12 {
            0 => 12,
            hour => hour,
        };
        let mut text = String::new();
        let mut rest = layout;
        while let Some(first) = rest.chars().next() {
            let Some(part) = PARTS.iter().find(|part| rest.starts_with(**part)) else {
                text.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            };
            rest = &rest[part.len()..];
            text += &match *part {
                "January" => month.into(),
                "Jan" => month[..3].into(),
                "Monday" => weekday.into(),
                "Mon" => weekday[..3].into(),
                "MST" => "UTC".into(),
                "2006" => format!("{:04}", time.year()),
                "-07:00" => "+00:00".into(),
                "-0700" => "+0000".into(),
                "-07" => "+00".into(),
                "Z07:00" | "Z0700" => "Z".into(),
                "002" => format!("{:03}", time.day_of_year()),
                "01" => format!("{:02}", time.month()),
                "02" => format!("{:02}", time.day()),
                "03" => format!("{hour12:02}"),
                "04" => format!("{:02}", time.minute()),
                "05" => format!("{:02}", time.second()),
                "06" => format!("{:02}", time.year() % 100),
                "15" => format!("{:02}", time.hour()),
                "PM" => if time.hour() < 12 { "AM" } else { "PM" }.into(),
                "pm" => if time.hour() < 12 { "am" } else { "pm" }.into(),
                "_2" => format!("{:2}", time.day()),
                "1" => time.month().to_string(),
                "2" => time.day().to_string(),
                "3" => hour12.to_string(),
                "4" => time.minute().to_string(),
                "5" => time.second().to_string(),
                fraction => {
                    let digits = format!("{:09}", time.subsec_nanosecond());
                    let kept = &digits[..fraction.len() - 1];
                    let kept = if fraction.contains('9') {
                        kept.trim_end_matches('0')
                    } else {
                        kept
                    };
                    match kept {
                        "" => String::new(),
                        kept => format!("{}{kept}", &fraction[..1]),
                    }
                }
            };
        }
        text
    }
}

/// `2024-02-29 12:00:00.25 +0000 UTC`
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

pub(super) fn month(time: &Zoned) -> &'static str {
    MONTHS[time.month() as usize - 1]
}

pub(super) fn weekday(time: &Zoned) -> &'static str {
    DAYS[time.weekday().to_sunday_zero_offset() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_go() {
        let time = Time {
            unix_ns: 1_709_208_000_250_000_000,
        };
        for (layout, expected) in [
            ("2006-01-02T15:04:05Z07:00", "2024-02-29T12:00:00Z"),
            ("Mon Jan _2 15:04:05 2006", "Thu Feb 29 12:00:00 2024"),
            (
                "Monday, 02-Jan-06 15:04:05 MST",
                "Thursday, 29-Feb-24 12:00:00 UTC",
            ),
            ("3:04PM .000 .999999", "12:00PM .250 .25"),
        ] {
            assert_eq!(time.format(layout), expected, "{layout}");
        }
    }
}
