//! The clock by which the kernel calculates averages of pressure.
//!
//! It is `sched_clock()`, while the states of CPUs have times of `cpu_clock()`: they differ by a constant that the kernel
//! does not show. When the kernel calculates averages it stores the time of the first clock. If that happened between two
//! walks, the time of the second clock was then at least that of the earlier walk. This bounds the difference, to less
//! than a millisecond as soon as this library has read a file of a cgroup whose averages were due.

/// The difference that is assumed at most until a bound is known.
const UNKNOWN_NS: i64 = 1_000_000_000;
/// The time of a walk is a little late: the clock is read once for a section, and from the run queue.
const MARGIN_NS: i64 = 20_000_000;

/// What is known of the difference of the two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct AverageClock {
    /// The clock of the states minus that of the averages is at least this.
    at_least_ns: i64,
    /// When the last walk began, by the clock of the states; 0: there was none.
    began: u64,
    /// When averages were calculated last before that.
    last_update: u64,
}

impl Default for AverageClock {
    fn default() -> Self {
        Self {
            at_least_ns: -UNKNOWN_NS,
            began: 0,
            last_update: 0,
        }
    }
}

impl AverageClock {
    /// By how much the clock of the averages may be ahead of the time of a walk. Modulo 2^64, as the program adds it.
    pub(super) fn lead_ns(self) -> u64 {
        (MARGIN_NS - self.at_least_ns) as u64
    }

    pub(super) fn last_update(self) -> u64 {
        self.last_update
    }

    /// Learns from a walk: its time at the beginning and at the end, and when averages were calculated: first after
    /// `last_update`, or `u64::MAX`, and last.
    pub(super) fn learn(&mut self, [began, ended]: [u64; 2], [first, last]: [u64; 2]) {
        if self.began != 0 && first != u64::MAX {
            let at_least = self.began.wrapping_sub(first) as i64;
            self.at_least_ns = self.at_least_ns.max(at_least);
        }
        // The clocks were set, as after a suspend.
        if last != 0 && self.at_least_ns > (ended.wrapping_sub(last) as i64) + MARGIN_NS {
            *self = Self::default();
        }
        (self.began, self.last_update) = (began, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn clock() -> AverageClock {
        let mut clock = AverageClock::default();
        // The clock of the averages is 5 s behind.
        clock.learn([10_000 * MS, 10_001 * MS], [3_000 * MS, 4_000 * MS]);
        clock
    }

    #[test]
    fn an_update_after_a_walk_bounds_the_difference() {
        let mut clock = clock();
        assert_eq!(clock.lead_ns(), 1_020 * MS);
        assert_eq!(clock.last_update(), 4_000 * MS);
        clock.learn([11_000 * MS, 11_001 * MS], [u64::MAX, 4_000 * MS]);
        assert_eq!(clock.lead_ns(), 1_020 * MS);
        // Nothing but the time between the walks is lost.
        clock.learn([12_000 * MS, 12_001 * MS], [6_003 * MS, 6_900 * MS]);
        let lead = 20_i64 - 4_997;
        assert_eq!(clock.lead_ns() as i64, lead * MS as i64);
        // A later bound is less certain.
        clock.learn([13_000 * MS, 13_001 * MS], [7_900 * MS, 7_950 * MS]);
        assert_eq!(clock.lead_ns() as i64, lead * MS as i64);
    }

    #[test]
    fn the_clock_of_averages_restarts_when_the_time_is_set() {
        let mut clock = clock();
        clock.learn([12_000 * MS, 12_001 * MS], [5_003 * MS, 6_900 * MS]);
        assert_eq!(clock.lead_ns() as i64, (20 - 4_997) * MS as i64);
        clock.learn([13_000 * MS, 13_001 * MS], [12_500 * MS, 12_900 * MS]);
        assert_eq!(clock.lead_ns(), 1_020 * MS);
        assert_eq!(clock.last_update(), 12_900 * MS);
    }
}
