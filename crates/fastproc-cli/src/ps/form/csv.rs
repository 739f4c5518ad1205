//! Comma-separated values by RFC 4180.

use std::io;

use super::{Column, Form, Rows};
use crate::{
    output::Output,
    ps::{number, subject::Lookup},
};

/// A header, then a record a row.
#[derive(Debug)]
pub struct Csv {
    columns: Vec<Column>,
    header_written: bool,
    text: Vec<u8>,
}

impl Csv {
    /// Nothing is written yet.
    pub fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            header_written: false,
            text: Vec::new(),
        }
    }
}

impl Form for Csv {
    fn write(
        &mut self,
        rows: Rows<'_, '_>,
        lookup: &mut Lookup,
        output: &mut Output,
    ) -> io::Result<()> {
        let mut writer = ::csv::Writer::from_writer(output);
        if !self.header_written {
            let time = rows.repeated.then_some("boottime_ns");
            writer.write_record(
                time.into_iter()
                    .chain(self.columns.iter().map(|column| column.key.as_str())),
            )?;
            self.header_written = true;
        }
        for subject in rows.subjects {
            if rows.repeated {
                self.text.clear();
                number::write(rows.stats.boottime_ns, &mut self.text);
                writer.write_field(&self.text)?;
            }
            for Column { field, .. } in &self.columns {
                self.text.clear();
                field
                    .value(subject, lookup)
                    .write_for_csv(field.unit, &mut self.text);
                writer.write_field(&self.text)?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        // What is still in the writer goes to the output; whether that is written on is its own affair.
        writer
            .into_inner()
            .map(drop)
            .map_err(::csv::IntoInnerError::into_error)
    }
}
