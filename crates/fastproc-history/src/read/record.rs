//! Rows as the structures of the library.

use std::sync::LazyLock;

use fastproc::{
    Fields, cgroups,
    exits::Exit,
    record::{ExitRecord, NAME_LEN, Record},
    schema::{self, Field, Structure, Type},
    words, words_mut,
};

use crate::{
    escape,
    rows::{Cells, Rows},
    table::{CGROUPS, Column, EXITS, IDENTITIES, PROCESSES, Table},
};

/// `FP_NAME_FULL` of `bpf/record.h`.
const NAME_FULL: u32 = 1;

/// The members of a structure that the columns of these rows hold.
pub(super) struct Members<'r>(Vec<(&'static Field, u32, &'r Cells)>);

impl<'r> Members<'r> {
    pub(super) fn new(rows: &'r Rows) -> Self {
        let columns = rows.table.columns.iter().zip(&rows.columns);
        Self(
            columns
                .filter_map(|(column, cells)| Some((column.member.as_ref()?, column.group, cells)))
                .collect(),
        )
    }

    /// Fills the members with the values of a row. What may be unknown and is becomes so. Returns the bits of the groups whose
    /// values are all known.
    pub(super) fn fill(&self, row: usize, words: &mut [u64]) -> u32 {
        let (mut known, mut lacking) = (0, 0);
        for (field, group, cells) in &self.0 {
            if put(field, cells, row, words) {
                known |= group;
            } else if let Some(bits) = field.unknown {
                put_number(field, bits, words);
            } else {
                lacking |= group;
            }
        }
        known & !lacking
    }
}

/// Puts the value of a row into a member. Returns whether it is known, and fits.
fn put(field: &Field, cells: &Cells, row: usize, words: &mut [u64]) -> bool {
    match (cells, field.type_of) {
        (Cells::Numbers(values), of) => {
            let Some(Some(value)) = values.get(row) else {
                return false;
            };
            let fits = match of {
                Type::U8 => u8::try_from(*value).is_ok(),
                Type::U32 => u32::try_from(*value).is_ok(),
                Type::I32 => i32::try_from(*value).is_ok(),
                Type::U64 | Type::I64 => true,
                _ => false,
            };
            if fits {
                put_number(field, *value as u64, words);
            }
            fits
        }
        (Cells::Texts(values), Type::Chars(room)) => {
            let text = values.get(row).and_then(Option::as_deref);
            let Some(text) = text.and_then(escape::unescaped) else {
                return false;
            };
            let text = &text[..text.len().min(room - 1)];
            for at in 0..room {
                put_byte(field.offset + at, text.get(at).copied().unwrap_or(0), words);
            }
            true
        }
        _ => false,
    }
}

/// A member is within one word.
fn put_number(field: &Field, value: u64, words: &mut [u64]) {
    let (at, bits) = (field.offset % 8 * 8, field.type_of.size() * 8);
    // The members have the byte order of the machine.
    let shift = if cfg!(target_endian = "big") {
        64 - bits - at
    } else {
        at
    };
    let mask = u64::MAX >> (64 - bits);
    let word = &mut words[field.offset / 8];
    *word = *word & !(mask << shift) | (value & mask) << shift;
}

fn put_byte(offset: usize, byte: u8, words: &mut [u64]) {
    let mut bytes = words[offset / 8].to_ne_bytes();
    bytes[offset % 8] = byte;
    words[offset / 8] = u64::from_ne_bytes(bytes);
}

/// A record of which nothing is known.
pub(super) fn unknown() -> Record {
    let mut record = Record::default();
    record.identity.masked = 1;
    record
}

/// What a row of `processes` or `identities` says, added to what is known.
pub(super) fn record(known: &Record, members: &Members<'_>, rows: &Rows, row: usize) -> Record {
    let mut record = *known;
    let groups = members.fill(row, words_mut(&mut record));
    record.identity.groups = known.identity.groups | groups;
    let name = rows.texts("name").get(row).and_then(Option::as_deref);
    if let Some(name) = name.and_then(escape::unescaped) {
        let name = &name[..name.len().min(NAME_LEN - 1)];
        record.name.kind = NAME_FULL;
        record.name.text[..name.len()].copy_from_slice(name);
    }
    record
}

/// What a row of `exits` says of an exited process.
pub(super) fn exit(members: &Members<'_>, row: usize) -> Exit {
    let mut record = ExitRecord::default();
    members.fill(row, words_mut(&mut record));
    record.to_exit()
}

/// The columns of a table that these groups of fields need, besides its own.
pub(super) fn wanted(table: &Table, groups: Fields) -> impl Iterator<Item = &'static str> {
    table.columns.iter().filter_map(move |column| {
        let is_member = column.member.is_some();
        (is_member && column.group & !groups.bits() == 0).then_some(column.name)
    })
}

/// The values of a process that grow until it ends, so that their difference says what it did.
fn is_sum(column: &Column) -> bool {
    column.group & (Fields::CPU | Fields::IO | Fields::DELAYS).bits() != 0
}

/// Leaves what a process has done since it was `before`. Both are of the same process.
pub(super) fn subtract(record: &mut Record, before: &Record) {
    // A sum that was unknown then says nothing about the time since.
    let sums = (Fields::CPU | Fields::IO).bits();
    record.identity.groups &= !sums | before.identity.groups;
    subtract_from(&PROCESSES, is_sum, words_mut(record), words(before));
}

/// The same of these columns of a table. Their members are numbers of 64 bits.
pub(super) fn subtract_from(
    table: &Table,
    is_sum: impl Fn(&Column) -> bool,
    record: &mut [u64],
    before: &[u64],
) {
    for column in table.columns.iter().filter(|column| is_sum(column)) {
        let Some(field) = &column.member else {
            continue;
        };
        let at = field.offset / 8;
        let (now, then) = (&mut record[at], before[at]);
        *now = match field.unknown {
            Some(unknown) if *now == unknown || then == unknown => unknown,
            _ => now.saturating_sub(then),
        };
    }
}

/// Which bytes of a record a history restores.
pub(super) static RESTORED: LazyLock<Vec<bool>> = LazyLock::new(|| {
    // The reader makes these.
    let made = ["identity.groups", "identity.masked", "name."];
    held(schema::RECORD, &[&PROCESSES, &IDENTITIES], &made)
});

/// The same of an [`ExitRecord`].
pub(super) static RESTORED_EXIT: LazyLock<Vec<bool>> =
    LazyLock::new(|| held(schema::EXIT, &[&EXITS], &[]));

/// The groups of fields that a history has.
pub fn groups() -> Fields {
    let columns = PROCESSES.columns.iter().chain(&IDENTITIES.columns);
    Fields::from_bits_retain(columns.fold(0, |groups, column| groups | column.group))
}

/// The same of the record of a cgroup.
pub(super) static RESTORED_CGROUP: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let made = ["identity.parent", "identity.groups", "identity.level"];
    held(cgroups::record::SCHEMA, &[&CGROUPS], &made)
});

fn held(structure: &Structure, tables: &[&Table], made: &[&str]) -> Vec<bool> {
    let mut held = vec![false; structure.size];
    let columns = tables.iter().flat_map(|table| &table.columns);
    let fields = structure.fields();
    let made = fields
        .iter()
        .filter(|field| made.iter().any(|name| field.path.starts_with(name)));
    for field in columns
        .filter_map(|column| column.member.as_ref())
        .chain(made)
    {
        held[field.offset..field.offset + field.type_of.size()].fill(true);
    }
    held
}
