//! The units of the kernel's texts.

use crate::base::host::Host;

/// Page, clock tick, and the offset of the reader's time namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Binary logarithm of the size of a page.
    pub page_shift: u32,
    /// Nanoseconds in a clock tick (`USER_HZ`): 10,000,000 everywhere today.
    pub tick_ns: u64,
    /// What the reader's time namespace adds to times after boot, in nanoseconds.
    pub boot_offset_ns: i64,
}

impl From<&Host> for Units {
    fn from(host: &Host) -> Self {
        Self {
            page_shift: host.page_size.trailing_zeros().min(63),
            tick_ns: 1_000_000_000 / host.ticks_per_second.clamp(1, 1_000_000_000),
            boot_offset_ns: host.boot_offset_ns,
        }
    }
}

impl Units {
    /// `nsec_to_clock_t()`.
    #[inline]
    pub(super) const fn ticks(&self, ns: u64) -> u64 {
        const USUAL: u64 = 10_000_000;
        // Division by a constant becomes a multiplication, which is several times as fast.
        if self.tick_ns == USUAL {
            ns / USUAL
        } else {
            ns / self.tick_ns
        }
    }

    /// Start time in ticks in the reader's time namespace (`timens_add_boottime_ns()`).
    #[inline]
    pub(super) const fn start_ticks(&self, start_ns: u64) -> u64 {
        self.ticks(start_ns.wrapping_add_signed(self.boot_offset_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_is_the_readers() {
        let units = Units {
            page_shift: 12,
            tick_ns: 10_000_000,
            boot_offset_ns: -1_000_000_000,
        };
        assert_eq!(units.start_ticks(3_019_999_999), 201);
        assert_eq!(
            Units {
                tick_ns: 4_000_000,
                ..units
            }
            .ticks(1_000_000_000),
            250
        );
    }
}
