//! Writes a file, row group by row group and column by column.

use std::{fmt::Write as _, io::Write, sync::Arc};

use parquet::{
    basic::{
        Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
    },
    column::writer::ColumnCloseResult,
    data_type::{ByteArray, ByteArrayType, Int64Type},
    file::{
        metadata::{KeyValue, RowGroupMetaData},
        properties::{EnabledStatistics, WriterProperties},
        writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::{ColumnPath, Type, TypePtr},
};

use super::{
    Error, File, MOST_FOOTER_BYTES, MOST_GROUP_BYTES, MOST_GROUPS, MOST_ROWS, VERSION, key,
    sums::{Block, MAGIC, Summed, TAIL},
};
use crate::{
    rows::{Cells, Columns},
    table::{Column, Kind, Table},
};

/// Writes one file. What it writes to need not seek; the file is complete after [`Writer::finish`].
pub struct Writer<W: Write + Send> {
    table: &'static Table,
    out: SerializedFileWriter<Summed<W>>,
    /// The CRC of each row group, in hexadecimal.
    sums: String,
}

impl<W: Write + Send> Writer<W> {
    /// Begins a file of a table.
    pub fn new(out: W, table: &'static Table) -> Result<Self, Error> {
        Self::with(out, table, true)
    }

    /// Begins a file that soon goes into another one: without what columns mean, indexes of pages, and statistics but of
    /// `time`, which would be most of its bytes.
    pub fn part(out: W, table: &'static Table) -> Result<Self, Error> {
        Self::with(out, table, false)
    }

    fn with(out: W, table: &'static Table, is_whole: bool) -> Result<Self, Error> {
        let statistics = if is_whole {
            EnabledStatistics::Page
        } else {
            EnabledStatistics::None
        };
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("fastproc ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BINARY_PACKED)
            .set_statistics_enabled(statistics)
            .set_offset_index_disabled(!is_whole)
            .set_key_value_metadata(Some(described(table, is_whole)));
        if !is_whole {
            let time = ColumnPath::from("time");
            properties = properties.set_column_statistics_enabled(time, EnabledStatistics::Chunk);
        }
        for column in &table.columns {
            if column.kind == Kind::Text {
                let path = ColumnPath::from(column.name);
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), true)
                    .set_column_encoding(path, Encoding::PLAIN);
            }
        }
        let mut out = SerializedFileWriter::new(
            Summed::new(out),
            schema(table)?,
            Arc::new(properties.build()),
        )?;
        out.flush()?;
        out.inner_mut().take_sum();
        Ok(Self {
            table,
            out,
            sums: String::new(),
        })
    }

    /// Writes a row group, of which one column is in memory at a time; more than one if there are more than [`MOST_ROWS`]. The
    /// rows are sorted, and of this file's table.
    pub fn group(&mut self, rows: &dyn Columns) -> Result<(), Error> {
        let count = rows.rows();
        let mut from = 0;
        loop {
            let to = count.min(from + MOST_ROWS);
            let mut group = self.out.next_row_group()?;
            for (at, column) in self.table.columns.iter().enumerate() {
                let mut cells = rows.column(at);
                if cells.len() != count {
                    return Err(Error::Rows);
                }
                if to - from < count {
                    cells = cells.part(from..to).ok_or(Error::Rows)?;
                }
                write_column(&mut group, column, &cells, to - from)?;
            }
            group.close()?;
            self.group_ends()?;
            if to == count {
                return Ok(());
            }
            from = to;
        }
    }

    /// Appends a row group of another file of the same table without decoding it, and checks its CRC. A column that the
    /// other file does not have is null; one that only the other file has is left out. What another version wrote in another
    /// way is decoded nevertheless.
    pub fn copy_group(&mut self, file: &File, group: usize) -> Result<(), Error> {
        let (chunks, bytes) = match file.chunks(group) {
            Err(Error::Footer(_)) => {
                let table = self.table;
                return self.group(&Decoded { file, group, table });
            }
            chunks => chunks?,
        };
        let rows = file.rows(group);
        let mut chunks: Vec<_> = chunks.into_iter().map(Some).collect();
        let mut into = self.out.next_row_group()?;
        for column in &self.table.columns {
            let found = chunks.iter_mut().find(|chunk| {
                chunk.as_ref().is_some_and(|chunk: &ColumnCloseResult| {
                    chunk.metadata.column_descr().name() == column.name
                })
            });
            if let Some(chunk) = found.and_then(Option::take) {
                into.append_column(&bytes, chunk)?;
            } else {
                let count = rows as usize;
                let none = Cells::unknown(column.kind, count);
                write_column(&mut into, column, &none, count)?;
            }
        }
        into.close()?;
        self.group_ends()
    }

    fn group_ends(&mut self) -> Result<(), Error> {
        self.out.flush()?;
        let sum = self.out.inner_mut().take_sum();
        let _ = write!(self.sums, "{sum:08x}");
        let groups = self.out.flushed_row_groups();
        let bytes: i64 = groups.last().map_or(0, RowGroupMetaData::compressed_size);
        if bytes as u64 > MOST_GROUP_BYTES {
            return Err(Error::TooLarge("the size of a row group"));
        }
        if groups.len() > MOST_GROUPS {
            return Err(Error::TooLarge("the number of row groups"));
        }
        Ok(())
    }

    /// Writes indexes of pages, our block and the footer, and gives back where all was written.
    pub fn finish(mut self) -> Result<W, Error> {
        let at = self.out.bytes_written() as u64;
        let sums = KeyValue::new(key::SUMS.to_owned(), self.sums);
        self.out.append_key_value_metadata(sums);
        self.out.inner_mut().hold();
        let (mut out, held) = self.out.into_inner()?.into_parts();
        let (rest, tail) = held.split_last_chunk::<TAIL>().ok_or(Error::NoHistory)?;
        debug_assert_eq!(&tail[4..], MAGIC);
        let footer = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]) as usize;
        let (indexes, footer) = rest.split_at(rest.len().saturating_sub(footer));
        if indexes.len().max(footer.len()) as u64 > MOST_FOOTER_BYTES {
            return Err(Error::TooLarge("the size of the footer"));
        }
        let block = Block::of(at, indexes, footer, tail);
        for part in [indexes, &block.to_bytes(), footer, tail] {
            out.write_all(part)?;
        }
        out.flush()?;
        Ok(out)
    }
}

/// A row group of a file, of which one column is in memory at a time.
struct Decoded<'a> {
    file: &'a File,
    group: usize,
    table: &'static Table,
}

impl Columns for Decoded<'_> {
    fn rows(&self) -> usize {
        self.file.rows(self.group) as usize
    }

    fn column(&self, at: usize) -> Cells {
        let column = &self.table.columns[at];
        self.file.column(self.group, column.name, column.kind)
    }
}

/// What a footer says about a table: engines show it as metadata of the file.
fn described(table: &Table, is_whole: bool) -> Vec<KeyValue> {
    let mut values = vec![
        KeyValue::new(key::VERSION.to_owned(), VERSION.to_string()),
        KeyValue::new(key::TABLE.to_owned(), table.name.to_owned()),
    ];
    if !is_whole {
        return values;
    }
    let meaning = table.meaning.to_owned();
    values.push(KeyValue::new(key::MEANING.to_owned(), meaning));
    values.extend(table.columns.iter().map(|column| {
        let unit = match column.unit {
            "" => String::new(),
            unit => format!("{unit}: "),
        };
        let meaning = format!("{unit}{}", column.meaning);
        KeyValue::new(format!("{}{}", key::COLUMN, column.name), meaning)
    }));
    values
}

/// The Parquet schema of a table: columns that may be null.
fn schema(table: &Table) -> Result<TypePtr, Error> {
    let mut fields = Vec::with_capacity(table.columns.len());
    for column in &table.columns {
        fields.push(Arc::new(field(column)?));
    }
    let schema = Type::group_type_builder(table.name).with_fields(fields);
    Ok(Arc::new(schema.build()?))
}

/// The Parquet type of a column.
pub(super) fn field(column: &Column) -> Result<Type, Error> {
    let (physical, logical) = match column.kind {
        Kind::Number => (Physical::INT64, None),
        Kind::Time => (
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
        ),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let builder = Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL);
    Ok(builder.build()?)
}

/// Writes the next column of a row group.
fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    cells: &Cells,
    count: usize,
) -> Result<(), Error> {
    let mut writer: SerializedColumnWriter<'_> = group.next_column()?.ok_or(Error::Rows)?;
    match (column.kind, cells) {
        (Kind::Number | Kind::Time, Cells::Numbers(cells)) if cells.len() == count => {
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let values: Vec<i64> = cells.iter().flatten().copied().collect();
            let typed = writer.typed::<Int64Type>();
            typed.write_batch(&values, Some(&levels), None)?;
        }
        (Kind::Text, Cells::Texts(cells)) if cells.len() == count => {
            let typed = writer.typed::<ByteArrayType>();
            for cells in cells.chunks(4096) {
                let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
                let values = cells.iter().flatten().map(|text| ByteArray::from(&**text));
                typed.write_batch(&values.collect::<Vec<_>>(), Some(&levels), None)?;
            }
        }
        _ => return Err(Error::Rows),
    }
    writer.close()?;
    Ok(())
}
