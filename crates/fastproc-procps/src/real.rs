//! procps's own library, which provides what records lack.

use std::{
    ffi::{c_int, c_uint},
    ptr,
};

use crate::{
    abi::{Fetch, Functions, Info, PidsResult, Rows, SELECT_MOST, SELECT_PID, Stack, TASKS_ONLY},
    items::{Item, Table},
};

/// A context of procps's own.
#[derive(Debug)]
pub(crate) struct Real {
    functions: &'static Functions,
    info: *mut Info,
}

impl Real {
    /// `None`: it failed, for lack of memory or because it does not know an item.
    pub(crate) fn new(functions: &'static Functions, items: &[u32]) -> Option<Self> {
        let mut items = items.to_vec();
        let mut info = ptr::null_mut();
        // SAFETY: a place for the context, and the given number of items, which are copied.
        let made =
            unsafe { (functions.new)(&raw mut info, items.as_mut_ptr(), items.len() as c_int) };
        (made == 0).then_some(Self { functions, info })
    }

    pub(crate) fn reset(&mut self, items: &[u32]) -> c_int {
        let mut items = items.to_vec();
        // SAFETY: the context is alive; the items are copied.
        unsafe { (self.functions.reset)(self.info, items.as_mut_ptr(), items.len() as c_int) }
    }

    pub(crate) fn reap(&mut self, which: c_uint) -> *mut Fetch {
        // SAFETY: the context is alive.
        unsafe { (self.functions.reap)(self.info, which) }
    }

    pub(crate) fn select(&mut self, ids: &[u32], which: c_uint) -> *mut Fetch {
        let mut ids = ids.to_vec();
        // SAFETY: the context is alive; the ids are copied.
        unsafe { (self.functions.select)(self.info, ids.as_mut_ptr(), ids.len() as c_int, which) }
    }

    pub(crate) fn get(&mut self, which: c_uint) -> *mut Stack {
        // SAFETY: the context is alive.
        unsafe { (self.functions.get)(self.info, which) }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // SAFETY: the context is alive, and not used again.
        unsafe { (self.functions.unref)(&raw mut self.info) };
    }
}

/// Items that procps's own library reads for processes found in records.
#[derive(Debug)]
pub(crate) struct Companion {
    real: Real,
}

impl Companion {
    /// For these items, as numbers of `table`.
    pub(crate) fn new(functions: &'static Functions, table: &Table, items: &[u32]) -> Option<Self> {
        let mut all = vec![table.number(Item::ID_TID)];
        all.extend_from_slice(items);
        Real::new(functions, &all).map(|real| Self { real })
    }

    /// Passes the results of those of these processes that still exist, in the order of the items.
    ///
    /// If there are many, reads all processes: that needs one file less for each than selecting by pid.
    pub(crate) fn read(&mut self, pids: &[u32], mut found: impl FnMut(u32, *const PidsResult)) {
        let mut hand_over = |rows: Rows| {
            for head in rows {
                // SAFETY: a row begins with the thread id, and continues with the items.
                let (pid, results) = unsafe { ((*head).value as u32, head.add(1)) };
                found(pid, results);
            }
        };
        if pids.len() > SELECT_MOST {
            // SAFETY: just fetched.
            hand_over(unsafe { Rows::from_fetch(self.real.reap(TASKS_ONLY)) });
        } else if !pids.is_empty() {
            // SAFETY: just fetched.
            hand_over(unsafe { Rows::from_fetch(self.real.select(pids, SELECT_PID)) });
        }
    }
}
