//! The text that Prometheus reads: format 0.0.4, and `OpenMetrics` 1.0.

use std::io;

use seqtext::{Dec, SeqBuf};

use crate::{page::Page, parts::Parts};

/// Bytes that are written to a page at once. They are still in the cache then.
const PIECE: usize = 64 * 1024;

/// Room for the longest number, and for the bytes behind it that the widest store touches.
const NUMBER: usize = 64;

/// How a text is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Prometheus text format 0.0.4.
    #[default]
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Format {
    /// The media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only goes up.
    Counter,
    /// Counts of values by their size, with their sum.
    Histogram,
    /// Quantiles of values, with their sum.
    Summary,
    /// Unknown: `untyped`, which `OpenMetrics` calls `unknown`.
    Untyped,
}

impl Kind {
    /// The name in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
            Self::Untyped => "untyped",
        }
    }
}

/// Metrics of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name of its series.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its help text, in one line of plain text.
    pub help: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// A whole number that may be below zero.
    Signed(i64),
    /// A number in units of 1e-9: nanoseconds as seconds, and ratios.
    Nano(u64),
    /// Any number, or NaN.
    Real(f64),
}

/// A text that grows.
#[derive(Debug, Default)]
pub struct Exposition<'a> {
    text: Vec<u8>,
    format: Format,
    page: Option<Written<'a>>,
    parts: Parts,
}

/// The page that receives a text, piece by piece.
#[derive(Debug)]
struct Written<'a> {
    page: &'a mut Page,
    bytes: usize,
    /// The first error.
    result: io::Result<()>,
}

impl Written<'_> {
    fn write(&mut self, piece: &[u8]) {
        if self.result.is_ok() {
            self.result = self.page.write_at(piece, self.bytes);
        }
        self.bytes += piece.len();
    }
}

impl<'a> Exposition<'a> {
    /// An empty text, in memory that may have been used before.
    pub fn new(format: Format, mut memory: Vec<u8>) -> Self {
        memory.clear();
        Self {
            text: memory,
            format,
            page: None,
            parts: Parts::default(),
        }
    }

    /// An empty text that is written to this page.
    pub fn to_page(format: Format, page: &'a mut Page) -> Self {
        Self {
            text: Vec::with_capacity(PIECE + PIECE / 8),
            format,
            page: Some(Written {
                page,
                bytes: 0,
                result: Ok(()),
            }),
            parts: Parts::default(),
        }
    }

    /// Begins a family: its series must follow.
    pub fn family(&mut self, family: &Family) {
        self.header(family.name, family.kind, family.help);
    }

    /// Begins a family whose name is known only at run time.
    pub fn header(&mut self, name: &str, kind: Kind, help: &str) {
        let (name, kind) = match (self.format, kind) {
            // In OpenMetrics the family of a counter lacks the `_total` of its series; without that suffix it is not a
            // counter.
            (Format::OpenMetrics, Kind::Counter) => match name.strip_suffix("_total") {
                Some(base) => (base, "counter"),
                None => (name, "unknown"),
            },
            (Format::OpenMetrics, Kind::Untyped) => (name, "unknown"),
            (_, kind) => (name, kind.name()),
        };
        for piece in [
            "# HELP ",
            name,
            " ",
            help,
            "\n# TYPE ",
            name,
            " ",
            kind,
            "\n",
        ] {
            self.text.extend_from_slice(piece.as_bytes());
        }
    }

    /// A family of one series without labels, unless its value is unknown.
    pub fn one(&mut self, family: &Family, value: impl Into<Option<Value>>) {
        if let Some(value) = value.into() {
            self.named(family.name, family.kind, family.help, value);
        }
    }

    /// The same for a family whose name is known only at run time.
    pub fn named(&mut self, name: &str, kind: Kind, help: &str, value: Value) {
        self.header(name, kind, help);
        self.series(name, "", "", value);
    }

    /// A family with these series, each with its labels as they appear between the braces; nothing if there are none.
    pub fn all<L: AsRef<str>>(
        &mut self,
        family: &Family,
        series: impl IntoIterator<Item = (L, Value)>,
    ) {
        for (at, (labels, value)) in series.into_iter().enumerate() {
            if at == 0 {
                self.family(family);
            }
            self.series(family.name, labels.as_ref(), "", value);
        }
    }

    /// One series of the family, with its labels in two pieces as they appear between the braces.
    pub fn series(&mut self, name: &str, labels: &str, more: &str, value: Value) {
        let text = &mut self.text;
        text.reserve(name.len() + labels.len() + more.len() + NUMBER);
        text.extend_from_slice(name.as_bytes());
        if labels.is_empty() && more.is_empty() {
            text.push(b' ');
        } else {
            text.push(b'{');
            text.extend_from_slice(labels.as_bytes());
            if !more.is_empty() {
                text.extend_from_slice(more.as_bytes());
            }
            text.extend_from_slice(b"} ");
        }
        self.value(value);
        self.write_piece(PIECE);
    }

    /// A value, and the end of the line.
    fn value(&mut self, value: Value) {
        let mut memory = [0; NUMBER];
        let mut text = SeqBuf::new(&mut memory);
        match value {
            Value::Whole(number) => text.put((Dec(number), b"\n")),
            Value::Signed(number) => {
                if number < 0 {
                    text.putc(b'-');
                }
                text.put((Dec(number.unsigned_abs()), b"\n"))
            }
            Value::Nano(number) => {
                const ONE: u64 = 1_000_000_000;
                text.put(Dec(number / ONE));
                let mut rest = number % ONE;
                if rest > 0 {
                    let mut digits = *b".000000000";
                    for digit in digits[1..].iter_mut().rev() {
                        *digit = b'0' + (rest % 10) as u8;
                        rest /= 10;
                    }
                    let end = digits.iter().rposition(|&digit| digit != b'0').unwrap_or(0);
                    text.write(&digits[..=end]);
                }
                text.putc(b'\n')
            }
            Value::Real(number) => {
                self.text.extend_from_slice(real(number).as_bytes());
                text.putc(b'\n')
            }
        };
        self.text.extend_from_slice(text.text().unwrap_or_default());
    }

    /// Writes what there is to the page, if it has this length.
    fn write_piece(&mut self, least: usize) {
        if self.text.len() >= least
            && let Some(page) = &mut self.page
        {
            page.write(&self.text);
            self.text.clear();
        }
    }

    /// Ends a part of the text: what came since the last part belongs to this collector, or to none without a name.
    pub(crate) fn end_part(&mut self, collector: &str) {
        self.parts.end(collector, self.len() as usize);
    }

    /// How it is written.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        let written = self.page.as_ref().map_or(0, |page| page.bytes);
        (written + self.text.len()) as u64
    }

    /// Ends the text.
    pub fn finish(mut self) -> Vec<u8> {
        self.end();
        self.text
    }

    /// Ends the text in the page, with its parts behind it. Returns the lengths of both.
    pub fn finish_page(mut self) -> io::Result<[u64; 2]> {
        self.end();
        self.write_piece(0);
        let length = self.len();
        self.text = self.parts.to_bytes();
        self.write_piece(0);
        let of_parts = self.len() - length;
        self.page.map_or(Ok(()), |page| page.result)?;
        Ok([length, of_parts])
    }

    fn end(&mut self) {
        if self.format == Format::OpenMetrics {
            self.text.extend_from_slice(b"# EOF\n");
        }
    }
}

/// As Go prints it: with the fewest digits that identify the number.
fn real(number: f64) -> String {
    const PLAIN: std::ops::Range<f64> = 1e-5..1e17;
    if number.is_nan() {
        "NaN".into()
    } else if number.is_infinite() {
        if number > 0.0 { "+Inf" } else { "-Inf" }.into()
    } else if number == 0.0 || PLAIN.contains(&number.abs()) {
        number.to_string()
    } else {
        format!("{number:e}")
    }
}

/// The value of a label, escaped for the quotes.
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => escaped += "\\\\",
            '"' => escaped += "\\\"",
            '\n' => escaped += "\\n",
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::unix::fs::FileExt};

    use super::*;

    const FAMILY: Family = Family {
        name: "a_seconds_total",
        kind: Kind::Counter,
        help: "Help.",
        labels: &["x"],
    };

    #[test]
    fn each_format_has_its_own_names_of_families() {
        let text = |format| {
            let mut text = Exposition::new(format, b"old".to_vec());
            text.family(&FAMILY);
            text.series(
                FAMILY.name,
                "x=\"1\"",
                ",y=\"2\"",
                Value::Nano(1_500_000_000),
            );
            text.named("b", Kind::Untyped, "B.", Value::Whole(u64::MAX));
            text.named("c", Kind::Counter, "C.", Value::Nano(7));
            String::from_utf8(text.finish()).unwrap()
        };
        assert_eq!(
            text(Format::Prometheus),
            "# HELP a_seconds_total Help.\n# TYPE a_seconds_total counter\na_seconds_total{x=\"1\",y=\"2\"} 1.5\n\
             # HELP b B.\n# TYPE b untyped\nb 18446744073709551615\n\
             # HELP c C.\n# TYPE c counter\nc 0.000000007\n"
        );
        assert_eq!(
            text(Format::OpenMetrics),
            "# HELP a_seconds Help.\n# TYPE a_seconds counter\na_seconds_total{x=\"1\",y=\"2\"} 1.5\n\
             # HELP b B.\n# TYPE b unknown\nb 18446744073709551615\n\
             # HELP c C.\n# TYPE c unknown\nc 0.000000007\n# EOF\n"
        );
    }

    #[test]
    fn a_page_gets_the_same_text_as_memory() {
        let mut page = Page::new().unwrap();
        let shown = File::from(page.shown().try_clone_to_owned().unwrap());
        let mut text = Exposition::new(Format::OpenMetrics, Vec::new());
        let mut to_page = Exposition::to_page(Format::OpenMetrics, &mut page);
        for round in 0..20_000 {
            for text in [&mut text, &mut to_page] {
                text.one(&FAMILY, Value::Whole(round));
            }
            assert_eq!(text.len(), to_page.len());
        }
        let text = text.finish();
        assert!(text.len() > 10 * PIECE);
        assert_eq!(to_page.finish_page().unwrap(), [text.len() as u64, 0]);
        let mut read = vec![0; text.len()];
        shown.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(read, text);
    }

    #[test]
    fn numbers_have_their_sign_no_zeros_at_their_end_and_are_as_go_reads_them() {
        use Value::{Nano, Real, Signed};
        for (value, expected) in [
            (Nano(0), "0"),
            (Nano(1_000_000_000), "1"),
            (Nano(1_010_000_000), "1.01"),
            (Nano(999_999_999), "0.999999999"),
            (Signed(0), "0"),
            (Signed(7), "7"),
            (Signed(-1), "-1"),
            (Signed(-20), "-20"),
            (Signed(i64::MIN), "-9223372036854775808"),
            (Real(0.0), "0"),
            (Real(1.5), "1.5"),
            (Real(-125_000.0), "-125000"),
            (Real(1.000_000_015_258_789), "1.000000015258789"),
            (Real(1e300), "1e300"),
            (Real(2.5e-9), "2.5e-9"),
            (Real(f64::NAN), "NaN"),
            (Real(f64::INFINITY), "+Inf"),
            (Real(f64::NEG_INFINITY), "-Inf"),
        ] {
            let mut text = Exposition::default();
            text.value(value);
            assert_eq!(text.finish(), [expected.as_bytes(), b"\n"].concat());
        }
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escape("a\"b\\c\nd\u{e9}"), "a\\\"b\\\\c\\nd\u{e9}");
    }
}
