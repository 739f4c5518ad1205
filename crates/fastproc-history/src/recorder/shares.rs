//! How much is kept of each user: who starts many programs must not push out what is older.

use std::collections::{BTreeMap, HashMap};

use super::{session::GROUP, writing::Event};

/// What each user but root took in this quarter of an hour.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    /// What is kept, and the unit of `most`.
    what: [&'static str; 2],
    quarter: i64,
    taken: HashMap<u32, usize>,
    left_out: BTreeMap<u32, u64>,
}

impl Shares {
    /// Each user has so much in a quarter of an hour.
    pub fn new(most: usize, what: [&'static str; 2]) -> Self {
        Self {
            most,
            what,
            quarter: 0,
            taken: HashMap::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// Goes on in this quarter of an hour, or ends. Tells what was left out in the one that is over.
    pub fn at(&mut self, quarter: Option<i64>) -> Vec<Event> {
        let over = self.quarter;
        if quarter == Some(over) {
            return Vec::new();
        }
        if let Some(quarter) = quarter {
            self.quarter = quarter;
            self.taken.clear();
        }
        let Self { most, what, .. } = self;
        let left_out = std::mem::take(&mut self.left_out).into_iter();
        let told = left_out.map(|(uid, count)| Event {
            event: "left_out",
            since: Some(over * GROUP),
            until: Some((over + 1) * GROUP),
            detail: format!(
                "{count} {} of user {uid}, who had more than {most}{} in a quarter of an hour",
                what[0], what[1]
            ),
        });
        told.collect()
    }

    /// Whether something of this user is kept.
    pub fn take(&mut self, uid: u32, size: usize) -> bool {
        if uid == 0 {
            return true;
        }
        let taken = self.taken.entry(uid).or_default();
        let fits = *taken + size <= self.most;
        if fits {
            *taken += size;
        } else {
            *self.left_out.entry(uid).or_default() += 1;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_takes_no_more_than_a_share_of_each_quarter() {
        let mut shares = Shares::new(4, ["lines", " bytes"]);
        shares.at(Some(1));
        assert!(shares.take(1000, 2) && shares.take(1000, 2));
        assert!(!shares.take(1000, 1));
        assert!(shares.take(1001, 4) && shares.take(0, 9) && shares.take(0, 9));
        assert_eq!(shares.at(Some(1)), []);
        let told = shares.at(Some(2));
        let detail = "1 lines of user 1000, who had more than 4 bytes in a quarter of an hour";
        assert_eq!((told.len(), &*told[0].detail), (1, detail));
        assert_eq!([told[0].since, told[0].until], [GROUP, 2 * GROUP].map(Some));
        assert!(shares.take(1000, 4) && !shares.take(1000, 1));
        assert_eq!((shares.at(None).len(), shares.at(None).len()), (1, 0));
    }
}
