//! Writes a snapshot, as a view shows it, into a buffer.

use fastproc::{
    Fields, Process, Snapshot, Texts as Kinds,
    record::{Io, Record, ThreadRecord},
};

use crate::{
    changes::Changes,
    memory::{Counts, Parts},
    texts::{Texts, Writer},
    view::{Mask, View, Visibility, hide_io_without_memory},
};

/// Groups whose records point into the pool.
const IN_POOL: Fields = Fields::CREDENTIALS
    .union(Fields::NAMESPACES)
    .union(Fields::SCHEDULING_DETAILS);

/// What to write of a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling<'a> {
    pub(crate) snapshot: Snapshot<'a>,
    pub(crate) view: View,
    pub(crate) groups: Fields,
    pub(crate) mask: Mask,
    /// The texts that are kept, and the kinds that are wanted.
    pub(crate) texts: &'a Texts,
    pub(crate) kinds: Kinds,
    /// The generation of the snapshot, and when each record changed last.
    pub(crate) generation: u64,
    pub(crate) changes: &'a Changes,
}

/// The last snapshot that this view was shown, with the same groups.
#[derive(Debug)]
pub(crate) struct Earlier<'a> {
    generation: u64,
    /// Whether it has all processes of its walk.
    is_whole: bool,
    records: &'a [Record],
    changed: &'a [u64],
}

impl<'a> Earlier<'a> {
    /// `None`: it does not say when its records changed.
    pub(crate) fn new(generation: u64, is_whole: bool, parts: Parts<'a>) -> Option<Self> {
        let Parts {
            records, changed, ..
        } = parts;
        (records.len() == changed.len()).then_some(Self {
            generation,
            is_whole,
            records,
            changed,
        })
    }
}

/// Says in which generation each record of a view changed last, in the order of the pids.
struct Dating<'a> {
    generation: u64,
    changes: &'a Changes,
    /// Only of a user, and not before its second snapshot.
    earlier: Option<Earlier<'a>>,
    of_user: bool,
    at: usize,
}

impl Dating<'_> {
    /// The generation in which this record changed last, as the view shows it. What the walk reads again depends on more than
    /// users may see, so only what they are shown counts for them.
    fn of(&mut self, place: usize, pid: u32, record: &Record) -> u64 {
        let changed = self.changes.generation(place);
        if !self.of_user {
            return changed;
        }
        let Some(earlier) = &self.earlier else {
            return self.generation;
        };
        let is_placed = earlier.is_whole && self.changes.kept_places(earlier.generation);
        if is_placed {
            self.at = place;
        } else {
            let before = earlier.records[self.at..].iter();
            self.at += before.take_while(|of| of.identity.tgid < pid).count();
        }
        let (Some(before), Some(&dated)) =
            (earlier.records.get(self.at), earlier.changed.get(self.at))
        else {
            return self.generation;
        };
        let is_same = if changed <= earlier.generation {
            is_placed || before.identity.tgid == pid
        } else {
            // What it points to is not in the record.
            !record.points_into_pool() && {
                let mut again = *before;
                again.copy_groups(record, Fields::from_bits_retain(record.identity.groups));
                again == *before
            }
        };
        if is_same { dated } else { self.generation }
    }
}

/// A thread, and how much of it the view shows.
struct VisibleThread<'a> {
    thread: &'a ThreadRecord,
    shown: Visibility,
    /// Whether its process has memory.
    has_memory: bool,
}

impl<'a> Filling<'a> {
    /// The size of what is to be written, given what the view shows of each process.
    pub(crate) fn plan(&self, shown: &[Visibility]) -> Counts {
        let unsure = shown.iter().filter(|&&shown| shown == Visibility::Unsure);
        let unsure = unsure.count();
        let pools = self.snapshot.pools();
        let records = shown.len() - unsure;
        Counts {
            records,
            threads: self.threads(shown).count(),
            pool: if self.groups.intersects(IN_POOL) {
                pools.own.len() + pools.from_text.len()
            } else {
                0
            },
            unsure,
            texts: if self.kinds.is_empty() { 0 } else { records },
            text_bytes: self.text_bytes(shown),
            changed: records,
            ..Counts::default()
        }
    }

    fn text_bytes(&self, shown: &[Visibility]) -> usize {
        if self.kinds.is_empty() {
            return 0;
        }
        let processes = self.snapshot.iter().zip(shown).enumerate();
        let shown = processes.filter(|(_, (_, shown))| **shown != Visibility::Unsure);
        shown
            .map(|(place, (process, &shown))| {
                let kinds = kinds_for(self.kinds, shown);
                self.texts.len(place, process, kinds, self.view)
            })
            .sum()
    }

    /// The threads that the view shows.
    fn threads<'s>(
        &self,
        shown: &'s [Visibility],
    ) -> impl Iterator<Item = VisibleThread<'a>> + use<'a, 's> {
        let wanted = self.groups.contains(Fields::THREADS);
        let snapshot = self.snapshot;
        let mut last = (0, Visibility::Unsure, false);
        let threads = wanted.then(|| snapshot.threads()).into_iter().flatten();
        threads.filter_map(move |thread| {
            if last.0 != thread.tgid {
                let at = snapshot.position(thread.tgid);
                let shown = at.and_then(|at| shown.get(at)).copied();
                let has_memory = at
                    .and_then(|at| snapshot.at(at))
                    .is_some_and(|process| process.identity().has_mm != 0);
                last = (thread.tgid, shown.unwrap_or(Visibility::Unsure), has_memory);
            }
            let thread = VisibleThread {
                thread,
                shown: last.1,
                has_memory: last.2,
            };
            (thread.shown != Visibility::Unsure).then_some(thread)
        })
    }

    /// Writes what [`plan`](Self::plan) counted, except records that `is_written` reports as unchanged. `earlier`: what a user
    /// was shown last. Returns the bytes of texts.
    pub(crate) fn write(
        &self,
        shown: &[Visibility],
        is_written: impl Fn(usize) -> bool,
        earlier: Option<Earlier<'_>>,
        parts: &mut Parts<'_>,
    ) -> usize {
        let pools = self.snapshot.pools();
        let (walked, patched) = (pools.own, pools.from_text);
        if !parts.pool.is_empty() {
            parts.pool[..walked.len()].copy_from_slice(walked);
            parts.pool[walked.len()..].copy_from_slice(patched);
        }
        let mut records = parts.records.iter_mut();
        let mut unsure = parts.unsure.iter_mut();
        let mut texts = parts.texts.iter_mut();
        let mut bytes = Writer::at(&mut *parts.text_bytes, 0);
        let mut changed = parts.changed.iter_mut();
        let mut dating = Dating {
            generation: self.generation,
            changes: self.changes,
            earlier,
            of_user: self.view != View::All,
            at: 0,
        };
        for (place, (process, &shown)) in self.snapshot.iter().zip(shown).enumerate() {
            if shown == Visibility::Unsure {
                if let Some(pid) = unsure.next() {
                    *pid = process.pid();
                }
            } else if let Some(record) = records.next() {
                if !is_written(place) {
                    self.write_record(process, shown, record);
                }
                if let Some(to) = changed.next() {
                    *to = dating.of(place, process.pid(), record);
                }
                if let Some(entry) = texts.next() {
                    let kinds = kinds_for(self.kinds, shown);
                    let texts = self.texts;
                    *entry = texts.write(place, process, kinds, self.view, &mut bytes);
                }
            }
        }
        let written = bytes.len();
        for (to, of) in parts.threads.iter_mut().zip(self.threads(shown)) {
            *to = *of.thread;
            if of.shown == Visibility::Public {
                self.mask.thread(to);
            } else {
                Mask::thread_for_tracers(to);
                // As for the process: `hide_io_without_memory`.
                if self.view != View::All && !of.has_memory {
                    to.io = Io::default();
                }
            }
        }
        written
    }
}

impl Filling<'_> {
    fn write_record(&self, process: Process<'_>, shown: Visibility, to: &mut Record) {
        to.copy_groups(process.record(), self.groups & process.fields());
        let walked = self.snapshot.pools().own;
        if !std::ptr::eq(process.pool(), walked) {
            // Records read from `/proc` point into a pool of their own, which was copied behind the other.
            to.move_in_pool(walked.len() as u32);
        }
        if shown == Visibility::Public {
            self.mask.record(to);
        } else {
            Mask::record_for_tracers(to);
            if self.view != View::All {
                hide_io_without_memory(to);
            }
        }
    }
}

/// Every user may read a command line; only a user who could trace the process may read the path of its program.
pub(crate) fn kinds_for(kinds: Kinds, shown: Visibility) -> Kinds {
    match shown {
        Visibility::Full => kinds,
        _ => kinds & Kinds::CMDLINE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_read_again_is_the_same_only_if_it_has_nothing_in_the_pool() {
        let mut record = Record::default();
        record.identity.groups = Fields::CREDENTIALS.bits();
        let mut dated = |groups_at| {
            record.credentials.groups_at = groups_at;
            let mut dating = Dating {
                generation: 8,
                changes: &Changes::default(),
                earlier: Some(Earlier {
                    generation: 7,
                    is_whole: true,
                    records: &[record],
                    changed: &[5],
                }),
                of_user: true,
                at: 0,
            };
            dating.of(0, record.identity.tgid, &record)
        };
        assert_eq!(dated(0), 5);
        assert_eq!(dated(1), 8);
    }
}
