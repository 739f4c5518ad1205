//! Exits on their way through a service.

use std::convert::Infallible;

use super::handout::Handout;
use crate::{
    records::record::ExitRecord,
    snapshot::{Ends, Snapshot, exit::Exit},
};

/// What the service hands to one reader, from snapshot to snapshot.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Number of the last exit that came; 0 before anything is known.
    pub(crate) last: u64,
    /// `None`: not all are known that belong to the last snapshot.
    handout: Option<Handout>,
}

/// An answer of the service, as far as it is about exits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// Every exit with a larger number is here, or was lost,
    pub(crate) after: u64,
    /// up to this one; 0: they are not recorded.
    pub(crate) last: u64,
    pub(crate) exits: &'a [ExitRecord],
    pub(crate) lines: &'a [u8],
}

impl Served {
    /// Takes what has ended and is not in `snapshot`. If the service has not recorded since the last time, for it was
    /// started in between, then this snapshot has no exits, and what is missing is in no other.
    pub(crate) fn take(&mut self, answer: Answer<'_>, snapshot: &Snapshot<'_>) {
        let before = std::mem::replace(&mut self.last, answer.last);
        if before == 0 || answer.last == 0 || answer.after != before {
            self.handout = None;
            return;
        }
        let handout = self.handout.get_or_insert_default();
        let Ok(()) = handout.turn(snapshot, |exits, lines| {
            exits.extend(answer.exits.iter().map(Exit::of_exit_record));
            lines.extend_from_slice(answer.lines);
            let all = answer.last.saturating_sub(before);
            Ok::<_, Infallible>(all.saturating_sub(answer.exits.len() as u64))
        });
    }

    /// What was taken last.
    pub(crate) fn ends(&self) -> Option<(Ends<'_>, u64)> {
        self.handout.as_ref().map(Handout::ends)
    }
}
