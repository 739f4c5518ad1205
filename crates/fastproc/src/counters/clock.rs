//! The clocks used in the texts.

use rustix::time::{ClockId, Timespec};

use crate::base::frozen::clock;

fn ns(time: Timespec) -> u64 {
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// `CLOCK_MONOTONIC`, as returned by `bpf_ktime_get_ns()`. (A time namespace shifts the caller's clock, but only
/// differences are used.)
pub(super) fn monotonic_ns() -> u64 {
    ns(clock(ClockId::Monotonic))
}

/// `btime`: the whole seconds of the real-time clock when the boot-time clock was at 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BootTime {
    offset: u64,
    seconds: u64,
}

/// Smaller steps are ignored: they are the time between two readings.
const SAME: u64 = 50_000;

impl BootTime {
    /// The value now, and whether the clock was stepped since the last time.
    pub(super) fn read(&mut self) -> (u64, bool) {
        let real = ns(clock(ClockId::Realtime));
        let boot = ns(clock(ClockId::Boottime));
        let offset = real.wrapping_sub(boot);
        if offset.abs_diff(self.offset) < SAME {
            return (self.seconds, false);
        }
        let stepped = self.offset != 0;
        self.offset = offset;
        for _ in 0..16 {
            let before = ns(clock(ClockId::Boottime));
            let real = ns(clock(ClockId::Realtime));
            let after = ns(clock(ClockId::Boottime));
            let (low, high) = (real.wrapping_sub(after), real.wrapping_sub(before));
            self.offset = low;
            self.seconds = low / 1_000_000_000;
            // Both bounds are in the same second, which is the result.
            if low / 1_000_000_000 == high / 1_000_000_000 {
                break;
            }
        }
        (self.seconds, stepped)
    }
}
