//! Numbers as text, appended to a row.

use fastproc::frozen;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use rustix::time::ClockId;
use seqtext::SeqBuf;

/// Appends the output of `render`, which must fit into 64 bytes.
fn append(to: &mut Vec<u8>, render: impl FnOnce(&mut SeqBuf<'_>)) {
    let mut memory = [0; 64];
    let mut text = SeqBuf::new(&mut memory);
    render(&mut text);
    to.extend_from_slice(text.text().expect("no number is that long"));
}

/// Decimal digits.
pub fn write(number: u64, to: &mut Vec<u8>) {
    append(to, |text| {
        text.put_decimal_ull("", number);
    });
}

/// Decimal digits, with a minus sign if the number is negative.
pub fn write_signed(number: i64, to: &mut Vec<u8>) {
    append(to, |text| {
        text.put_decimal_ll("", number);
    });
}

/// At least `width` hexadecimal digits.
pub fn write_hex(number: u64, width: usize, to: &mut Vec<u8>) {
    append(to, |text| {
        text.put_hex_ll("", number, width);
    });
}

/// At least four octal digits.
pub fn write_octal(number: u64, to: &mut Vec<u8>) {
    append(to, |text| {
        text.put_octal("", number, 4);
    });
}

/// A set of numbers as the kernel prints lists of CPUs: `0-3,8`.
pub fn write_ranges(words: &[u64], to: &mut Vec<u8>) {
    let mut memory = vec![0; 256];
    loop {
        let mut text = SeqBuf::new(&mut memory);
        text.put_bitmap_list(words, words.len() * 64);
        if let Ok(text) = text.text() {
            return to.extend_from_slice(text);
        }
        memory.resize(memory.len() * 2, 0);
    }
}

/// `number`, which is not negative, with this many `digits` after the point.
pub fn write_fraction(number: f64, digits: u32, to: &mut Vec<u8>) {
    let scale = 10_u64.pow(digits);
    write_scaled((number * scale as f64).round() as u64, digits, to);
}

/// `number / 10^digits`.
fn write_scaled(number: u64, digits: u32, to: &mut Vec<u8>) {
    let scale = 10_u64.pow(digits);
    write(number / scale, to);
    to.push(b'.');
    write_padded(number % scale, digits as usize, to);
}

fn write_padded(number: u64, width: usize, to: &mut Vec<u8>) {
    let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    to.extend(std::iter::repeat_n(b'0', width.saturating_sub(digits)));
    write(number, to);
}

/// Bytes in three or four digits, with a binary prefix: `812`, `13.6K`, `136M`, `1.2G`.
pub fn write_size(bytes: u64, to: &mut Vec<u8>) {
    if bytes < 1024 {
        return write(bytes, to);
    }
    if bytes == u64::MAX {
        return to.extend_from_slice(b"unlimited");
    }
    for (i, &prefix) in b"KMGTPE".iter().enumerate() {
        let shift = 10 * (i as u32 + 1);
        let rounded = |scale: u128| (u128::from(bytes) * scale + (1 << (shift - 1))) >> shift;
        if rounded(10) < 1000 {
            write_scaled(rounded(10) as u64, 1, to);
        } else if rounded(1) < 1000 || prefix == b'E' {
            write(rounded(1) as u64, to);
        } else {
            continue;
        }
        return to.push(prefix);
    }
}

/// A time as in `top`: minutes and seconds with their hundredths; from an hour on `hours:minutes:seconds`, after the
/// days.
pub fn write_time(nanoseconds: u64, to: &mut Vec<u8>) {
    let seconds = nanoseconds / 1_000_000_000;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    if hours == 0 {
        write(minutes, to);
        to.push(b':');
        write_padded(seconds % 60, 2, to);
        to.push(b'.');
        return write_padded(nanoseconds / 10_000_000 % 100, 2, to);
    }
    if hours >= 24 {
        write(hours / 24, to);
        to.push(b'-');
        write_padded(hours % 24, 2, to);
    } else {
        write(hours, to);
    }
    for part in [minutes % 60, seconds % 60] {
        to.push(b':');
        write_padded(part, 2, to);
    }
}

/// A time that is often short: with its unit below a minute, in about three digits; else as by [`write_time`].
pub fn write_short_time(nanoseconds: u64, to: &mut Vec<u8>) {
    let (number, digits, unit) = match nanoseconds {
        0..1_000_000 => (nanoseconds as f64 / 1e3, 0, "us"),
        1_000_000..10_000_000 => (nanoseconds as f64 / 1e6, 1, "ms"),
        10_000_000..1_000_000_000 => (nanoseconds as f64 / 1e6, 0, "ms"),
        1_000_000_000..60_000_000_000 => (nanoseconds as f64 / 1e9, 2, "s"),
        _ => return write_time(nanoseconds, to),
    };
    match digits {
        0 => write(number.round() as u64, to),
        _ => write_fraction(number, digits, to),
    }
    to.extend_from_slice(unit.as_bytes());
}

/// A time in the reader's time zone (`TZ`, or the machine's). `None` beyond the year 9999, which only a wrong clock
/// shows.
fn local(micros: i64) -> Option<Zoned> {
    let timestamp = Timestamp::from_microsecond(micros).ok()?;
    Some(timestamp.to_zoned(TimeZone::system()))
}

/// Date and time of day in the reader's time zone, with its offset (RFC 3339).
pub fn write_date(seconds: i64, to: &mut Vec<u8>) {
    write_instant(seconds.saturating_mul(1_000_000), to);
}

/// The same from microseconds, with those that are no whole second.
pub fn write_instant(micros: i64, to: &mut Vec<u8>) {
    if let Some(time) = local(micros) {
        let text = time.timestamp().display_with_offset(time.offset());
        to.extend_from_slice(text.to_string().as_bytes());
    }
}

/// The local date and time without the offset: `2026-03-01 09:30:00`.
pub fn write_date_and_clock(seconds: i64, to: &mut Vec<u8>) {
    write_local(seconds, "%Y-%m-%d %H:%M:%S", to);
}

/// As `start` of ps(1): the time of day, or the day if that is more than 24 hours ago.
pub fn write_start(seconds: i64, to: &mut Vec<u8>) {
    let now = frozen::clock(ClockId::Realtime).tv_sec;
    let is_recent = now < seconds.saturating_add(24 * 60 * 60);
    write_local(seconds, if is_recent { "%H:%M:%S" } else { "%b %d" }, to);
}

/// A time in the reader's time zone, as strftime(3) writes it.
pub fn write_local(seconds: i64, format: &str, to: &mut Vec<u8>) {
    write_local_instant(seconds.saturating_mul(1_000_000), format, to);
}

/// The same from microseconds.
pub fn write_local_instant(micros: i64, format: &str, to: &mut Vec<u8>) {
    if let Some(time) = local(micros) {
        to.extend_from_slice(time.strftime(format).to_string().as_bytes());
    }
}

/// The year of a time in the reader's time zone, and the day in that year.
pub fn local_day(seconds: i64) -> Option<(i16, i16)> {
    let date = local(seconds.saturating_mul(1_000_000))?.date();
    Some((date.year(), date.day_of_year()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut text = Vec::new();
        write(&mut text);
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn sizes_have_at_most_four_digits() {
        for (bytes, text) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (13_926, "13.6K"),
            (99 * 1024 + 1000, "100K"),
            (999 * 1024, "999K"),
            (1000 * 1024, "1.0M"),
            (142_606_336, "136M"),
            (1 << 40, "1.0T"),
            (u64::MAX - 1, "16.0E"),
            (u64::MAX, "unlimited"),
        ] {
            assert_eq!(written(|to| write_size(bytes, to)), text, "{bytes}");
        }
    }

    #[test]
    fn short_times_have_three_digits_and_their_unit() {
        for (nanoseconds, text) in [
            (999_499, "999us"),
            (1_500_000, "1.5ms"),
            (25_400_000, "25ms"),
            (1_500_000_000, "1.50s"),
            (61_230_000_000, "1:01.23"),
        ] {
            assert_eq!(written(|to| write_short_time(nanoseconds, to)), text);
        }
    }

    #[test]
    fn times_show_what_matters() {
        for (milliseconds, text) in [
            (0, "0:00.00"),
            (59_999, "0:59.99"),
            (61_230, "1:01.23"),
            (3_600_000, "1:00:00"),
            (86_399_000, "23:59:59"),
            (90_061_000, "1-01:01:01"),
        ] {
            assert_eq!(written(|to| write_time(milliseconds * 1_000_000, to)), text);
        }
    }

    #[test]
    fn fractions_are_rounded() {
        assert_eq!(written(|to| write_fraction(0.0, 1, to)), "0.0");
        assert_eq!(written(|to| write_fraction(99.96, 1, to)), "100.0");
        assert_eq!(written(|to| write_fraction(0.00456, 4, to)), "0.0046");
    }

    #[test]
    fn dates_have_an_offset() {
        let date = written(|to| write_date(1_000_000_000, to));
        let back: Timestamp = date.parse().expect("a date");
        assert_eq!(back.as_second(), 1_000_000_000);
    }

    #[test]
    fn a_start_is_a_time_of_day_or_a_day() {
        let now = Timestamp::now().as_second();
        let start = |seconds| written(|to| write_start(seconds, to));
        assert_eq!(start(now - 60).split(':').count(), 3);
        // Noon of this day has the same date in nearly every time zone.
        assert_eq!(start(1_000_036_800), "Sep 09");
    }
}
