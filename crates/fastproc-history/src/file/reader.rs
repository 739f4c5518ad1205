//! Reads a file: footer and row groups are checked before they are parsed.

use std::{
    fs,
    io::{self, Cursor},
    os::unix::fs::FileExt,
};

use bytes::Bytes;
use crc32fast::Hasher;
use parquet::{
    column::writer::ColumnCloseResult,
    errors::ParquetError,
    file::{
        metadata::{PageIndexPolicy, ParquetMetaDataReader},
        reader::{ChunkReader, Length},
    },
};

use super::{
    Error, MOST_FOOTER_BYTES, MOST_READ_BYTES, Span,
    footer::{Footer, Group},
    ours::is_like_ours,
    pages::{Room, decode},
    sums::{Block, MAGIC, TAIL},
};
use crate::{
    rows::{Cells, Rows},
    table::{Kind, Table},
};

/// An open file, whose footer is checked.
pub struct File {
    from: fs::File,
    table: &'static Table,
    footer: Footer,
    /// The bytes of the footer and of the indexes of pages, for a copy.
    checked: [Bytes; 2],
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
        Ok(Self {
            from: file,
            table,
            footer: Footer::read(&footer, table, block.indexes, block_at)?,
            checked: [footer, indexes],
        })
    }

    /// How many row groups it has.
    pub fn groups(&self) -> usize {
        self.footer.groups.len()
    }

    /// What a row group covers, as the footer says. `None` if it does not say so.
    pub fn span(&self, group: usize) -> Option<Span> {
        self.footer.groups.get(group)?.span
    }

    /// How many rows a row group has; 0 if there is no such group.
    pub fn rows(&self, group: usize) -> u64 {
        let group = self.footer.groups.get(group);
        group.map_or(0, |group| group.rows as u64)
    }

    /// Reads columns of a row group, whose CRC is checked at the first read. A column that the file does not have is null in
    /// every row; one that is not wanted has no values.
    pub fn read(&self, group: usize, wanted: &[&str]) -> Result<Rows, Error> {
        self.read_some(group, wanted, None)
    }

    /// Like [`File::read`], but keeps these rows only, which ascend: for less memory, where others are not needed. A row that
    /// does not exist is null.
    pub fn read_rows(&self, group: usize, wanted: &[&str], rows: &[usize]) -> Result<Rows, Error> {
        self.read_some(group, wanted, Some(rows))
    }

    fn read_some(
        &self,
        group: usize,
        wanted: &[&str],
        kept: Option<&[usize]>,
    ) -> Result<Rows, Error> {
        let place = self.check(group)?;
        let mut rows = Rows::new(self.table);
        rows.count = kept.map_or(place.rows, <[usize]>::len);
        let mut room = Room(MOST_READ_BYTES);
        for (column, cells) in self.table.columns.iter().zip(&mut rows.columns) {
            if !wanted.contains(&column.name) {
                continue;
            }
            let mut columns = self.footer.columns.iter();
            let Some(at) = columns.position(|(name, _)| **name == *column.name) else {
                *cells = Cells::unknown(column.kind, rows.count);
                continue;
            };
            if self.footer.columns[at].1 != Some(column.kind) {
                return Err(Error::Type(column.name));
            }
            let (at, length) = place.chunks[at];
            let chunk = bytes_at(&self.from, at, length)?;
            let is_text = column.kind == Kind::Text;
            *cells = decode(&chunk, place.rows, is_text, kept, &mut room).ok_or_else(|| {
                if room.is_left() {
                    self.damaged(group, "its values cannot be decoded")
                } else {
                    Error::TooLarge("the size of a row group's values")
                }
            })?;
        }
        Ok(rows)
    }

    /// A column of a row group, for a writer, which refuses one that is empty because it cannot be read.
    pub fn column(&self, group: usize, name: &str, kind: Kind) -> Cells {
        let rows = self.read(group, &[name]);
        let at = self.table.index(name);
        let cells = rows
            .ok()
            .zip(at)
            .map(|(mut rows, at)| rows.columns.swap_remove(at));
        cells.unwrap_or_else(|| Cells::new(kind))
    }

    /// The chunks of a row group with their indexes of pages, for a copy, and their bytes.
    pub(super) fn chunks(&self, group: usize) -> Result<(Vec<ColumnCloseResult>, Part), Error> {
        let place = self.check(group)?;
        let bytes = Part {
            at: place.at,
            bytes: bytes_at(&self.from, place.at, place.bytes)?,
        };
        let [footer, indexes] = &self.checked;
        if !is_like_ours(footer, indexes, self.footer.end) {
            return Err(Error::Footer("another version wrote it"));
        }
        // The crate wants a byte after them, as in a whole file.
        let indexes = Bytes::from([indexes, &b"\0"[..]].concat());
        let metadata = ParquetMetaDataReader::decode_metadata(footer)?;
        let mut reader = ParquetMetaDataReader::new_with_metadata(metadata)
            .with_page_index_policy(PageIndexPolicy::Optional);
        reader.read_page_indexes_sized(&indexes, self.footer.end + indexes.len() as u64)?;
        let metadata = reader.finish()?;
        let pages = metadata.page_index();
        let columns = metadata.row_group(group).columns().iter().enumerate();
        let chunks = columns.map(|(at, chunk)| ColumnCloseResult {
            bytes_written: chunk.compressed_size() as u64,
            rows_written: place.rows as u64,
            metadata: chunk.clone(),
            bloom_filter: None,
            column_index: pages.and_then(|pages| pages.column_index(group, at).cloned()),
            offset_index: pages.and_then(|pages| pages.offset_index(group, at).cloned()),
        });
        Ok((chunks.collect(), bytes))
    }

    /// Checks the CRC of a row group once.
    fn check(&self, group: usize) -> Result<&Group, Error> {
        let place = self.footer.groups.get(group);
        let place = place.ok_or(Error::NoGroup(group))?;
        let right = if let Some(&right) = place.right.get() {
            right
        } else {
            let right = self.sum(place)? == place.sum;
            *place.right.get_or_init(|| right)
        };
        if !right {
            return Err(self.damaged(group, "its CRC is wrong"));
        }
        Ok(place)
    }

    /// The CRC of the bytes of a row group, of which few are in memory at a time.
    fn sum(&self, place: &Group) -> Result<u32, Error> {
        let mut sum = Hasher::new();
        let mut buffer = vec![0; 1 << 16];
        let (mut at, end) = (place.at, place.at + place.bytes);
        while at < end {
            let piece = (end - at).min(buffer.len() as u64) as usize;
            self.from.read_exact_at(&mut buffer[..piece], at)?;
            sum.update(&buffer[..piece]);
            at += piece as u64;
        }
        Ok(sum.finalize())
    }

    /// Where the bytes of a row group are.
    #[cfg(test)]
    pub(super) fn place(&self, group: usize) -> std::ops::Range<usize> {
        let place = &self.footer.groups[group];
        place.at as usize..(place.at + place.bytes) as usize
    }

    fn damaged(&self, group: usize, why: &'static str) -> Error {
        Error::Group {
            group,
            rows: self.rows(group),
            why,
        }
    }
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
    type T = Cursor<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(Cursor::new(self.from(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF("outside of the row group".into()));
        }
        Ok(bytes.slice(..length))
    }
}
