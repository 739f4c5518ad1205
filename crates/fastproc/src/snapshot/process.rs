//! A borrowed view of one process.

use crate::{
    records::{
        fields::Fields,
        name::Name,
        record::{Identity, Record, State},
    },
    snapshot::texts::ProcessTexts,
};

/// One process of a snapshot: a view of its record, not a copy.
///
/// A group of fields is `None` if it was not requested, or if the source could not read it, such as the I/O
/// counters of another user's process. An unknown value is never shown as zero.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    pid: u32,
    record: &'a Record,
    pool: &'a [u64],
    texts: Option<ProcessTexts<'a>>,
}

/// Ids of a process in one pid namespace below that of this `/proc`; 0 if the namespace does not see the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NestedIds {
    /// Process id: `NStgid`.
    pub tgid: u32,
    /// Thread id of the leading thread: `NSpid`.
    pub pid: u32,
    /// Process group: `NSpgid`.
    pub pgrp: u32,
    /// Session: `NSsid`.
    pub session: u32,
}

// The build generates these accessors from `bpf/record.h`: one for each group, and for the members that the kernel
// hides in the others.
include!(concat!(env!("OUT_DIR"), "/process.rs"));

impl<'a> Process<'a> {
    /// A view of `record`, whose offsets point into `pool`.
    pub const fn new(record: &'a Record, pool: &'a [u64]) -> Self {
        Self::with_pid(record.identity.tgid, record, pool)
    }

    /// The same, if the pid is known already.
    pub(crate) const fn with_pid(pid: u32, record: &'a Record, pool: &'a [u64]) -> Self {
        Self {
            pid,
            record,
            pool,
            texts: None,
        }
    }

    pub(crate) const fn with_texts(self, texts: Option<ProcessTexts<'a>>) -> Self {
        Self { texts, ..self }
    }

    /// The texts that came with the record.
    pub(crate) const fn texts(self) -> Option<ProcessTexts<'a>> {
        self.texts
    }

    /// The record itself.
    pub const fn record(self) -> &'a Record {
        self.record
    }

    /// The pool that the record's offsets point into.
    pub const fn pool(self) -> &'a [u64] {
        self.pool
    }

    /// Which groups this process has.
    pub fn fields(self) -> Fields {
        Fields::from_bits_truncate(self.record.identity.groups)
    }

    /// Process id, in the pid namespace of this `/proc`.
    pub const fn pid(self) -> u32 {
        self.pid
    }

    /// Its ids, name and state.
    pub const fn identity(self) -> &'a Identity {
        &self.record.identity
    }

    /// State of the leading thread.
    pub const fn state(self) -> State {
        self.record.identity.state()
    }

    /// The name that `/proc/PID/stat` and `status` show; for a kernel worker, with its current work.
    pub fn name(self) -> Name {
        Name::from_record(self.record)
    }

    fn group<T>(self, field: Fields, group: &'a T) -> Option<&'a T> {
        (self.record.identity.groups & field.bits() != 0).then_some(group)
    }

    /// The command line as in `/proc/PID/cmdline`, if a service returned it with the record: see
    /// [`Builder::texts`](crate::Builder::texts). Otherwise [`Details::cmdline`](crate::Details::cmdline)
    /// reads it.
    pub fn served_cmdline(self) -> Option<&'a [u8]> {
        self.texts.and_then(ProcessTexts::cmdline)
    }

    /// Id of the cgroup in the default (version 2) hierarchy.
    pub fn cgroup_id(self) -> Option<u64> {
        self.cgroup()?.id()
    }

    /// Supplementary groups, in the kernel's order.
    pub fn supplementary_groups(self) -> impl ExactSizeIterator<Item = u32> + Clone + use<'a> {
        let (words, count) = self.group_words();
        (0..count).map(move |i| (words[i / 2] >> (32 * (i % 2))) as u32)
    }

    /// The words that hold the supplementary groups, two in each, and the number of groups.
    pub(crate) fn group_words(self) -> (&'a [u64], usize) {
        let credentials = &self.record.credentials;
        let count = if self.credentials().is_some() {
            credentials.ngroups as usize
        } else {
            0
        };
        let words = self.words(credentials.groups_at, count.div_ceil(2));
        (words, count.min(words.len() * 2))
    }

    /// Ids in the pid namespaces below that of this `/proc`, outermost first.
    pub fn nested_ids(self) -> impl ExactSizeIterator<Item = NestedIds> + Clone + use<'a> {
        let namespaces = &self.record.namespaces;
        let level = if self.namespaces().is_some() {
            namespaces.level as usize
        } else {
            0
        };
        self.words(namespaces.ids_at, 2 * level)
            .chunks_exact(2)
            .map(|ids| NestedIds {
                tgid: ids[0] as u32,
                pid: (ids[0] >> 32) as u32,
                pgrp: ids[1] as u32,
                session: (ids[1] >> 32) as u32,
            })
    }

    /// CPUs that the leading thread may run on. Bit n of word w is CPU 64 w + n. Empty without
    /// [`Fields::SCHEDULING_DETAILS`].
    pub fn cpus_allowed(self, words: usize) -> &'a [u64] {
        let details = self.scheduling_details();
        details.map_or(&[], |of| self.mask(&of.cpus_allowed, of.cpus_at, words))
    }

    /// Memory nodes that it may allocate from, in the form of [`cpus_allowed`](Self::cpus_allowed).
    pub fn mems_allowed(self, words: usize) -> &'a [u64] {
        let details = self.scheduling_details();
        details.map_or(&[], |of| self.mask(&of.mems_allowed, of.mems_at, words))
    }

    /// On a machine that needs only one word, the mask is in the record itself.
    fn mask(self, first: &'a u64, at: u32, words: usize) -> &'a [u64] {
        match at {
            0 => core::slice::from_ref(first),
            at => self.words(at, words),
        }
    }

    fn words(self, at: u32, count: usize) -> &'a [u64] {
        let at = at as usize;
        self.pool.get(at..at + count).unwrap_or(&[])
    }
}
