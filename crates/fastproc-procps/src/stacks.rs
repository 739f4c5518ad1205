//! The rows in which results are returned.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    ptr::{self, NonNull},
    slice,
};

use crate::abi::{PidsResult, Stack};

/// The fewest rows that are allocated together.
const FEWEST: usize = 8;

/// Bytes of a page, and of a huge one.
const PAGE: usize = 4 << 10;
const HUGE: usize = 2 << 20;

/// Rows and their results.
type Extent = (Box<[Stack]>, Results);

/// Rows of results, each ended by an invalid item. A row is not moved unless rows must become longer.
#[derive(Debug)]
pub(crate) struct Stacks {
    /// The caller's items and the end.
    items: Vec<u32>,
    /// The number of results for which a row has room.
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

    /// Sets other items, with results of zero.
    pub(crate) fn reset(&mut self, items: &[u32], end: u32) {
        self.items = items.iter().copied().chain([end]).collect();
        self.used = 0;
        if self.items.len() > self.room {
            self.extents.clear();
            self.heads.clear();
            self.room = self.items.len();
        }
        for (_, results) in &mut self.extents {
            prime(results.all(), self.room, &self.items);
        }
    }

    /// Begins a fetch of about this number of processes.
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
        let mut results = Results::new(&row, rows);
        let heads: Vec<_> = results
            .all()
            .chunks_exact_mut(self.room)
            .map(<[_]>::as_mut_ptr)
            .collect();
        let stacks = heads.iter().map(|&head| Stack { head }).collect();
        self.heads.extend(heads);
        self.extents.push((stacks, results));
    }

    /// Collects the rows of this fetch for the caller.
    pub(crate) fn list(&mut self, into: &mut Vec<*mut Stack>) {
        into.clear();
        let stacks = self
            .extents
            .iter_mut()
            .flat_map(|(stacks, _)| stacks.iter_mut());
        into.extend(stacks.take(self.used).map(ptr::from_mut));
    }
}

/// The results of many rows.
#[derive(Debug)]
struct Results {
    start: NonNull<PidsResult>,
    len: usize,
    layout: Layout,
}

impl Results {
    /// Repeats a row this many times.
    fn new(row: &[PidsResult], rows: usize) -> Self {
        let len = row.len() * rows;
        let layout = Layout::array::<PidsResult>(len).expect("less than all memory");
        let page = if layout.size() >= HUGE { HUGE } else { PAGE };
        let layout = layout.align_to(page).expect("a power of two");
        // SAFETY: a row has at least its end, and there is at least one row.
        let start: *mut PidsResult = unsafe { alloc(layout) }.cast();
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        populate(start, layout);
        for at in 0..rows {
            // SAFETY: there is room for as many rows.
            unsafe {
                let to = start.as_ptr().add(at * row.len());
                ptr::copy_nonoverlapping(row.as_ptr(), to, row.len());
            }
        }
        Self { start, len, layout }
    }

    fn all(&mut self) -> &mut [PidsResult] {
        // SAFETY: all of them were written, and are ours.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) }
    }
}

/// Populates memory that is about to be written, with huge pages as far as it fills them. ps needs a kilobyte for a
/// row, and with many processes faulting that in page by page takes a quarter of its time. If the kernel refuses,
/// nothing changes.
fn populate(start: NonNull<PidsResult>, layout: Layout) {
    // The last page is left out if it is shared with something else.
    let bytes = layout.size() / PAGE * PAGE;
    let advise = |advice| {
        // SAFETY: whole pages of our own memory, whose contents stay.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) };
    };
    if layout.align() == HUGE {
        advise(libc::MADV_HUGEPAGE);
    }
    advise(libc::MADV_POPULATE_WRITE);
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
        // There may be more than expected; this many are in huge pages.
        stacks.begin(50_000);
        let made: Vec<_> = (0..60_000).map(|_| stacks.add()).collect();
        let items = |head: *mut PidsResult| {
            // SAFETY: a row has three results.
            [0, 1, 2].map(|at| unsafe { (*head.add(at)).item })
        };
        assert!(made.iter().all(|&head| items(head) == [5, 6, 157]));
        let mut shown = Vec::new();
        stacks.list(&mut shown);
        assert_eq!(shown.len(), 60_000);
        stacks.reset(&[7], 157);
        assert_eq!(stacks.add(), made[0]);
        assert_eq!(items(made[0])[..2], [7, 157]);
        assert_eq!(items(made[59_999])[..2], [7, 157]);
        stacks.list(&mut shown);
        assert_eq!(shown.len(), 1);
    }
}
