//! What a footer says, checked: no number of it is used that does not fit the file.

use std::sync::OnceLock;

use super::{
    Error, MOST_GROUP_BYTES, MOST_GROUPS, MOST_ROWS, Span, VERSION, key, sums::MAGIC, thrift::Value,
};
use crate::table::{Kind, Table};

/// The columns and row groups of a file.
pub struct Footer {
    /// Names of the columns. The kind is `None` if this version has no such type.
    pub columns: Vec<(Box<str>, Option<Kind>)>,
    /// The row groups.
    pub groups: Vec<Group>,
    /// Where they end.
    pub end: u64,
}

/// A row group.
pub struct Group {
    /// Where it begins.
    pub at: u64,
    /// How long it is.
    pub bytes: u64,
    /// How many rows it has, at most [`MOST_ROWS`].
    pub rows: usize,
    /// What it covers.
    pub span: Option<Span>,
    /// Where each column begins, and how long it is: one after the other.
    pub chunks: Vec<(u64, u64)>,
    /// Its CRC.
    pub sum: u32,
    /// Whether the CRC is right, once that is known.
    pub right: OnceLock<bool>,
}

/// Most columns of a file.
const MOST_COLUMNS: usize = 1 << 10;
/// Numbers of the format.
const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;
const OPTIONAL: i64 = 1;
const ZSTD: i64 = 6;

const WRONG: Error = Error::Footer("it does not follow the format");

impl Footer {
    /// Reads the footer of a file of a table, whose row groups end at `end`, and whose indexes of pages end at `last`.
    pub fn read(
        mut bytes: &[u8],
        table: &'static Table,
        end: u64,
        last: u64,
    ) -> Result<Self, Error> {
        let footer = Value::structure(&mut bytes).ok_or(WRONG)?;
        let values = footer.list(5).unwrap_or_default();
        let value = |key: &str| {
            let value = values.iter().find(|value| value.text(1) == Some(key))?;
            value.text(2)
        };
        let version = value(key::VERSION).ok_or(Error::NoHistory)?;
        let version = version.parse().map_err(|_| WRONG)?;
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
        let columns = columns(footer.list(2).ok_or(WRONG)?).ok_or(WRONG)?;
        let list = footer.list(4).ok_or(WRONG)?;
        if list.len() > MOST_GROUPS {
            return Err(Error::TooLarge("the number of row groups"));
        }
        let (sums, rest) = value(key::SUMS).unwrap_or_default().as_bytes().as_chunks();
        if sums.len() != list.len() || !rest.is_empty() {
            return Err(Error::Footer("CRCs are missing"));
        }
        let mut at = MAGIC.len() as u64;
        let mut groups = Vec::with_capacity(list.len());
        for (list, &sum) in list.iter().zip(sums) {
            let group = group(list, &columns, at, sum, [end, last])?;
            at += group.bytes;
            groups.push(group);
        }
        if at != end {
            return Err(WRONG);
        }
        Ok(Self {
            columns,
            groups,
            end,
        })
    }
}

/// The columns of a schema: a root, and what is below it without any more levels.
fn columns(schema: &[Value<'_>]) -> Option<Vec<(Box<str>, Option<Kind>)>> {
    let (root, columns) = schema.split_first()?;
    let flat = columns.len() <= MOST_COLUMNS && root.size(5)? == columns.len() as u64;
    let mut found = Vec::with_capacity(if flat { columns.len() } else { 0 });
    for column in columns.iter().filter(|_| flat) {
        let name = column.text(4)?;
        if column.member(5).is_some()
            || found
                .iter()
                .any(|(other, _): &(Box<str>, _)| **other == *name)
        {
            return None;
        }
        found.push((name.into(), kind(column)));
    }
    flat.then_some(found)
}

/// The kind of a column.
fn kind(column: &Value<'_>) -> Option<Kind> {
    let logical = column.member(10);
    let kind = match (column.int(1)?, logical) {
        (INT64, None) => Kind::Number,
        (INT64, Some(logical)) => {
            let time = logical.member(8)?;
            let utc = time.member(1) == Some(&Value::Bool(true));
            (utc && time.member(2)?.member(2).is_some()).then_some(Kind::Time)?
        }
        (BYTE_ARRAY, Some(logical)) if logical.member(1).is_some() => Kind::Text,
        _ => return None,
    };
    (column.int(3) == Some(OPTIONAL)).then_some(kind)
}

/// A row group that begins at `at`: before `ends[0]`, and its indexes of pages between `ends`.
fn group(
    group: &Value<'_>,
    columns: &[(Box<str>, Option<Kind>)],
    at: u64,
    sum: [u8; 8],
    ends: [u64; 2],
) -> Result<Group, Error> {
    let rows = group.size(3).ok_or(WRONG)?;
    if rows > MOST_ROWS as u64 {
        return Err(Error::TooLarge("the number of rows"));
    }
    let list = group.list(1).ok_or(WRONG)?;
    if list.len() != columns.len() {
        return Err(WRONG);
    }
    let mut next = at;
    let mut chunks = Vec::with_capacity(list.len());
    let mut span = None;
    for (list, (name, kind)) in list.iter().zip(columns) {
        let place = chunk(list, next, rows, ends).ok_or(WRONG)?;
        chunks.push((next, place));
        next += place;
        if **name == *"time" && *kind == Some(Kind::Time) {
            span = list
                .member(3)
                .and_then(|chunk| self::span(chunk.member(12)?));
        }
    }
    if next - at > MOST_GROUP_BYTES {
        return Err(Error::TooLarge("the size of a row group"));
    }
    let sum = std::str::from_utf8(&sum).map_err(|_| WRONG)?;
    Ok(Group {
        at,
        bytes: next - at,
        rows: rows as usize,
        span,
        chunks,
        sum: u32::from_str_radix(sum, 16).map_err(|_| WRONG)?,
        right: OnceLock::new(),
    })
}

/// The length of a column chunk, which begins at `at`.
fn chunk(chunk: &Value<'_>, at: u64, rows: u64, [end, last]: [u64; 2]) -> Option<u64> {
    let says = chunk.member(3)?;
    let first = match says.member(11) {
        Some(_) => says.size(11)?,
        None => says.size(9)?,
    };
    let bytes = says.size(7)?;
    // The indexes of pages: offset and length.
    let indexes = [(4, 5), (6, 7)].iter().all(|&(from, length)| {
        chunk.member(from).is_none()
            || (|| {
                let from = chunk.size(from).filter(|&from| from >= end)?;
                let to = from.checked_add(chunk.size(length)?)?;
                (to <= last).then_some(())
            })()
            .is_some()
    });
    let right = indexes
        && first == at
        // The crate computes with it, when it copies.
        && says.size(9)? >= first
        && says.size(6).is_some()
        && bytes <= end.checked_sub(at)?
        && says.size(5)? == rows
        && says.int(4)? == ZSTD;
    right.then_some(bytes)
}

/// The least and the greatest value.
fn span(statistics: &Value<'_>) -> Option<Span> {
    let value = |id| Some(i64::from_le_bytes(statistics.bytes(id)?.try_into().ok()?));
    Some(Span {
        from: value(6)?,
        to: value(5)?,
    })
}
