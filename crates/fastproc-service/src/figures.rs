//! Figures of the service that another thread may read while it answers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::user_events::{Reason, Refused};

/// Figures that the service keeps current. They are atomics, so that neither the service nor a reader waits for the
/// other.
#[derive(Debug, Default)]
pub struct Figures {
    connections: AtomicUsize,
    lent_bytes: AtomicUsize,
    pub(crate) refused: Arc<Refused>,
}

impl Figures {
    pub(crate) fn set(&self, connections: usize, lent_bytes: usize) {
        self.connections.store(connections, Ordering::Relaxed);
        self.lent_bytes.store(lent_bytes, Ordering::Relaxed);
    }

    /// Current connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Bytes of the snapshots that are lent to readers.
    pub fn lent_bytes(&self) -> usize {
        self.lent_bytes.load(Ordering::Relaxed)
    }

    /// How often each user was refused, cut off, or held up work, by reason. The first 256 of these users are counted
    /// separately. `None` stands for all others, and for events whose user is unknown.
    pub fn refused(&self) -> impl Iterator<Item = (Option<u32>, &'static str, u64)> {
        self.refused.read().flat_map(|(uid, counts)| {
            let named = Reason::NAMES.into_iter().zip(counts);
            named.map(move |(reason, count)| (uid, reason, count))
        })
    }
}
