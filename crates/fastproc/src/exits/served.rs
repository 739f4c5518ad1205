//! Exits that a service records for its readers.

use std::convert::Infallible;

use super::queue::ExitQueue;
use crate::{
    records::record::ExitRecord,
    snapshot::{EndedExits, Snapshot},
};

/// The exits that the service sends to one reader, from snapshot to snapshot.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Number of the last exit that was received; 0 before the first answer.
    pub(crate) last: u64,
    /// `None` if some exits of the last snapshot are not known.
    queue: Option<ExitQueue>,
}

/// The exits in an answer of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// Every exit with a larger number is here or was lost,
    pub(crate) after: u64,
    /// up to this one. 0: the service does not record exits.
    pub(crate) last: u64,
    pub(crate) exits: &'a [ExitRecord],
    pub(crate) lines: &'a [u8],
}

impl Served {
    /// Takes the exits that are not in `snapshot`. If the service has restarted since the last time, this snapshot has
    /// no exits, and the missing ones are in no other.
    pub(crate) fn take(&mut self, answer: Answer<'_>, snapshot: &Snapshot<'_>) {
        let before = std::mem::replace(&mut self.last, answer.last);
        if before == 0 || answer.last == 0 || answer.after != before {
            self.queue = None;
            return;
        }
        let queue = self.queue.get_or_insert_default();
        let Ok(()) = queue.advance(snapshot, |exits, lines| {
            exits.extend(answer.exits.iter().map(ExitRecord::to_exit));
            lines.extend_from_slice(answer.lines);
            let all = answer.last.saturating_sub(before);
            Ok::<_, Infallible>(all.saturating_sub(answer.exits.len() as u64))
        });
    }

    /// The exits that were taken last.
    pub(crate) fn exits(&self) -> Option<(EndedExits<'_>, u64)> {
        self.queue.as_ref().map(ExitQueue::exits)
    }
}
