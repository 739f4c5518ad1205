//! JSON: one document for each snapshot, or one line for each row.

use std::io::{self, Write};

use fastproc_columns::{Subject, Unit, Value, arguments, escape::escape};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::ser::Formatter;

use super::{Column, RowWriter, Rows};

/// The field that says whether a command line is cut, and its key.
const CUT: &str = "cmdline_cut";

/// Writes objects with a member for each column.
#[derive(Debug)]
pub struct Json<S: Subject> {
    columns: Vec<Column<S>>,
    is_document: bool,
}

impl<S: Subject> Json<S> {
    /// One object for each snapshot, including how it was made.
    pub fn document(columns: Vec<Column<S>>) -> Self {
        Self {
            columns,
            is_document: true,
        }
    }

    /// One object for each row.
    pub fn lines(columns: Vec<Column<S>>) -> Self {
        Self {
            columns,
            is_document: false,
        }
    }

    fn write_row(
        &self,
        row: &S::Row<'_>,
        boottime_ns: Option<u64>,
        lookup: &mut S::Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let mut serializer = serde_json::Serializer::with_formatter(output, Inert);
        let mut object = serializer.serialize_map(None)?;
        if let Some(boottime_ns) = boottime_ns {
            object.serialize_entry("boottime_ns", &boottime_ns)?;
        }
        let says_cut = |column: &Column<S>| column.field.name == CUT;
        for Column { field, key, .. } in &self.columns {
            let value = field.value(row, lookup);
            let is_cut = value.is_cut();
            object.serialize_entry(
                key,
                &Member {
                    value,
                    unit: field.unit,
                },
            )?;
            // Nobody asks for it who does not know that lines are cut.
            if is_cut && !self.columns.iter().any(says_cut) {
                object.serialize_entry(CUT, &true)?;
            }
        }
        Ok(object.end()?)
    }
}

impl<S: Subject> RowWriter<S> for Json<S> {
    fn write(
        &mut self,
        rows: Rows<'_, '_, S>,
        lookup: &mut S::Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        if !self.is_document {
            for row in rows.shown {
                self.write_row(&row, rows.boottime_ns, lookup, output)?;
                output.write_all(b"\n")?;
            }
            return Ok(());
        }
        output.write_all(rows.document.as_bytes())?;
        for (i, row) in rows.shown.enumerate() {
            if i > 0 {
                output.write_all(b",")?;
            }
            self.write_row(&row, None, lookup, output)?;
        }
        output.write_all(b"]}\n")
    }
}

/// The shortest JSON without characters that act on a terminal: JSON itself requires escapes only up to U+001F.
struct Inert;

impl Formatter for Inert {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(acts_on_a_terminal) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let mut characters = rest[at..].chars();
            for character in characters.by_ref().take(1) {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Whether it is a control from U+007F to U+009F, or changes the direction of writing.
const fn acts_on_a_terminal(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// A value, to write as JSON.
pub struct Member<'a> {
    pub value: Value<'a>,
    pub unit: Unit,
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.value, self.unit) {
            (Value::Unknown, _) => serializer.serialize_none(),
            (Value::Unsigned(_), Unit::Set | Unit::Octal)
            | (Value::Signed(_), Unit::Date | Unit::Start)
            | (Value::Bitmap(_), _) => {
                let mut text = Vec::new();
                self.value.write_for_csv(self.unit, &mut text);
                Text(&text).serialize(serializer)
            }
            (Value::Unsigned(number), _) => serializer.serialize_u64(number),
            (Value::Signed(number), _) => serializer.serialize_i64(number),
            // Further decimals are noise.
            (Value::Real(number), _) => serializer.serialize_f64((number * 1e4).round() / 1e4),
            (Value::Truth(truth), _) => serializer.serialize_bool(truth),
            (Value::Text(text), _) => Text(text).serialize(serializer),
            (Value::Arguments(line), _) => serializer.collect_seq(arguments(line).map(Text)),
            (Value::NoArguments(_), _) => serializer.collect_seq([(); 0]),
            (Value::Numbers(numbers), _) => numbers.serialize(serializer),
        }
    }
}

/// Bytes: a string if they are UTF-8, else an object `{"escaped": …}` with the result of [`escape`].
struct Text<'a>(&'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(self.0) {
            return serializer.serialize_str(text);
        }
        let mut escaped = Vec::new();
        escape(self.0, &mut escaped);
        let mut object = serializer.serialize_map(Some(1))?;
        object.serialize_entry("escaped", &String::from_utf8_lossy(&escaped))?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use fastproc::Cmdline;
    use fastproc_columns::{Lookup, Processes, Row};

    use super::*;

    fn json(value: Value<'_>, unit: Unit) -> String {
        let mut text = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, Inert);
        let member = Member { value, unit };
        member.serialize(&mut serializer).expect("JSON");
        String::from_utf8(text).expect("JSON is UTF-8")
    }

    #[test]
    fn nothing_in_it_acts_on_a_terminal() {
        let name = "a\u{9b}2J\u{7f}b\u{202e}c\u{2066}d\u{61c}\u{200f}שלום é進🦀\u{85}\u{9f}\u{200e}\u{202a}\u{2069}";
        let shown = json(Value::Text(name.as_bytes()), Unit::Text);
        assert_eq!(
            shown,
            r#""a\u009b2J\u007fb\u202ec\u2066d\u061c\u200fשלום é進🦀\u0085\u009f\u200e\u202a\u2069""#
        );
        assert_eq!(
            serde_json::from_str::<String>(&shown).expect("JSON"),
            name,
            "a reader gets the name as it is"
        );
        // Also next to characters that JSON escapes.
        let name = "\u{1b}\u{9b}\"\u{9b}";
        assert_eq!(
            json(Value::Text(name.as_bytes()), Unit::Text),
            r#""\u001b\u009b\"\u009b""#
        );
        let all: String = ('\0'..=char::MAX).collect();
        let shown = json(Value::Text(all.as_bytes()), Unit::Text);
        assert!(!shown.contains(|c: char| c.is_control() || acts_on_a_terminal(c)));
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), all);
    }

    #[test]
    fn bytes_survive() {
        assert_eq!(
            json(Value::Text(b"a\"\n\x1b"), Unit::Text),
            r#""a\"\n\u001b""#
        );
        assert_eq!(
            json(Value::Text(b"a\\\xff\n"), Unit::Text),
            r#"{"escaped":"a\\\\\\xff\\n"}"#
        );
        let line = Cmdline {
            bytes: b"a\0b c\0\xff\0",
            cut: false,
        };
        assert_eq!(
            json(Value::Arguments(line), Unit::Text),
            r#"["a","b c",{"escaped":"\\xff"}]"#
        );
        assert_eq!(json(Value::NoArguments(b"kthreadd"), Unit::Text), "[]");
    }

    #[test]
    fn a_cut_command_line_is_marked() {
        let exit = fastproc::exits::Exit::default();
        let record = exit.to_record();
        let change = fastproc::difference::Ended::whole(&exit).change(&record);
        let host = fastproc::Host::read().expect("/proc is there");
        let mut lookup = Lookup::recorded(host, 1);
        let mut written = |columns: &[&str], cut| {
            let line = Cmdline { bytes: b"a", cut };
            let columns = columns.iter().map(|name| name.parse().expect("a field"));
            let mut output = Vec::new();
            Json::<Processes>::lines(columns.collect())
                .write_row(
                    &Row::ended(change, Some(line)),
                    None,
                    &mut lookup,
                    &mut output,
                )
                .expect("a vector takes everything");
            String::from_utf8(output).expect("text")
        };
        assert_eq!(written(&["cmdline"], false), r#"{"cmdline":["a"]}"#);
        let marked = r#"{"cmdline":["a"],"cmdline_cut":true}"#;
        assert_eq!(written(&["cmdline"], true), marked);
        assert_eq!(written(&["cmdline", "cmdline_cut"], true), marked);
        assert_eq!(
            written(&["cmdline", "cmdline_cut"], false),
            r#"{"cmdline":["a"],"cmdline_cut":false}"#
        );
    }

    #[test]
    fn each_unit_has_its_form() {
        assert_eq!(json(Value::Unknown, Unit::Bytes), "null");
        assert_eq!(
            json(Value::Unsigned(u64::MAX), Unit::Bytes),
            "18446744073709551615"
        );
        assert_eq!(
            json(Value::Unsigned(0x4002), Unit::Set),
            r#""0000000000004002""#
        );
        assert_eq!(json(Value::Unsigned(18), Unit::Octal), r#""0022""#);
        assert_eq!(json(Value::Real(0.123_456), Unit::Percent), "0.1235");
        assert_eq!(json(Value::Real(2.0), Unit::Percent), "2.0");
        assert_eq!(json(Value::Numbers(&[1, 7]), Unit::List), "[1,7]");
        assert_eq!(json(Value::Bitmap(&[0b110]), Unit::List), r#""1-2""#);
    }
}
