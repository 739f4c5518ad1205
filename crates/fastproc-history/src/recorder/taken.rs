//! The times that are recorded already. A history has one row group for a time, also if the clock is set back.

use std::collections::BTreeMap;

/// In microseconds.
const HOUR: i64 = 3_600_000_000;

/// Times from beginnings to ends, which do not touch.
#[derive(Debug, Default)]
pub struct Taken(BTreeMap<i64, i64>);

impl Taken {
    /// Adds the times from the first one to before the second one.
    pub fn add(&mut self, mut from: i64, mut to: i64) {
        while let Some((&at, &end)) = self.0.range(..=to).next_back() {
            if end < from {
                break;
            }
            (from, to) = (from.min(at), to.max(end));
            self.0.remove(&at);
        }
        if from < to {
            self.0.insert(from, to);
        }
    }

    /// Takes the rest of each hour of which some time is taken, and which is over at this time: it is sealed then.
    pub fn seal(&mut self, now: i64) {
        let over = now - now.rem_euclid(HOUR);
        let open: Vec<_> = self.0.iter().map(|(&from, &to)| (from, to)).collect();
        for (from, to) in open.into_iter().filter(|(from, _)| *from < over) {
            let up = to + (-to).rem_euclid(HOUR);
            self.add(from - from.rem_euclid(HOUR), to.max(up.min(over)));
        }
    }

    /// Whether a time is taken.
    pub fn contains(&self, time: i64) -> bool {
        let found = self.0.range(..=time).next_back();
        found.is_some_and(|(_, &end)| time < end)
    }

    /// The next time that is taken, at or after this one.
    pub fn next(&self, time: i64) -> Option<i64> {
        self.0.range(time..).next().map(|(&from, _)| from)
    }

    /// The end of what is taken before this time.
    pub fn end_before(&self, time: i64) -> Option<i64> {
        self.0.range(..time).next_back().map(|(_, &end)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_touch_are_one() {
        let mut taken = Taken::default();
        for (from, to) in [(10, 20), (30, 40), (50, 60), (20, 30), (35, 45), (7, 7)] {
            taken.add(from, to);
        }
        assert_eq!(taken.0, BTreeMap::from([(10, 45), (50, 60)]));
        assert!(taken.contains(10) && taken.contains(44));
        assert!(!taken.contains(9) && !taken.contains(45));
        assert_eq!((taken.next(12), taken.next(51)), (Some(50), None));
        assert_eq!(
            (taken.end_before(48), taken.end_before(5)),
            (Some(45), None)
        );
    }

    #[test]
    fn hours_that_are_over_are_taken_as_a_whole() {
        let mut taken = Taken::default();
        for (from, to) in [
            (10, 20),
            (HOUR + 10, HOUR + 20),
            (5 * HOUR + 1, 5 * HOUR + 2),
        ] {
            taken.add(from, to);
        }
        taken.seal(HOUR + 30);
        taken.seal(5 * HOUR + 3);
        let sealed = [(0, 2 * HOUR), (5 * HOUR + 1, 5 * HOUR + 2)];
        assert_eq!(taken.0, BTreeMap::from(sealed));
    }
}
