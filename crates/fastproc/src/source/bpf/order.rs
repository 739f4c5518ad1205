//! Where the iterator puts the records of the processes that it meets in the order of their pids: they stay there from one
//! walk to the next, and ended processes leave free places. `bpf/order.h` is the other half.

use super::{
    Bpf, IndexEntry,
    run::{Position, Run},
};
use crate::kernel::{Mapping, walk::Walk};

/// What a walk needs to know of the one before it.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Records that have places, free ones included.
    pub(super) records: u32,
    pub(super) free: u32,
    /// Processes that it met.
    pub(super) met: u32,
}

impl Before {
    pub(super) fn of(walk: Walk, run: &Run) -> Self {
        match walk {
            Walk::OpenCoded => Self {
                met: run.records,
                ..Self::default()
            },
            // Every walk reads the index of all places.
            Walk::Iterator if run.done != 0 && run.free <= run.met + FREE_AT_MOST => Self {
                records: run.records,
                free: run.free,
                met: run.met,
            },
            Walk::Iterator => Self::default(),
        }
    }
}

/// Free places, besides as many as there are processes, with which a walk begins. With more it reads all records again, into
/// the first places.
const FREE_AT_MOST: u32 = 256;

/// The places of records in the order of their pids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByPid<'a> {
    positions: &'a [Position],
    turn: usize,
}

impl<'a> ByPid<'a> {
    pub(super) fn of(order: Option<&'a Mapping<Position>>, run: &Run) -> Self {
        let positions = order.map_or(&[][..], |order| &order.as_slice()[..run.met as usize]);
        let turn = run.round as usize % 2;
        Self { positions, turn }
    }

    /// The place of the record of this process.
    pub(crate) fn find(self, index: &[u64], tgid: u32) -> Option<usize> {
        let place = |position: &Position| position.places[self.turn] as usize;
        let pid = |position: &Position| IndexEntry(index[place(position)]).pid();
        let at = self.positions.binary_search_by_key(&tgid, pid).ok()?;
        Some(place(&self.positions[at]))
    }
}

impl Bpf {
    /// Frees the places of the processes after the last one that the iterator met, and clears all free ones.
    pub(super) fn free_places(&mut self) {
        let Some(order) = &mut self.tasks.order else {
            return;
        };
        let order = order.as_mut_slice();
        let run = &mut self.tasks.run.as_mut_slice()[0];
        let before = run.round.wrapping_sub(1) as usize % 2;
        for at in run.old_next..run.previous {
            order[run.free as usize].free = order[at as usize].places[before];
            run.free += 1;
        }
        for position in &order[..run.free as usize] {
            let place = position.free as usize;
            self.tasks.index.as_mut_slice()[place] = 0;
            let identity = &mut self.tasks.records.as_mut_slice()[place].identity;
            (identity.tgid, identity.num_threads, identity.seen_threads) = (0, 0, 0);
        }
    }
}
