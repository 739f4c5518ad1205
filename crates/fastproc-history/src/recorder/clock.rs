//! The clocks: when the next walk is due, and what happened to the time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Smaller changes of a clock are no events. Adjustments by NTP are much smaller from one walk to the next.
const JUMP: i64 = 250_000;
/// Clocks that are read further apart are read again.
const APART: i64 = 2_000;
const SECOND: i64 = 1_000_000;

/// A moment on three clocks, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since 1970.
    pub wall: i64,
    /// Since boot.
    pub boot: i64,
    /// Since boot without the time that the machine slept.
    pub awake: i64,
}

/// What happened between two moments besides that time passed, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// By how much the wall clock was set forward; back if negative.
    pub jumped: Option<i64>,
    /// How long the machine slept.
    pub slept: Option<i64>,
}

fn read(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * SECOND + now.tv_nsec / 1000
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let mut tries = 0;
        loop {
            let boot = read(ClockId::Boottime);
            let moment = Self {
                wall: read(ClockId::Realtime),
                awake: read(ClockId::Monotonic),
                boot,
            };
            tries += 1;
            // This thread may have lost its CPU in between.
            if read(ClockId::Boottime) - boot < APART || tries == 10 {
                return moment;
            }
        }
    }

    /// When the machine was booted, by its wall clock now.
    pub const fn boot_time(self) -> i64 {
        self.wall - self.boot
    }

    /// The multiple of an interval that this moment is at or after.
    pub const fn tick(self, interval: i64) -> i64 {
        self.wall - self.wall.rem_euclid(interval)
    }

    /// How long to wait for the next multiple of an interval.
    pub fn until_next_tick(self, interval: i64) -> Duration {
        Duration::from_micros((interval - self.wall.rem_euclid(interval)).cast_unsigned())
    }

    /// What happened since an earlier moment.
    pub fn since(self, earlier: Self) -> Happened {
        let jumped = self.boot_time() - earlier.boot_time();
        let slept = (self.boot - self.awake) - (earlier.boot - earlier.awake);
        Happened {
            jumped: Some(jumped).filter(|by| by.abs() >= JUMP),
            slept: Some(slept).filter(|by| *by >= JUMP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_and_a_machine_that_slept_are_told() {
        let at = |wall, boot, awake| Moment { wall, boot, awake };
        let before = at(100 * SECOND, 10 * SECOND, 10 * SECOND);
        let after = |wall, boot, awake| {
            at(before.wall + wall, before.boot + boot, before.awake + awake).since(before)
        };
        assert_eq!(after(SECOND + 200, SECOND, SECOND), Happened::default());
        let set = after(SECOND - 3_600 * SECOND, SECOND, SECOND);
        assert_eq!((set.jumped, set.slept), (Some(-3_600 * SECOND), None));
        let slept = after(60 * SECOND, 60 * SECOND, SECOND);
        assert_eq!((slept.jumped, slept.slept), (None, Some(59 * SECOND)));
    }

    #[test]
    fn ticks_are_multiples_of_the_interval() {
        let moment = Moment {
            wall: 12 * SECOND + 1,
            boot: 0,
            awake: 0,
        };
        assert_eq!(moment.tick(5 * SECOND), 10 * SECOND);
        assert_eq!(moment.until_next_tick(5 * SECOND).as_micros(), 2_999_999);
    }

    #[test]
    fn the_clocks_are_read() {
        let (first, second) = (Moment::now(), Moment::now());
        assert!(second.boot >= first.boot && first.wall > 1_500_000_000 * SECOND);
        assert!(second.boot >= first.awake);
    }
}
