//! Recent values of numbers, to draw as lines.

use std::{collections::HashMap, hash::Hash};

/// The number of values that are kept.
pub const LENGTH: usize = 300;

/// The last values, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    values: std::collections::VecDeque<f32>,
}

impl History {
    /// Adds a value; an unknown one leaves a gap.
    pub fn push(&mut self, value: Option<f64>) {
        if self.values.len() == LENGTH {
            self.values.pop_front();
        }
        self.values
            .push_back(value.map_or(f32::NAN, |value| value as f32));
    }

    /// Skips this many values.
    pub fn skip(&mut self, count: u64) {
        for _ in 0..count.min(LENGTH as u64) {
            self.push(None);
        }
    }

    /// The last `width` values, oldest first. `None`: not known.
    pub fn last(&self, width: usize) -> impl ExactSizeIterator<Item = Option<f64>> + '_ {
        let skipped = self.values.len().saturating_sub(width);
        self.values
            .iter()
            .skip(skipped)
            .map(|&value| (!value.is_nan()).then_some(value.into()))
    }

    /// The largest of the last `width` values.
    pub fn largest(&self, width: usize) -> f64 {
        self.last(width).flatten().fold(0.0, f64::max)
    }
}

/// The histories of things that were recently on the screen: the user may want to see them.
#[derive(Debug)]
pub struct Recent<K, H> {
    looks: u64,
    is_new: bool,
    /// Each with the last snapshot that was added.
    kept: HashMap<K, (u64, H)>,
}

impl<K, H> Default for Recent<K, H> {
    fn default() -> Self {
        Self {
            looks: 0,
            is_new: false,
            kept: HashMap::new(),
        }
    }
}

impl<K: Eq + Hash, H: Default> Recent<K, H> {
    /// Begins a new snapshot.
    pub fn look(&mut self) {
        self.looks += 1;
        self.is_new = true;
        let oldest = self.looks.saturating_sub(LENGTH as u64);
        // The history of something that left the screen this long ago is empty.
        if self.looks.is_multiple_of(64) {
            self.kept.retain(|_, (look, _)| *look > oldest);
        }
    }

    /// Whether there was a new snapshot since the last call.
    pub fn takes(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// Adds a snapshot to one of them, unless that was done. `add` gets its histories, and the number of snapshots that
    /// they missed.
    pub fn push(&mut self, key: K, add: impl FnOnce(&mut H, u64)) {
        let looks = self.looks;
        let (last, histories) = self.kept.entry(key).or_default();
        if *last < looks {
            let missed = if *last > 0 { looks - *last - 1 } else { 0 };
            add(histories, missed);
            *last = looks;
        }
    }

    /// The history of one of them.
    pub fn get(&self, key: &K) -> Option<&H> {
        self.kept.get(key).map(|(_, histories)| histories)
    }

    /// Discards all histories: the next snapshot is from another time.
    pub fn clear(&mut self) {
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_values_are_kept() {
        let mut history = History::default();
        for value in 0..LENGTH + 5 {
            history.push((value != LENGTH + 3).then_some(value as f64));
        }
        let last: Vec<_> = history.last(3).collect();
        let end = (LENGTH + 4) as f64;
        assert_eq!(last, [Some(end - 2.0), None, Some(end)]);
        assert_eq!(history.last(10_000).len(), LENGTH);
        assert!((history.largest(2) - end).abs() < 1e-9);
    }

    #[test]
    fn each_look_is_added_once_and_missed_ones_are_counted() {
        let mut recent = Recent::<u8, Vec<u64>>::default();
        let add = |all: &mut Vec<u64>, missed| all.push(missed);
        for look in 1..=4 {
            recent.look();
            assert!(recent.takes() && !recent.takes());
            recent.push(1, add);
            recent.push(1, add);
            if look % 3 == 1 {
                recent.push(2, add);
            }
        }
        assert_eq!(recent.get(&1), Some(&vec![0, 0, 0, 0]));
        assert_eq!(recent.get(&2), Some(&vec![0, 2]));
        (0..2 * LENGTH).for_each(|_| recent.look());
        assert_eq!(recent.get(&1), None);
    }
}
