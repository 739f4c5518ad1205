//! The values of one row, and how they come from a record.

use std::{borrow::Cow, sync::Arc};

use fastproc::{
    Plain,
    schema::{Field, Shown, Type},
    words,
};

use crate::{escape::escaped, table::Table};

/// A value. An unknown one is [`Null`](Self::Null).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cell {
    /// Unknown.
    #[default]
    Null,
    /// A number or a time.
    Number(i64),
    /// A text, as [`crate::escape`] writes it.
    Text(Arc<str>),
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<u64>> for Cell {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Self::Null, |number| Self::Number(number.cast_signed()))
    }
}

impl From<&[u8]> for Cell {
    fn from(bytes: &[u8]) -> Self {
        Self::Text(match escaped(bytes) {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        })
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

/// The values of a row, one for each column of its table. The first three, which all tables have, are not in it.
pub type Row = Vec<Cell>;

/// The columns that every table begins with: `time`, `boot_id` and `boot_time`.
pub const EVERYWHERE: usize = 3;

/// The place of a column in a [`Row`]. It must exist.
pub fn place(table: &Table, name: &str) -> usize {
    let at = table.index(name).filter(|&at| at >= EVERYWHERE);
    at.unwrap_or_else(|| panic!("{} has no column {name}", table.name)) - EVERYWHERE
}

/// A row with these numbers; all else is unknown.
pub fn row_of(table: &Table, known: &[(&str, i64)]) -> Row {
    let mut row = vec![Cell::Null; table.columns.len() - EVERYWHERE];
    for (name, number) in known {
        row[place(table, name)] = (*number).into();
    }
    row
}

/// Where the values of a table are in a record.
#[derive(Debug)]
pub struct Members {
    /// The place in the row, the member, and the bit of its group.
    members: Vec<(usize, Field, u32)>,
    columns: usize,
}

/// What a record holds, and what may be shown of it.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The groups of fields that it has, as bits.
    pub groups: u32,
    /// Whether the kernel hid what only a tracer may see.
    pub masked: bool,
}

impl Held {
    /// Everything.
    pub const ALL: Self = Self {
        groups: u32::MAX,
        masked: false,
    };
}

impl Members {
    /// The members of a table.
    pub fn of(table: &Table) -> Self {
        let columns = table.columns.iter().skip(EVERYWHERE).enumerate();
        let members =
            columns.filter_map(|(at, column)| Some((at, column.member.clone()?, column.group)));
        Self {
            members: members.collect(),
            columns: table.columns.len() - EVERYWHERE,
        }
    }

    /// A row with the values of a record. Columns that are no members are null.
    pub fn row<T: Plain>(&self, record: &T, held: Held) -> Row {
        let words = words(record);
        let mut row = vec![Cell::Null; self.columns];
        for (at, field, group) in &self.members {
            if *group == 0 || held.groups & group != 0 {
                row[*at] = value(words, field, held.masked);
            }
        }
        row
    }
}

fn value(words: &[u64], field: &Field, masked: bool) -> Cell {
    if masked && field.shown == Shown::Tracers {
        return Cell::Null;
    }
    if let Type::Chars(size) = field.type_of {
        let mut bytes = [0; 64];
        for (byte, at) in bytes.iter_mut().zip(field.offset..field.offset + size) {
            *byte = words[at / 8].to_ne_bytes()[at % 8];
        }
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(size);
        return bytes[..end].into();
    }
    let size = field.type_of.size();
    let mut bytes = [0; 8];
    let word = words[field.offset / 8].to_ne_bytes();
    // No number of a record crosses a word.
    let from = field.offset % 8;
    bytes[..size].copy_from_slice(&word[from..from + size]);
    let number = match field.type_of {
        Type::U8 => i64::from(bytes[0]),
        Type::U32 => i64::from(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        Type::I32 => i64::from(i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        _ => i64::from_ne_bytes(bytes),
    };
    let bits = number.cast_unsigned() & (u64::MAX >> (64 - 8 * size));
    let unknown = |value: u64| value & (u64::MAX >> (64 - 8 * size)) == bits;
    if field.unknown.is_some_and(unknown) {
        return Cell::Null;
    }
    Cell::Number(number)
}

#[cfg(test)]
mod tests {
    use fastproc::{Fields, record::Record};

    use super::*;
    use crate::table::PROCESSES;

    #[test]
    fn a_member_that_is_absent_hidden_or_unknown_is_null() {
        let mut record = Record::default();
        record.identity.comm[..3].copy_from_slice(b"a\xff\0");
        record.identity.tgid = u32::MAX;
        record.cpu.utime_ns = 5;
        record.cpu.set_run_delay_ns(None);
        record.scheduling.nice = -7;
        record.io.rchar = 9;
        let members = Members::of(&PROCESSES);
        let groups = (Fields::CPU | Fields::SCHEDULING | Fields::IO).bits();
        let held = |masked| Held { groups, masked };
        let get = |row: &Row, name| row[place(&PROCESSES, name)].clone();
        let row = members.row(&record, held(false));
        for (name, value) in [
            ("pid", Cell::Number(u32::MAX.into())),
            ("comm", Cell::Text(r"a\xff".into())),
            ("utime_ns", Cell::Number(5)),
            ("run_delay_ns", Cell::Null),
            ("nice", Cell::Number(-7)),
            ("vsize", Cell::Null),
            ("gone", Cell::Null),
            ("read_calls_bytes", Cell::Number(9)),
        ] {
            assert_eq!(get(&row, name), value, "{name}");
        }
        let row = members.row(&record, held(true));
        assert_eq!(get(&row, "read_calls_bytes"), Cell::Null);
        assert_eq!(get(&row, "utime_ns"), Cell::Number(5));
    }
}
