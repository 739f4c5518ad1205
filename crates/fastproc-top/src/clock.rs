//! Calendar times in the user's time zone.

use fastproc_columns::number;

/// Time of day, with the date if it is not today.
pub fn time_of_day(calendar_ns: u64, with_date: bool) -> String {
    let mut text = Vec::new();
    number::write_date_and_clock((calendar_ns / 1_000_000_000) as i64, &mut text);
    let text = String::from_utf8(text).unwrap_or_default();
    match text.split_once(' ') {
        Some((_, time)) if !with_date => time.to_owned(),
        _ => text,
    }
}
