//! How many bytes of command lines are kept of each user: who starts many programs with long arguments must not push out
//! what is older.

use std::collections::HashMap;

/// Of one user but root in a quarter of an hour. Further lines are unknown.
const MOST: usize = 4 << 20;
const QUARTER_NS: u64 = 900_000_000_000;

/// What the lines of each user took in this quarter of an hour.
#[derive(Debug, Default)]
pub struct Shares {
    quarter: u64,
    bytes: HashMap<u32, usize>,
}

impl Shares {
    /// Goes on at this time since boot.
    pub fn at(&mut self, now_ns: u64) {
        let quarter = now_ns / QUARTER_NS;
        if std::mem::replace(&mut self.quarter, quarter) != quarter {
            self.bytes.clear();
        }
    }

    /// Whether a line of this user is kept.
    pub fn take(&mut self, uid: u32, line: &[u8]) -> bool {
        if uid == 0 {
            return true;
        }
        let bytes = self.bytes.entry(uid).or_default();
        let fits = *bytes + line.len() <= MOST;
        if fits {
            *bytes += line.len();
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_user_take_no_more_than_a_share_of_each_quarter() {
        let mut shares = Shares::default();
        let line = vec![b'x'; MOST / 2];
        let mut take = |now_ns, uid| {
            shares.at(now_ns);
            shares.take(uid, &line)
        };
        assert!(take(1, 1000) && take(2, 1000));
        assert!(!take(3, 1000));
        assert!(take(4, 1001) && take(5, 0) && take(6, 0) && take(7, 0));
        assert!(take(QUARTER_NS, 1000));
    }
}
