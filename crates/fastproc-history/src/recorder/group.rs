//! The rows of a row group, or of a part of it.

use super::{
    cells::Row,
    store::{Boot, Key, Store},
};
use crate::table::{self, Table};

const SECOND: i64 = 1_000_000;

/// Rows of all tables from one time to another.
#[derive(Debug)]
pub struct Group {
    /// The first microsecond since 1970 that it covers.
    pub from: i64,
    /// The first one that it does not.
    pub to: i64,
    stores: Vec<Store>,
}

impl Group {
    /// No rows.
    pub fn new(from: i64, to: i64, boot: &Boot) -> Self {
        let stores = table::all().map(|table| Store::new(table, boot.clone()));
        Self {
            from,
            to,
            stores: stores.into(),
        }
    }

    /// The whole seconds that it covers.
    pub const fn seconds(&self) -> (i64, i64) {
        (
            self.from.div_euclid(SECOND),
            (self.to + SECOND - 1).div_euclid(SECOND),
        )
    }

    /// The tables that have rows.
    pub fn tables(&self) -> impl Iterator<Item = &Store> {
        self.stores.iter().filter(|store| !store.is_empty())
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.stores.iter().map(Store::bytes).sum()
    }

    /// Adds a row.
    pub fn push(
        &mut self,
        table: &'static Table,
        key: Key,
        time: i64,
        before: Option<&Row>,
        now: &Row,
    ) {
        let store = self.stores.iter_mut();
        if let Some(store) = { store }.find(|store| std::ptr::eq(store.table(), table)) {
            store.push(key, time, before, now);
        }
    }
}
