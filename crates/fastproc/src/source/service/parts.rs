//! The parts of the buffer that the last answer named.

use super::{
    Service,
    wire::{Reply, part},
};
use crate::{
    base::plain::Plain,
    exits::Answer,
    snapshot::{table::Table, texts::TextTable},
};

impl Service {
    fn part<T: Plain>(&self, at: usize) -> Option<&[T]> {
        self.connection.as_ref()?.part(&self.reply, at)
    }

    pub(super) fn table(&self) -> Option<Table<'_>> {
        Some(Table {
            records: self.part(part::RECORDS)?,
            threads: self.part(part::THREADS)?,
            pool: self.part(part::POOL)?,
        })
    }

    pub(super) fn unsure(&self) -> Option<&[u32]> {
        self.part(part::UNSURE)
    }

    pub(super) fn texts(&self) -> Option<TextTable<'_>> {
        Some(TextTable {
            entries: self.part(part::TEXTS)?,
            bytes: self.part(part::TEXT_BYTES)?,
        })
    }

    pub(super) fn ended(&self) -> Option<Answer<'_>> {
        Some(Answer {
            after: self.reply.exits_after,
            last: self.reply.exits_last,
            exits: self.part(part::EXITS)?,
            lines: self.part(part::EXIT_LINES)?,
        })
    }

    /// For each record, the generation in which it changed last; empty if that is unknown.
    pub(super) fn changed(&self) -> Option<&[u64]> {
        let Reply {
            buffer, changed_at, ..
        } = self.reply;
        if changed_at == 0 {
            return Some(&[]);
        }
        let buffer = self.connection.as_ref()?.buffer(buffer)?;
        buffer.elements(changed_at, self.reply.parts[part::RECORDS].count)
    }
}
