//! Writes a snapshot, as a view shows it, into a buffer.

use std::{fs, os::unix::fs::MetadataExt};

use fastproc::{
    Fields, Process, Snapshot, Texts as Kinds,
    record::{Io, Record, ThreadRecord},
};

use crate::{
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

    /// Writes what [`plan`](Self::plan) counted, except records that `is_written` reports as unchanged. Returns the
    /// bytes of texts.
    pub(crate) fn write(
        &self,
        shown: &[Visibility],
        is_written: impl Fn(usize) -> bool,
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
        for (place, (process, &shown)) in self.snapshot.iter().zip(shown).enumerate() {
            if shown == Visibility::Unsure {
                if let Some(pid) = unsure.next() {
                    *pid = process.pid();
                }
            } else if let Some(to) = records.next() {
                if !is_written(place) {
                    self.write_record(process, shown, to);
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

/// Fills `shown` with what a view shows of each process of a snapshot, in their order.
pub(crate) fn visibilities(snapshot: &Snapshot<'_>, view: View, shown: &mut Vec<Visibility>) {
    shown.clear();
    let each = snapshot.iter();
    shown.extend(each.map(|process| view.visibility(process, || user_ns(process.pid()))));
}

/// Every user may read a command line; only a user who could trace the process may read the path of its program.
pub(crate) fn kinds_for(kinds: Kinds, shown: Visibility) -> Kinds {
    match shown {
        Visibility::Full => kinds,
        _ => kinds & Kinds::CMDLINE,
    }
}

/// The user namespace of a process whose record was read from `/proc`; 0 if unknown.
fn user_ns(pid: u32) -> u32 {
    fs::metadata(format!("/proc/{pid}/ns/user")).map_or(0, |file| file.ino() as u32)
}
