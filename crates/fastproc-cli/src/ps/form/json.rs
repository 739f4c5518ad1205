//! JSON: a document a snapshot, or a line a row.

use std::io::{self, Write};

use fastproc_columns::{Lookup, Row, Unit, Value, arguments, escape::escape};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{Column, Form, Rows};

/// Objects with a member for each column.
#[derive(Debug)]
pub struct Json {
    columns: Vec<Column>,
    is_document: bool,
}

impl Json {
    /// One object a snapshot, which says how it was made.
    pub fn document(columns: Vec<Column>) -> Self {
        Self {
            columns,
            is_document: true,
        }
    }

    /// One object a row.
    pub fn lines(columns: Vec<Column>) -> Self {
        Self {
            columns,
            is_document: false,
        }
    }

    fn write_row(
        &self,
        row: &Row<'_>,
        boottime_ns: Option<u64>,
        lookup: &mut Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let mut serializer = serde_json::Serializer::new(output);
        let mut object = serializer.serialize_map(None)?;
        if let Some(boottime_ns) = boottime_ns {
            object.serialize_entry("boottime_ns", &boottime_ns)?;
        }
        for Column { field, key } in &self.columns {
            let value = field.value(row, lookup);
            object.serialize_entry(
                key,
                &Member {
                    value,
                    unit: field.unit,
                },
            )?;
        }
        Ok(object.end()?)
    }
}

impl Form for Json {
    fn write(
        &mut self,
        rows: Rows<'_, '_>,
        lookup: &mut Lookup,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(stats) = rows.stats.filter(|_| self.is_document) else {
            let stats = rows.stats.filter(|_| rows.repeated);
            let boottime_ns = stats.map(|stats| stats.boottime_ns);
            for row in rows.shown {
                self.write_row(&row, boottime_ns, lookup, output)?;
                output.write_all(b"\n")?;
            }
            return Ok(());
        };
        write!(
            output,
            r#"{{"source":"{}","boottime_ns":{},"took_ns":{},"torn":{},"missed":{},"read":{}"#,
            stats.source,
            stats.boottime_ns,
            stats.took.as_nanos(),
            stats.torn,
            stats.missed,
            rows.processes,
        )?;
        if let Some(ended) = rows.ended {
            let lost = stats.lost_exits;
            write!(output, r#","ended":{ended},"lost_exits":{lost}"#)?;
        }
        let list = if rows.threads { "threads" } else { "processes" };
        write!(output, r#","{list}":["#)?;
        for (i, row) in rows.shown.enumerate() {
            if i > 0 {
                output.write_all(b",")?;
            }
            self.write_row(&row, None, lookup, output)?;
        }
        output.write_all(b"]}\n")
    }
}

/// A value as JSON has it.
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
            // More decimals than that are noise.
            (Value::Real(number), _) => serializer.serialize_f64((number * 1e4).round() / 1e4),
            (Value::Truth(truth), _) => serializer.serialize_bool(truth),
            (Value::Text(text), _) => Text(text).serialize(serializer),
            (Value::Arguments(line), _) => serializer.collect_seq(arguments(line).map(Text)),
            (Value::NoArguments(_), _) => serializer.collect_seq([(); 0]),
            (Value::Numbers(numbers), _) => numbers.serialize(serializer),
        }
    }
}

/// Bytes: a string if they are UTF-8, else an object `{"escaped": …}` with the string that [`escape`] makes of them.
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

    use super::*;

    fn json(value: Value<'_>, unit: Unit) -> String {
        serde_json::to_string(&Member { value, unit }).expect("JSON")
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
