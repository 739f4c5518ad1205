//! What another thread of this process may read of the service while it answers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::blame::{Reason, Refused};

/// Numbers that the service keeps current: atomics, so that neither it nor who reads them ever waits for the other.
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

    /// Connections now.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Bytes of the snapshots that readers have now.
    pub fn lent_bytes(&self) -> usize {
        self.lent_bytes.load(Ordering::Relaxed)
    }

    /// How often each user was refused, cut off, or held up work, by reason. At most 256 users are told apart, the first that
    /// there was something to tell of. `None` stands for the others, and for what nobody is known to have done.
    pub fn refused(&self) -> impl Iterator<Item = (Option<u32>, &'static str, u64)> {
        self.refused.read().flat_map(|(uid, counts)| {
            let named = Reason::NAMES.into_iter().zip(counts);
            named.map(move |(reason, count)| (uid, reason, count))
        })
    }
}
