//! Comma-separated values as in RFC 4180.

use std::io;

use fastproc_columns::{Subject, Value, number};

use super::{Column, Layout, RowWriter, Rows};

/// Writes a header, then a record for each row.
#[derive(Debug)]
pub struct Csv<S: Subject> {
    columns: Vec<Column<S>>,
    header_is_due: bool,
    no_formulas: bool,
    text: Vec<u8>,
}

impl<S: Subject> Csv<S> {
    /// Creates the writer. Writes nothing yet.
    pub fn new(layout: Layout<S>) -> Self {
        Self {
            columns: layout.columns,
            header_is_due: layout.headings,
            no_formulas: layout.no_formulas,
            text: Vec::new(),
        }
    }
}

impl<S: Subject> RowWriter<S> for Csv<S> {
    fn write(
        &mut self,
        rows: Rows<'_, '_, S>,
        lookup: &mut S::Lookup,
        output: &mut dyn io::Write,
    ) -> io::Result<()> {
        let mut writer = ::csv::Writer::from_writer(output);
        if std::mem::take(&mut self.header_is_due) {
            let time = rows.boottime_ns.map(|_| "boottime_ns");
            let keys = self.columns.iter().map(|column| column.key.as_str());
            writer
                .write_record(time.into_iter().chain(keys))
                .map_err(plain)?;
        }
        for row in rows.shown {
            if let Some(boottime_ns) = rows.boottime_ns {
                self.text.clear();
                number::write(boottime_ns, &mut self.text);
                writer.write_field(&self.text).map_err(plain)?;
            }
            for Column { field, .. } in &self.columns {
                self.text.clear();
                let value = field.value(&row, lookup);
                value.write_for_csv(field.unit, &mut self.text);
                if self.no_formulas {
                    quote_formula(value, &mut self.text);
                }
                writer.write_field(&self.text).map_err(plain)?;
            }
            writer.write_record(None::<&[u8]>).map_err(plain)?;
        }
        // Pass the buffered rows on. Flushing the output is its own task.
        writer
            .into_inner()
            .map(drop)
            .map_err(::csv::IntoInnerError::into_error)
    }
}

/// Puts a quote before the text of a value that a spreadsheet would take for a formula.
fn quote_formula(value: Value<'_>, text: &mut Vec<u8>) {
    if is_text(value) && is_formula(text) {
        text.insert(0, b'\'');
    }
}

/// Whether another user may have chosen the text. A number may be negative.
const fn is_text(value: Value<'_>) -> bool {
    matches!(
        value,
        Value::Text(_) | Value::Arguments(_) | Value::NoArguments(_)
    )
}

/// Whether a spreadsheet takes the text for a formula.
fn is_formula(text: &[u8]) -> bool {
    matches!(
        text.first(),
        Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r')
    )
}

/// The original error of the output: if it were wrapped, nobody could see whether the pipe was closed or the disk is
/// full.
fn plain(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use fastproc::{Fields, Host, Process, record::Record};
    use fastproc_columns::{Lookup, Processes, Row};

    use super::*;

    fn written(name: &[u8], no_formulas: bool) -> String {
        let mut record = Record::default();
        record.identity.groups = Fields::SCHEDULING.bits();
        record.identity.comm[..name.len()].copy_from_slice(name);
        record.scheduling.nice = -5;
        let columns = ["comm", "nice"].map(|name| name.parse().expect("a field"));
        let mut csv = Csv::<Processes>::new(Layout {
            headings: false,
            no_formulas,
            ..Layout::new(columns.into())
        });
        let rows = Rows::of_events(std::iter::once(Row::new(Process::new(&record, &[]))));
        let host = Host::read().expect("/proc is there");
        let mut output = Vec::new();
        csv.write(rows, &mut Lookup::recorded(host, 1), &mut output)
            .expect("a vector takes everything");
        String::from_utf8(output).expect("text")
    }

    #[test]
    fn rows_of_several_snapshots_begin_with_their_time_below_one_heading() {
        let record = Record::default();
        let columns = vec!["pid".parse().expect("a field")];
        let mut csv = Csv::<Processes>::new(Layout::new(columns));
        let host = Host::read().expect("/proc is there");
        let mut lookup = Lookup::recorded(host, 1);
        let mut output = Vec::new();
        for boottime_ns in [7, 8] {
            let rows = Rows {
                boottime_ns: Some(boottime_ns),
                ..Rows::of_events(std::iter::once(Row::new(Process::new(&record, &[]))))
            };
            csv.write(rows, &mut lookup, &mut output)
                .expect("a vector takes everything");
        }
        assert_eq!(output, b"boottime_ns,pid\n7,0\n8,0\n");
    }

    #[test]
    fn a_name_is_no_formula_if_that_is_asked_for() {
        for name in ["=1+1", "+1", "-1", "@SUM(A1)"] {
            assert_eq!(written(name.as_bytes(), false), format!("{name},-5\n"));
            assert_eq!(written(name.as_bytes(), true), format!("'{name},-5\n"));
        }
        // Their escaped forms begin with a backslash.
        for (name, text) in [(b"\t=1", "\\t=1"), (b"\r=1", "\\r=1")] {
            assert_eq!(written(name, true), format!("{text},-5\n"));
        }
        assert_eq!(written(b"=1,\"", true), "\"'=1,\"\"\",-5\n");
        assert_eq!(written(b"init", true), "init,-5\n");
        assert!(is_formula(b"\t1") && is_formula(b"\r1") && !is_formula(b""));
    }
}
