//! How ps(1) writes values.

use std::{env, sync::LazyLock};

use fastproc::{frozen, record::State};
use fastproc_columns::{Field, Lookup, Row, Value, number};
use unicode_width::UnicodeWidthChar;

use super::{Column, columns::Writing};

/// A clock tick of /proc. ps(1) rounds each time down to ticks before it adds it to another.
const TICK_NS: u64 = 10_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const DAY: i64 = 24 * 60 * 60;

/// Settings for all rows of a table.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Whether users appear as numbers.
    pub numbers: bool,
    /// Whether the terminal shows characters beyond ASCII.
    pub utf8: bool,
    /// The time, in seconds of the calendar.
    pub now: i64,
    /// The year and the day of that time.
    today: Day,
}

impl Context {
    /// The settings of this process, now.
    pub fn new(numbers: bool) -> Self {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL")
            .or_else(|| set("LC_CTYPE"))
            .or_else(|| set("LANG"));
        let locale = locale.unwrap_or_default().to_lowercase();
        let now = frozen::clock(rustix::time::ClockId::Realtime);
        Self {
            numbers,
            utf8: locale.contains("utf-8") || locale.contains("utf8"),
            now: now.tv_sec,
            today: Day::of(now.tv_sec),
        }
    }
}

/// A day of the calendar, in the reader's time zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Day {
    year: i16,
    of_year: i16,
}

impl Day {
    fn of(seconds: i64) -> Self {
        let (year, of_year) = number::local_day(seconds).unwrap_or_default();
        Self { year, of_year }
    }
}

/// Appends the text by which names and command lines are sorted: what is shown of them.
pub fn write_sorted(field: &Field, row: &Row<'_>, lookup: &mut Lookup, to: &mut Vec<u8>) -> bool {
    static CONTEXT: LazyLock<Context> = LazyLock::new(|| Context::new(false));
    match (field.name, field.value(row, lookup)) {
        ("comm", Value::Text(name)) => printable(name, CONTEXT.utf8, to),
        ("cmdline", _) => write_arguments(field, row, lookup, *CONTEXT, to),
        _ => return false,
    }
    true
}

/// Appends the value of a row in this column.
pub fn write(
    column: &Column,
    row: &Row<'_>,
    lookup: &mut Lookup,
    context: Context,
    to: &mut Vec<u8>,
) {
    let field = column.field;
    match column.writing {
        Writing::Dash => return to.push(b'-'),
        Writing::Blank => return,
        Writing::Name | Writing::ShortName => {
            let is_short = column.writing == Writing::ShortName;
            if let Value::Text(name) = field.value(row, lookup) {
                let shown = name.get(..8).filter(|_| is_short).unwrap_or(name);
                printable(shown, context.utf8, to);
            }
            return;
        }
        Writing::Arguments => return write_arguments(field, row, lookup, context, to),
        Writing::Function => {
            return match field.value(row, lookup) {
                Value::Text(name) => {
                    let start = name.iter().position(|&byte| byte != b'_');
                    printable(&name[start.unwrap_or(0)..], context.utf8, to);
                }
                _ => to.push(b'-'),
            };
        }
        Writing::Plain => {
            let Value::Text(text) = field.value(row, lookup) else {
                let start = to.len();
                field.write_for_table(row, lookup, to);
                if to.len() == start {
                    to.push(b'-');
                }
                return;
            };
            return printable(text, context.utf8, to);
        }
        Writing::Time | Writing::Minutes | Writing::Seconds => {
            let ticks = row.cpu_times().map_or(0, |(user, system)| {
                (user / TICK_NS).saturating_add(system / TICK_NS)
            });
            let seconds = ticks / (SECOND_NS / TICK_NS);
            return match column.writing {
                Writing::Time => write_clock(seconds, true, to),
                Writing::Minutes => {
                    write_padded(&[(seconds / 60, 3, b' '), (seconds % 60, 2, b'0')], to);
                }
                _ => number::write(seconds, to),
            };
        }
        Writing::Text | Writing::Data => {
            let text = row.process.layout().map_or(0, |layout| {
                layout.end_code.saturating_sub(layout.start_code)
            });
            let all = row.process.memory().map_or(0, |memory| memory.vsize);
            let is_text = column.writing == Writing::Text;
            let bytes = if is_text {
                text
            } else {
                all.saturating_sub(text)
            };
            return number::write(bytes / 1024, to);
        }
        Writing::RunsOn if row.state() != State::Running => return to.push(b'*'),
        Writing::Cgroups => return write_cgroups(row, lookup, context, to),
        _ => {}
    }
    let known = field.value(row, lookup);
    let (whole, signed, real) = match known {
        Value::Unsigned(number) => (number, number as i64, 0.0),
        Value::Signed(number) => (number.max(0) as u64, number, 0.0),
        Value::Real(number) => (0, 0, number),
        _ => (0, 0, 0.0),
    };
    match column.writing {
        Writing::Kibibytes => number::write(whole / 1024, to),
        Writing::Id => number::write_signed((whole as u32 as i32).into(), to),
        Writing::Share | Writing::WholeShare | Writing::Thousandths => {
            let share = row.change.map_or_else(
                || share(row, lookup),
                |change| change.cpu_share.unwrap_or(0.0) * 100.0,
            );
            match column.writing {
                Writing::Share if share >= 100.0 => number::write(share as u64, to),
                // Rounded down, like thousandths.
                Writing::Share => number::write_fraction((share * 10.0).floor() / 10.0, 1, to),
                Writing::WholeShare => write_padded(&[((share as u64).min(99), 2, b' ')], to),
                _ => write_padded(&[(((share * 10.0) as u64).min(999), 3, b' ')], to),
            }
        }
        Writing::MemoryShare => write_tenths(((real * 10.0) as u64).min(999), to),
        Writing::Hexadecimal => number::write_hex(whole, 16, to),
        Writing::Elapsed => write_clock(whole / SECOND_NS, false, to),
        Writing::ElapsedSeconds => number::write(whole / SECOND_NS, to),
        Writing::LongStart => number::write_local(signed, "%a %b %e %H:%M:%S %Y", to),
        Writing::Start | Writing::ShortStart | Writing::BsdStart => {
            write_start(column.writing, signed, context, to);
        }
        Writing::Priority(above) => number::write_signed(signed + above, to),
        Writing::PriorityBelow(from) => number::write_signed(from - signed, to),
        Writing::UserOf if !context.numbers => {
            printable(lookup.users.name(whole as u32), context.utf8, to);
        }
        Writing::GroupOf if !context.numbers => {
            printable(lookup.groups.name(whole as u32), context.utf8, to);
        }
        Writing::Owner(owner) => match known {
            Value::Text(name) if !context.numbers => printable(name, context.utf8, to),
            Value::Text(_) => number::write(owner.id(row).into(), to),
            _ => to.push(b'?'),
        },
        _ => number::write_signed(signed, to),
    }
}

/// Hundredths of a CPU since the process started, calculated from ticks like ps(1).
fn share(row: &Row<'_>, lookup: &Lookup) -> f64 {
    let (user, system) = row.cpu_times().unwrap_or_default();
    let ticks = (user / TICK_NS).saturating_add(system / TICK_NS);
    let began = row.start_ns() / TICK_NS;
    let lived = (lookup.now_ns / TICK_NS).saturating_sub(began);
    if lived == 0 {
        0.0
    } else {
        ticks as f64 / lived as f64 * 100.0
    }
}

/// Writes the arguments, separated by spaces; the name in brackets if there are none.
fn write_arguments(
    field: &Field,
    row: &Row<'_>,
    lookup: &mut Lookup,
    context: Context,
    to: &mut Vec<u8>,
) {
    match field.value(row, lookup) {
        Value::Arguments(line) => {
            // ps(1) shows a line feed as a space, and drops spaces at the end.
            let is_blank = |byte: &u8| matches!(byte, b' ' | b'\n' | 0);
            let Some(end) = line.bytes.iter().rposition(|byte| !is_blank(byte)) else {
                return to.push(b'?');
            };
            let start = to.len();
            let shown = |&byte: &u8| if is_blank(&byte) { b' ' } else { byte };
            to.extend(line.bytes[..=end].iter().map(shown));
            if !to[start..].iter().copied().all(is_plain) {
                let text = to.split_off(start);
                printable(&text, context.utf8, to);
            }
        }
        Value::NoArguments(name) => write_bracketed(row, name, context, to),
        _ => write_bracketed(row, &row.process.name(), context, to),
    }
}

/// Writes the name of a process without arguments.
fn write_bracketed(row: &Row<'_>, name: &[u8], context: Context, to: &mut Vec<u8>) {
    to.push(b'[');
    printable(name, context.utf8, to);
    to.push(b']');
    if row.state().letter() == b'Z' {
        to.extend_from_slice(b" <defunct>");
    }
}

/// Writes the lines of `/proc/PID/cgroup`, separated by commas.
fn write_cgroups(row: &Row<'_>, lookup: &mut Lookup, context: Context, to: &mut Vec<u8>) {
    let start = to.len();
    if let Ok(text) = lookup.details.file(row.process, c"cgroup") {
        let lines = text
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty());
        // ps(1) shows no path for the root.
        let lines = lines.filter(|line| !line.ends_with(b":/"));
        for line in lines {
            if to.len() > start {
                to.push(b',');
            }
            printable(line, context.utf8, to);
        }
    }
    if to.len() == start {
        to.push(b'-');
    }
}

/// Appends text like ps(1): a question mark for each character that is not printable. From the first byte on that
/// begins no character, and in other locales, each byte stands alone: a full stop is a control character.
fn printable(text: &[u8], utf8: bool, to: &mut Vec<u8>) {
    if text.iter().copied().all(is_plain) {
        return to.extend_from_slice(text);
    }
    let (characters, bytes) = text.split_at(if utf8 { length_of_characters(text) } else { 0 });
    for chunk in characters.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_ascii() && !character.is_ascii_control() {
                to.push(character as u8);
            } else if is_printed(character) {
                to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                to.push(b'?');
            }
        }
        to.extend(chunk.invalid().iter().map(|_| b'?'));
    }
    to.extend(bytes.iter().map(|&byte| match byte {
        byte if is_plain(byte) => byte,
        byte if byte.is_ascii() => b'.',
        _ => b'?',
    }));
}

/// The length up to the first byte that cannot begin a character. Like ps(1), it does not look at the bytes that follow the
/// first one of a character.
fn length_of_characters(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(first) = text.get(at) {
        at += match first {
            0..=0x7f => 1,
            0xc2..=0xdf if at + 2 <= text.len() => 2,
            0xe0..=0xef if at + 3 <= text.len() => 3,
            0xf0..=0xf4 if at + 4 <= text.len() => 4,
            _ => break,
        };
    }
    at
}

/// Whether ps(1) shows this byte unchanged.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

fn is_printed(character: char) -> bool {
    // The same test as for the tables of fastproc: whether the character could change how others are shown.
    character.width().is_some_and(|width| width > 0) && character.escape_debug().len() == 1
}

/// `[[days-]hours:]minutes:seconds`.
fn write_clock(seconds: u64, always_hours: bool, to: &mut Vec<u8>) {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    if days > 0 {
        number::write(days, to);
        to.push(b'-');
    }
    let rest = [(seconds / 60 % 60, 2, b'0'), (seconds % 60, 2, b'0')];
    if days > 0 || hours > 0 || always_hours {
        write_padded(&[(hours, 2, b'0'), rest[0], rest[1]], to);
    } else {
        write_padded(&rest, to);
    }
}

/// Writes numbers separated by colons. Each has a number of digits, and a filler for missing ones.
fn write_padded(parts: &[(u64, usize, u8)], to: &mut Vec<u8>) {
    for (at, &(part, width, fill)) in parts.iter().enumerate() {
        if at > 0 {
            to.push(b':');
        }
        let digits = part.checked_ilog10().map_or(1, |log| log as usize + 1);
        to.extend(std::iter::repeat_n(fill, width.saturating_sub(digits)));
        number::write(part, to);
    }
}

/// Writes `12.3`, with a space for a missing first digit.
fn write_tenths(tenths: u64, to: &mut Vec<u8>) {
    write_padded(&[(tenths / 10, 2, b' ')], to);
    to.push(b'.');
    number::write(tenths % 10, to);
}

fn write_start(writing: Writing, seconds: i64, context: Context, to: &mut Vec<u8>) {
    let is_old = seconds < context.now - DAY;
    let format = match writing {
        Writing::Start if is_old => "%b %d",
        Writing::Start => "%H:%M:%S",
        Writing::BsdStart if is_old => "%b %e",
        Writing::ShortStart => {
            let day = Day::of(seconds);
            if day.year != context.today.year {
                "%Y"
            } else if day != context.today {
                "%b%d"
            } else {
                "%H:%M"
            }
        }
        _ => "%H:%M",
    };
    number::write_local(seconds, format, to);
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
    fn times_are_clocks() {
        for (seconds, always, text) in [
            (0, false, "00:00"),
            (61, false, "01:01"),
            (3661, false, "01:01:01"),
            (90_061, false, "1-01:01:01"),
            (61, true, "00:01:01"),
        ] {
            assert_eq!(written(|to| write_clock(seconds, always, to)), text);
        }
        assert_eq!(
            written(|to| write_padded(&[(1, 3, b' '), (2, 2, b'0')], to)),
            "  1:02"
        );
    }

    #[test]
    fn a_start_is_shorter_the_longer_ago_it_is() {
        // Noon on 9 September 2001 in UTC.
        let noon = 1_000_036_800;
        let start = |writing, now| {
            let context = Context {
                numbers: false,
                utf8: true,
                now,
                today: Day::of(now),
            };
            written(|to| write_start(writing, noon, context, to))
        };
        let long_ago = noon + 400 * DAY;
        assert_eq!(start(Writing::Start, noon).split(':').count(), 3);
        assert_eq!(start(Writing::Start, long_ago), "Sep 09");
        assert_eq!(start(Writing::BsdStart, long_ago), "Sep  9");
        assert_eq!(start(Writing::BsdStart, noon).split(':').count(), 2);
        assert_eq!(start(Writing::ShortStart, noon).split(':').count(), 2);
        assert_eq!(start(Writing::ShortStart, noon + 30 * DAY), "Sep09");
        assert_eq!(start(Writing::ShortStart, long_ago), "2001");
    }

    #[test]
    fn unprintable_bytes_are_printed_as_marks() {
        let text = |bytes, utf8| written(|to| printable(bytes, utf8, to));
        assert_eq!(text(b"a b~", true), "a b~");
        assert_eq!(text("größe\u{1b}[2J\n".as_bytes(), true), "größe?[2J?");
        assert_eq!(text("größe".as_bytes(), false), "gr????e");
        assert_eq!(text(b"\xff\xc3(", true), "??(");
        assert_eq!(text(b"a\tx\xff\ty\xc3\xa9\x1b\x7f", true), "a?x?.y??..");
        assert_eq!(text(b"x\xff\ty\x1b", false), "x?.y.");
        assert_eq!(text("ö\u{1b}ö".as_bytes(), true), "ö?ö");
        assert_eq!(text(b"\x1b\xc3", true), "??");
    }
}
