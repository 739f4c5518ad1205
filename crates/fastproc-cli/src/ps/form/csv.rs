//! Comma-separated values by RFC 4180.

use std::io;

use fastproc_columns::{Lookup, number};

use super::{Column, Form, Layout, Rows};

/// A header, then a record a row.
#[derive(Debug)]
pub struct Csv {
    columns: Vec<Column>,
    header_is_due: bool,
    text: Vec<u8>,
}

impl Csv {
    /// Nothing is written yet.
    pub fn new(layout: Layout) -> Self {
        Self {
            columns: layout.columns,
            header_is_due: layout.headings,
            text: Vec::new(),
        }
    }
}

impl Form for Csv {
    fn write(
        &mut self,
        rows: Rows<'_, '_>,
        lookup: &mut Lookup,
        output: &mut dyn io::Write,
    ) -> io::Result<()> {
        let mut writer = ::csv::Writer::from_writer(output);
        if std::mem::take(&mut self.header_is_due) {
            let time = rows.stats.filter(|_| rows.repeated).map(|_| "boottime_ns");
            let keys = self.columns.iter().map(|column| column.key.as_str());
            writer
                .write_record(time.into_iter().chain(keys))
                .map_err(plain)?;
        }
        for row in rows.shown {
            if let Some(stats) = rows.stats.filter(|_| rows.repeated) {
                self.text.clear();
                number::write(stats.boottime_ns, &mut self.text);
                writer.write_field(&self.text).map_err(plain)?;
            }
            for Column { field, .. } in &self.columns {
                self.text.clear();
                field
                    .value(&row, lookup)
                    .write_for_csv(field.unit, &mut self.text);
                writer.write_field(&self.text).map_err(plain)?;
            }
            writer.write_record(None::<&[u8]>).map_err(plain)?;
        }
        // What is still in the writer goes to the output; whether that is written on is its own affair.
        writer
            .into_inner()
            .map(drop)
            .map_err(::csv::IntoInnerError::into_error)
    }
}

/// The error of the output itself: wrapped, nobody could tell a pipe that was closed from a full disk.
fn plain(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
