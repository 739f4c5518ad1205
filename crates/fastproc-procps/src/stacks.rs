//! The rows that results are handed out in.

use std::{mem::MaybeUninit, ptr};

use crate::abi::{PidsResult, Stack};

/// Rows are made at least so many at a time.
const FEWEST: usize = 8;

/// Rows, and the results in them.
type Extent = (Box<[Stack]>, Box<[PidsResult]>);

/// Rows of results, each ended by an item that there is not. A row stays where it is as long as rows need not be longer.
#[derive(Debug)]
pub(crate) struct Stacks {
    /// The caller's items and the end.
    items: Vec<u32>,
    /// Results that there is room for in a row.
    room: usize,
    extents: Vec<Extent>,
    heads: Vec<*mut PidsResult>,
    used: usize,
}

impl Stacks {
    pub(crate) fn new(items: &[u32], end: u32) -> Self {
        let mut stacks = Self {
            items: Vec::new(),
            room: 0,
            extents: Vec::new(),
            heads: Vec::new(),
            used: 0,
        };
        stacks.reset(items, end);
        stacks
    }

    /// Other items. Results are zero again.
    pub(crate) fn reset(&mut self, items: &[u32], end: u32) {
        self.items = items.iter().copied().chain([end]).collect();
        self.used = 0;
        if self.items.len() > self.room {
            self.extents.clear();
            self.heads.clear();
            self.room = self.items.len();
        }
        for (_, results) in &mut self.extents {
            prime(results, self.room, &self.items);
        }
    }

    /// A fetch of about so many processes begins.
    pub(crate) fn begin(&mut self, processes: usize) {
        self.used = 0;
        if processes > self.heads.len() {
            self.grow(processes - self.heads.len());
        }
    }

    /// The next row.
    pub(crate) fn add(&mut self) -> *mut PidsResult {
        if self.used == self.heads.len() {
            self.grow(self.heads.len());
        }
        self.used += 1;
        self.heads[self.used - 1]
    }

    /// A row of this fetch.
    pub(crate) fn row(&self, at: usize) -> *mut PidsResult {
        self.heads[at]
    }

    fn grow(&mut self, rows: usize) {
        let rows = rows.max(FEWEST);
        let mut row = vec![PidsResult { item: 0, value: 0 }; self.room];
        prime(&mut row, self.room, &self.items);
        let mut results = Vec::with_capacity(rows * self.room);
        populate(results.spare_capacity_mut());
        for _ in 0..rows {
            results.extend_from_slice(&row);
        }
        let mut results = results.into_boxed_slice();
        let heads: Vec<_> = results
            .chunks_exact_mut(self.room)
            .map(<[_]>::as_mut_ptr)
            .collect();
        let stacks = heads.iter().map(|&head| Stack { head }).collect();
        self.heads.extend(heads);
        self.extents.push((stacks, results));
    }

    /// The rows of this fetch, for the caller.
    pub(crate) fn list(&mut self, into: &mut Vec<*mut Stack>) {
        into.clear();
        let stacks = self
            .extents
            .iter_mut()
            .flat_map(|(stacks, _)| stacks.iter_mut());
        into.extend(stacks.take(self.used).map(ptr::from_mut));
    }
}

/// Has memory that is about to be written backed by pages at once: ps wants a kilobyte for a row, and to fault them in one by
/// one is a quarter of what it costs with many processes. Kernels before 5.14 refuse, and nothing is different there.
fn populate(room: &mut [MaybeUninit<PidsResult>]) {
    // SAFETY: asks for a number.
    let Ok(page) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else {
        return;
    };
    let room = room.as_mut_ptr_range();
    // What shares a page with something else has that one's.
    let start = (room.start as usize).next_multiple_of(page);
    let end = room.end as usize / page * page;
    if start < end {
        let start = room
            .start
            .cast::<u8>()
            .wrapping_add(start - room.start as usize);
        // SAFETY: whole pages of our own memory, whose contents stay.
        unsafe {
            libc::madvise(
                start.cast(),
                end - start as usize,
                libc::MADV_POPULATE_WRITE,
            )
        };
    }
}

fn prime(results: &mut [PidsResult], room: usize, items: &[u32]) {
    for row in results.chunks_exact_mut(room) {
        for (result, &item) in row.iter_mut().zip(items) {
            *result = PidsResult { item, value: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_where_they_are_and_end() {
        let mut stacks = Stacks::new(&[5, 6], 157);
        // There may be more than was thought.
        stacks.begin(1500);
        let made: Vec<_> = (0..3000).map(|_| stacks.add()).collect();
        let items = |head: *mut PidsResult| {
            // SAFETY: a row has three results.
            [0, 1, 2].map(|at| unsafe { (*head.add(at)).item })
        };
        assert!(made.iter().all(|&head| items(head) == [5, 6, 157]));
        let mut shown = Vec::new();
        stacks.list(&mut shown);
        assert_eq!(shown.len(), 3000);
        stacks.reset(&[7], 157);
        assert_eq!(stacks.add(), made[0]);
        assert_eq!(items(made[0])[..2], [7, 157]);
        assert_eq!(items(made[2999])[..2], [7, 157]);
        stacks.list(&mut shown);
        assert_eq!(shown.len(), 1);
    }
}
