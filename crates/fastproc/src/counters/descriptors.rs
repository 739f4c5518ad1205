//! Counts by interrupt, from the descriptors: all of them, or only those that change, if that is provably enough.
//!
//! Every interrupt that has a row in `/proc/stat` adds to its CPU's `irqs_sum` too. So
//!
//! ```text
//! sum of irqs_sum = counts of hot descriptors + counts of cold descriptors + counts of descriptors freed since boot
//! ```
//!
//! and as long as the last two terms do not change, reading the hot ones is reading all. The programs check the equation
//! on every read, between two readings of the sum that must be equal; if it fails they read all descriptors at once.
//! The last term changes only when the list does, which counts its own revisions. A handler adds to the sum before it
//! adds to its count, so an interrupt caught in between makes the right side too small, never too large: the smallest
//! difference seen is the true one.

use super::{
    Error,
    layout::{Run, WANT_ALL_IRQS, WANT_IRQS},
    object::Object,
};

/// Number of quiet walks before the short cut is trusted.
const QUIET_WALKS: u32 = 8;
/// After this many misses in a row the short cut is tried only occasionally.
const MISSES_IN_A_ROW: u32 = 8;
/// A descriptor is hot for this many full walks after it moved.
const HEAT: u32 = 64;

/// What is known of the descriptors.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    listed: bool,
    revision: u64,
    /// Number of each descriptor's interrupt, ascending.
    irqs: Vec<u32>,
    counts: Vec<u32>,
    /// The full walk in which each was last seen to move.
    moved_in: Vec<u32>,
    hot: Vec<u32>,
    /// Sum of the freed descriptors' counts, modulo 2^32: the smallest seen.
    freed: Option<u32>,
    cold_sum: u32,
    quiet_walks: u32,
    walks: u32,
    misses: u32,
    hits: u64,
    /// Changes with every full walk. A reader that keeps a row must then read all of it again.
    generation: u64,
}

/// What one collection did to the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Only hot descriptors can have moved.
    ShortCut,
    /// All counts were read.
    Walked,
    /// The list changed: [`Descriptors::list`] is to be called, then the collection repeated.
    Stale,
}

impl Descriptors {
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// Interrupts that have moved lately.
    pub(super) fn hot_irqs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.hot
            .iter()
            .map(|&at| (self.irqs[at as usize], self.counts[at as usize]))
    }

    /// All interrupts, ascending, and their counts.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = (u32, u32)> {
        self.irqs.iter().copied().zip(self.counts.iter().copied())
    }

    pub(super) fn irqs(&self) -> &[u32] {
        &self.irqs
    }

    /// Collections answered by the short cut, and by reading all descriptors.
    pub(super) fn tally(&self) -> (u64, u64) {
        (self.hits, self.generation)
    }

    /// Lists the descriptors again. `false` if the list kept changing, or does not fit.
    pub(super) fn list(&mut self, object: &mut Object) -> Result<bool, Error> {
        self.listed = false;
        self.generation += 1;
        let mut before: Option<(u64, u32)> = None;
        for _ in 0..16 {
            // Two walks that agree: the tree may have been rotated during one of them, before its revision was raised.
            let Some(run) = object.walk_irqs()? else {
                before = None;
                continue;
            };
            if before != Some((run.irq_rev, run.irqs)) {
                before = Some((run.irq_rev, run.irqs));
                continue;
            }
            let entries = object.irqs_mut(run.irqs);
            entries.sort_unstable_by_key(|entry| entry.irq);
            if !entries.is_sorted_by(|a, b| a.irq < b.irq)
                || entries.iter().any(|entry| entry.desc == 0)
            {
                before = None;
                continue;
            }
            let count = entries.len();
            *self = Self {
                listed: true,
                revision: run.irq_rev,
                irqs: entries.iter().map(|entry| entry.irq).collect(),
                counts: vec![0; count],
                moved_in: vec![0; count],
                walks: HEAT,
                generation: self.generation,
                hits: self.hits,
                ..Self::default()
            };
            return Ok(true);
        }
        Ok(false)
    }

    /// Adds to a run that it must collect the counts.
    pub(super) fn prepare(&mut self, run: &mut Run, all: bool) {
        run.want |= WANT_IRQS;
        run.irqs = self.irqs.len() as u32;
        run.irq_rev = self.revision;
        run.hot = self.hot.len() as u32;
        let is_tried = self.misses < MISSES_IN_A_ROW || self.misses.is_multiple_of(MISSES_IN_A_ROW);
        match self.freed {
            Some(freed) if !all && is_tried && self.quiet_walks >= QUIET_WALKS => {
                run.irqs_explained = freed.wrapping_add(self.cold_sum);
            }
            _ => run.want |= WANT_ALL_IRQS,
        }
    }

    /// Takes the counts out of the object.
    pub(super) fn take(&mut self, object: &mut Object, run: &Run) -> Outcome {
        if run.irq_rev_now != self.revision {
            self.listed = false;
            return Outcome::Stale;
        }
        let entries = object.irqs(self.irqs.len() as u32);
        if run.shortcut != 0 {
            for &at in &self.hot {
                self.counts[at as usize] = entries[at as usize].count;
            }
            self.misses = 0;
            self.hits += 1;
            return Outcome::ShortCut;
        }
        self.generation += 1;
        self.walks = self.walks.wrapping_add(1);
        self.misses = self.misses.wrapping_add(1);
        let first = self.quiet_walks == 0 && self.freed.is_none();
        let mut sum = 0_u32;
        for (at, entry) in entries.iter().enumerate() {
            if self.counts[at] != entry.count {
                self.counts[at] = entry.count;
                if !first {
                    self.moved_in[at] = self.walks;
                }
            }
            sum = sum.wrapping_add(entry.count);
        }
        if run.irqs_sum == run.irqs_sum_after {
            let freed = (run.irqs_sum as u32).wrapping_sub(sum);
            self.freed = Some(match self.freed {
                Some(known) if (freed.wrapping_sub(known) as i32) >= 0 => known,
                _ => freed,
            });
            self.quiet_walks = self.quiet_walks.saturating_add(1);
        }
        self.choose_hot(object);
        Outcome::Walked
    }

    fn choose_hot(&mut self, object: &mut Object) {
        let to = object.hot_mut();
        self.hot.clear();
        self.cold_sum = 0;
        for (at, (&count, &moved)) in (0..).zip(self.counts.iter().zip(&self.moved_in)) {
            if moved != 0 && self.walks.wrapping_sub(moved) < HEAT && self.hot.len() < to.len() {
                to[self.hot.len()] = u64::from(at);
                self.hot.push(at);
            } else {
                self.cold_sum = self.cold_sum.wrapping_add(count);
            }
        }
    }
}
