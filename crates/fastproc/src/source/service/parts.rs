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
        let part = self.reply.parts[at];
        let connection = self.connection.as_ref()?;
        connection
            .buffer(self.reply.buffer)?
            .elements(part.offset, part.count)
    }

    /// Translates records of another layout.
    pub(super) fn translate(&mut self) -> Option<()> {
        let Some((_, translation)) = &self.translation else {
            return Some(());
        };
        let bytes = |at: usize| {
            let part = self.reply.parts[at];
            let buffer = self.connection.as_ref()?.buffer(self.reply.buffer)?;
            buffer.elements(part.offset, part.count.checked_mul(part.stride)?)
        };
        translation.processes(bytes(part::RECORDS)?, &mut self.translated);
        translation.threads(bytes(part::THREADS)?, &mut self.translated_threads);
        Some(())
    }

    pub(super) fn table(&self) -> Option<Table<'_>> {
        if self.translation.is_some() {
            return Some(Table {
                records: &self.translated,
                threads: &self.translated_threads,
                pool: self.part(part::POOL)?,
            });
        }
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
