//! How much is kept of each user: who starts many programs must not push out what is older.

use std::collections::{BTreeMap, HashMap};

/// What each user but root took in this quarter of an hour.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    quarter: i64,
    taken: HashMap<u32, usize>,
    left_out: BTreeMap<u32, u64>,
}

impl Shares {
    /// Each user has so much in a quarter of an hour.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            quarter: 0,
            taken: HashMap::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// Goes on in this quarter of an hour. Returns which one is over, and how many things of each user were left out in it.
    pub fn at(&mut self, quarter: i64) -> (i64, BTreeMap<u32, u64>) {
        let before = std::mem::replace(&mut self.quarter, quarter);
        if before == quarter {
            return (before, BTreeMap::new());
        }
        self.taken.clear();
        (before, std::mem::take(&mut self.left_out))
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
        let mut shares = Shares::new(4);
        shares.at(1);
        assert!(shares.take(1000, 2) && shares.take(1000, 2));
        assert!(!shares.take(1000, 1));
        assert!(shares.take(1001, 4) && shares.take(0, 9) && shares.take(0, 9));
        assert_eq!(shares.at(1), (1, BTreeMap::new()));
        assert_eq!(shares.at(2), (1, BTreeMap::from([(1000, 1)])));
        assert!(shares.take(1000, 4));
    }
}
