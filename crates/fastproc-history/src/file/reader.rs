//! Reads a file: footer and row groups are checked before they are parsed.

use std::{
    fs, io,
    os::unix::fs::FileExt,
    sync::{Arc, OnceLock},
};

use bytes::{Buf, Bytes};
use crc32fast::Hasher;
use parquet::{
    column::{
        reader::{get_column_reader, get_typed_column_reader},
        writer::ColumnCloseResult,
    },
    data_type::{ByteArrayType, Int64Type},
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader},
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
        statistics::Statistics,
    },
};

use super::{
    Error, MOST_COLUMN_BYTES, MOST_FOOTER_BYTES, MOST_GROUP_BYTES, MOST_GROUPS, MOST_ROWS, Span,
    VERSION, key,
    sums::{Block, MAGIC, TAIL},
};
use crate::{
    rows::{Cells, Rows},
    table::{Kind, Table},
};

/// An open file, whose footer is checked.
pub struct File {
    file: fs::File,
    table: &'static Table,
    metadata: ParquetMetaData,
    groups: Vec<Group>,
}

/// A row group.
struct Group {
    at: u64,
    bytes: u64,
    sum: u32,
    /// Whether the sum is right, once that is known.
    right: OnceLock<bool>,
}

impl File {
    /// Opens a file of a table. Reads and checks its footer.
    pub fn open(file: fs::File, table: &'static Table) -> Result<Self, Error> {
        let length = file.metadata()?.len();
        let ends = (MAGIC.len() + Block::BYTES + TAIL) as u64;
        let mut magic = [0; 4];
        let mut tail = [0; TAIL];
        if length < ends {
            return Err(Error::NoHistory);
        }
        file.read_exact_at(&mut magic, 0)?;
        file.read_exact_at(&mut tail, length - TAIL as u64)?;
        if &magic != MAGIC || &tail[4..] != MAGIC {
            return Err(Error::NoHistory);
        }
        let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        if footer > length - ends {
            return Err(Error::NoHistory);
        }
        if footer > MOST_FOOTER_BYTES {
            return Err(Error::TooLarge("the size of the footer"));
        }
        let block_at = length - TAIL as u64 - footer - Block::BYTES as u64;
        let mut block = [0; Block::BYTES];
        file.read_exact_at(&mut block, block_at)?;
        let block = Block::from_bytes(&block).ok_or(Error::NoHistory)?;
        if block.indexes < MAGIC.len() as u64 || block.indexes > block_at {
            return Err(Error::Footer("its place is wrong"));
        }
        if block_at - block.indexes > MOST_FOOTER_BYTES {
            return Err(Error::TooLarge("the size of the indexes"));
        }
        let indexes = bytes_at(&file, block.indexes, block_at - block.indexes)?;
        let footer = bytes_at(&file, block_at + Block::BYTES as u64, footer)?;
        if Block::of(block.indexes, &indexes, &footer, &tail) != block {
            return Err(Error::Footer("its CRC is wrong"));
        }
        let metadata = ParquetMetaDataReader::decode_metadata(&footer)
            .map_err(|_| Error::Footer("it does not follow the format"))?;
        let groups = checked(&metadata, table, block.indexes)?;
        Ok(Self {
            file,
            table,
            metadata,
            groups,
        })
    }

    /// How many row groups it has.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// What a row group covers, as the footer says. `None` if it does not say so.
    pub fn span(&self, group: usize) -> Option<Span> {
        let group = self.metadata.row_groups().get(group)?;
        let time = group.columns().iter();
        let time = time.into_iter().find(|chunk| is(chunk, "time"))?;
        match time.statistics()? {
            Statistics::Int64(values) => Some(Span {
                from: *values.min_opt()?,
                to: *values.max_opt()?,
            }),
            _ => None,
        }
    }

    /// How many rows a row group has; 0 if there is no such group.
    pub fn rows(&self, group: usize) -> u64 {
        let group = self.metadata.row_groups().get(group);
        group.map_or(0, |group| group.num_rows() as u64)
    }

    /// Reads columns of a row group, whose CRC is checked at the first read. A column that the file does not have is null in
    /// every row; one that is not wanted has no values.
    pub fn read(&self, group: usize, wanted: &[&str]) -> Result<Rows, Error> {
        self.check(group)?;
        let chunks = self.metadata.row_group(group).columns();
        let mut rows = Rows::new(self.table);
        rows.count = self.rows(group) as usize;
        for (column, cells) in self.table.columns.iter().zip(&mut rows.columns) {
            if !wanted.contains(&column.name) {
                continue;
            }
            *cells = match chunks.iter().find(|chunk| is(chunk, column.name)) {
                Some(chunk) => self
                    .cells(chunk, column.kind, rows.count)
                    .map_err(|error| match error {
                        Error::Parquet(_) => self.damaged(group, "its values cannot be decoded"),
                        error => error,
                    })?,
                None => match column.kind {
                    Kind::Number | Kind::Time => Cells::Numbers(vec![None; rows.count]),
                    Kind::Text => Cells::Texts(vec![None; rows.count]),
                },
            };
        }
        Ok(rows)
    }

    /// Reads one column chunk.
    fn cells(&self, chunk: &ColumnChunkMetaData, kind: Kind, count: usize) -> Result<Cells, Error> {
        let (at, length) = chunk.byte_range();
        let bytes = Part {
            at,
            bytes: bytes_at(&self.file, at, length)?,
        };
        let pages = SerializedPageReader::new(Arc::new(bytes), chunk, count, None)?;
        let reader = get_column_reader(chunk.column_descr_ptr(), Box::new(pages));
        let mut levels = Vec::with_capacity(count);
        let cells = match kind {
            Kind::Number | Kind::Time => {
                let mut values = Vec::new();
                get_typed_column_reader::<Int64Type>(reader).read_records(
                    count,
                    Some(&mut levels),
                    None,
                    &mut values,
                )?;
                Cells::Numbers(spread(&levels, values.into_iter().map(Some)))
            }
            Kind::Text => {
                let mut values = Vec::new();
                get_typed_column_reader::<ByteArrayType>(reader).read_records(
                    count,
                    Some(&mut levels),
                    None,
                    &mut values,
                )?;
                let mut room = MOST_COLUMN_BYTES;
                let mut texts = Vec::with_capacity(values.len());
                for value in &values {
                    room = room
                        .checked_sub(value.len())
                        .ok_or(Error::TooLarge("the size of a column"))?;
                    texts.push(Some(value.as_utf8()?.into()));
                }
                Cells::Texts(spread(&levels, texts.into_iter()))
            }
        };
        if cells.len() != count {
            return Err(ParquetError::General("rows are missing".into()).into());
        }
        Ok(cells)
    }

    /// The chunks of a row group with their indexes of pages, for a copy, and their bytes.
    pub(super) fn chunks(&self, group: usize) -> Result<(Vec<ColumnCloseResult>, Part), Error> {
        self.check(group)?;
        let place = &self.groups[group];
        let bytes = Part {
            at: place.at,
            bytes: bytes_at(&self.file, place.at, place.bytes)?,
        };
        let metadata = self.metadata.row_group(group);
        let chunks = metadata.columns().iter().map(|chunk| ColumnCloseResult {
            bytes_written: chunk.compressed_size() as u64,
            rows_written: metadata.num_rows() as u64,
            metadata: chunk.clone(),
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        });
        Ok((chunks.collect(), bytes))
    }

    /// Checks the CRC of a row group once.
    fn check(&self, group: usize) -> Result<(), Error> {
        let place = self.groups.get(group).ok_or(Error::NoGroup(group))?;
        let right = match place.right.get() {
            Some(&right) => right,
            None => {
                let mut sum = Hasher::new();
                let mut buffer = vec![0; 1 << 16];
                let (mut at, end) = (place.at, place.at + place.bytes);
                while at < end {
                    let piece = (end - at).min(buffer.len() as u64) as usize;
                    self.file.read_exact_at(&mut buffer[..piece], at)?;
                    sum.update(&buffer[..piece]);
                    at += piece as u64;
                }
                *place.right.get_or_init(|| sum.finalize() == place.sum)
            }
        };
        match right {
            true => Ok(()),
            false => Err(self.damaged(group, "its CRC is wrong")),
        }
    }

    fn damaged(&self, group: usize, why: &'static str) -> Error {
        Error::Group {
            group,
            rows: self.rows(group),
            why,
        }
    }
}

fn is(chunk: &ColumnChunkMetaData, name: &str) -> bool {
    chunk.column_descr().name() == name
}

/// Puts values where the level is 1, and none elsewhere.
fn spread<T>(levels: &[i16], mut values: impl Iterator<Item = Option<T>>) -> Vec<Option<T>> {
    let cells = levels.iter().map(|&level| match level {
        0 => None,
        _ => values.next().flatten(),
    });
    cells.collect()
}

/// Checks what a footer says, and finds the row groups: they stand one after the other, from the beginning to the indexes.
fn checked(
    metadata: &ParquetMetaData,
    table: &'static Table,
    end: u64,
) -> Result<Vec<Group>, Error> {
    let values = metadata.file_metadata().key_value_metadata();
    let value = |key: &str| {
        let value = values
            .into_iter()
            .flatten()
            .find(|value| value.key == key)?;
        value.value.as_deref()
    };
    let version = value(key::VERSION).ok_or(Error::NoHistory)?;
    let version = version.parse().map_err(|_| Error::Footer("no version"))?;
    if version > VERSION {
        return Err(Error::Newer(version));
    }
    let found = value(key::TABLE).unwrap_or_default();
    if found != table.name {
        return Err(Error::Table {
            expected: table.name,
            found: found.chars().take(64).collect(),
        });
    }
    let sums = value(key::SUMS).unwrap_or_default();
    let groups = metadata.row_groups();
    if groups.len() > MOST_GROUPS {
        return Err(Error::TooLarge("the number of row groups"));
    }
    if sums.len() != groups.len() * 8 || !sums.is_ascii() {
        return Err(Error::Footer("CRCs are missing"));
    }
    let mut at = MAGIC.len() as u64;
    let mut places = Vec::with_capacity(groups.len());
    for (number, group) in groups.iter().enumerate() {
        if group.num_rows() < 0 || group.num_rows() > MOST_ROWS as i64 {
            return Err(Error::TooLarge("the number of rows"));
        }
        let begin = at;
        for chunk in group.columns() {
            let from = chunk
                .dictionary_page_offset()
                .unwrap_or_else(|| chunk.data_page_offset());
            let bytes = u64::try_from(chunk.compressed_size()).ok();
            let next = bytes.and_then(|bytes| at.checked_add(bytes));
            match next.filter(|&next| next <= end && u64::try_from(from) == Ok(at)) {
                Some(next) => at = next,
                None => return Err(Error::Footer("a row group is elsewhere")),
            }
        }
        if at - begin > MOST_GROUP_BYTES {
            return Err(Error::TooLarge("the size of a row group"));
        }
        let sum = u32::from_str_radix(&sums[number * 8..][..8], 16);
        places.push(Group {
            at: begin,
            bytes: at - begin,
            sum: sum.map_err(|_| Error::Footer("CRCs are missing"))?,
            right: OnceLock::new(),
        });
    }
    if at != end {
        return Err(Error::Footer("a row group is elsewhere"));
    }
    Ok(places)
}

/// Bytes of a file. Their number was checked.
fn bytes_at(file: &fs::File, at: u64, length: u64) -> io::Result<Bytes> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes.into())
}

/// A part of a file in memory, which is read by places in the file.
pub(super) struct Part {
    at: u64,
    bytes: Bytes,
}

impl Part {
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let skip = start.checked_sub(self.at).map(|skip| skip as usize);
        match skip.filter(|&skip| skip <= self.bytes.len()) {
            Some(skip) => Ok(self.bytes.slice(skip..)),
            None => Err(ParquetError::EOF("outside of the row group".into())),
        }
    }
}

impl Length for Part {
    fn len(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
}

impl ChunkReader for Part {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        match length <= bytes.len() {
            true => Ok(bytes.slice(..length)),
            false => Err(ParquetError::EOF("outside of the row group".into())),
        }
    }
}
