//! Costly values of a group.

use super::{Entry, Reading};

/// The costly values of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostlySums {
    /// Proportional resident memory.
    pub pss_bytes: u64,
    /// Proportional swapped memory.
    pub swap_pss_bytes: u64,
    /// How complete the last two are.
    pub smaps: Known,
    /// Open descriptors.
    pub open: u64,
    /// The largest ratio to a limit, in units of 1e-9.
    pub worst_ratio_nano: u64,
    /// How complete the last two are.
    pub fds: Known,
    /// How complete the waiting places are.
    pub wchan: Known,
}

/// How complete the values of a group are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Age of the oldest value, in nanoseconds.
    pub age_ns: u64,
    read: u64,
    hidden: u64,
    unread: u64,
}

impl Known {
    fn add<T>(&mut self, reading: &Reading<T>, boottime_ns: u64) {
        match reading {
            Reading::Read { at_ns, .. } => {
                self.read += 1;
                self.age_ns = self.age_ns.max(boottime_ns.saturating_sub(*at_ns));
            }
            Reading::Hidden => self.hidden += 1,
            Reading::Unread => self.unread += 1,
        }
    }

    /// Processes without a known value.
    pub const fn unknown(&self) -> u64 {
        self.hidden + self.unread
    }

    /// Whether the sums are meaningful: no process waits to be read, and not all are hidden.
    pub const fn is_complete(&self) -> bool {
        self.unread == 0 && (self.read > 0 || self.hidden == 0)
    }
}

impl CostlySums {
    pub(super) fn add(&mut self, entry: &Entry, boottime_ns: u64) {
        if let Reading::Read { value, .. } = &entry.smaps {
            self.pss_bytes += value.pss_bytes;
            self.swap_pss_bytes += value.swap_pss_bytes;
        }
        if let Reading::Read { value, .. } = &entry.fds {
            self.open += value.open;
            let ratio = u128::from(value.open) * 1_000_000_000 / u128::from(value.limit.max(1));
            self.worst_ratio_nano = self.worst_ratio_nano.max(ratio as u64);
        }
        self.smaps.add(&entry.smaps, boottime_ns);
        self.fds.add(&entry.fds, boottime_ns);
        self.wchan.add(&entry.waiting, boottime_ns);
    }
}
