//! What is kept of a process from one rendering to the next.

use super::spliced::Spliced;
use crate::{
    Process,
    record::Record,
    text::{
        access::Access,
        parts::{Look, has_lists},
    },
};

/// A copy of what was rendered, and its text.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    record: Record,
    /// What `record` has in a pool, behind a word that stands for nothing.
    pool: Vec<u64>,
    access: Access,
    pub(super) text: Spliced,
}

/// The words of the bitmaps of CPUs and of memory nodes; `None` where no text shows lists.
pub(super) type Words = Option<(usize, usize)>;

impl Kept {
    /// The most words of lists.
    const MOST_WORDS: usize = 1024;

    /// `None`: the lists are too long.
    pub(super) fn new(look: Look<'_>, words: Words, text: Spliced) -> Option<Self> {
        let mut kept = Self {
            record: Record::default(),
            pool: Vec::new(),
            access: look.access,
            text,
        };
        kept.remember(look, words).then_some(kept)
    }

    /// What was rendered.
    #[inline]
    pub(super) fn look(&self) -> Look<'_> {
        Look {
            process: Process::new(&self.record, &self.pool),
            access: self.access,
        }
    }

    /// Copies what is rendered now. `false`: the lists are too long.
    #[inline]
    pub(super) fn remember(&mut self, look: Look<'_>, words: Words) -> bool {
        self.record = *look.process.record();
        self.access = look.access;
        match words {
            Some(words) if has_lists(&self.record) => self.copy_lists(look.process, words),
            _ => true,
        }
    }

    #[cold]
    fn copy_lists(
        &mut self,
        process: Process<'_>,
        (cpu_words, node_words): (usize, usize),
    ) -> bool {
        let Self { record, pool, .. } = self;
        let theirs = process.record();
        let groups = (theirs.credentials.ngroups as usize).div_ceil(2);
        let ids = 2 * theirs.namespaces.level as usize;
        let most = 1 + groups + ids + cpu_words + node_words;
        if most > Self::MOST_WORDS {
            return false;
        }
        pool.clear();
        pool.reserve_exact(most);
        pool.push(0);
        let mut copy = |from: u32, count: usize| {
            let from = from as usize;
            let Some(words) = process.pool().get(from..from + count) else {
                // Nor are they found there.
                return u32::MAX;
            };
            let at = pool.len() as u32;
            pool.extend_from_slice(words);
            at
        };
        record.credentials.groups_at = copy(theirs.credentials.groups_at, groups);
        record.namespaces.ids_at = copy(theirs.namespaces.ids_at, ids);
        let scheduling = &theirs.scheduling;
        if scheduling.cpus_at != 0 {
            record.scheduling.cpus_at = copy(scheduling.cpus_at, cpu_words);
        }
        if scheduling.mems_at != 0 {
            record.scheduling.mems_at = copy(scheduling.mems_at, node_words);
        }
        true
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of::<u64>() * self.pool.capacity() + self.text.memory_bytes()
    }
}
