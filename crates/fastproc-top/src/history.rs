//! The last values of a number, to be drawn as a line.

/// So many values are kept.
pub const LENGTH: usize = 300;

/// The last values, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    values: std::collections::VecDeque<f32>,
}

impl History {
    /// Adds a value; one that is not known leaves a gap.
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

    /// The largest of them.
    pub fn largest(&self, width: usize) -> f64 {
        self.last(width).flatten().fold(0.0, f64::max)
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
}
