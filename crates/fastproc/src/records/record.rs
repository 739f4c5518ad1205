//! The records: plain data that the kernel side writes and readers borrow.
//!
//! The structures are made from `bpf/record.h` when this crate is built, so the two sides cannot drift apart.
//!
//! Sizes are in bytes and times in nanoseconds, whatever unit the kernel counts in. A record holds values as the
//! kernel's own `/proc` files show them, at the kernel's own precision; a record that was parsed from those files has
//! the files' precision (a clock tick for CPU times, a KiB or a page for sizes).

include!(concat!(env!("OUT_DIR"), "/record.rs"));

/// Highest number of bytes in a process name.
pub const NAME_LEN: usize = NAME_SIZE;
/// A tick of `USER_HZ`, to which `/proc` rounds times, in nanoseconds. `USER_HZ` is 100 on every architecture that this
/// library is built for.
pub const TICK_NS: u64 = 10_000_000;

/// Whether two start times of a pid or thread id belong to the same process or thread.
///
/// `/proc` shows them in ticks, the kernel's structures exactly. A start time on a whole tick of [`TICK_NS`] is one that
/// text has rounded, or the service for a reader who may not trace the process; one in ten million exact ones is on a
/// tick, too. If neither is rounded, they must be equal: a pid can be used again within a tick.
pub const fn is_same_start(start_ns: u64, other_ns: u64) -> bool {
    start_ns == other_ns
        || (start_ns.is_multiple_of(TICK_NS) || other_ns.is_multiple_of(TICK_NS))
            && start_ns.abs_diff(other_ns) < TICK_NS
}

/// The start time for one that was rounded down to a tick of the reader's time namespace: on a whole tick since boot,
/// which marks it as rounded, and within the same tick of the reader.
pub(crate) const fn mark_rounded(start_ns: u64, tick_ns: u64) -> u64 {
    if start_ns.is_multiple_of(tick_ns) {
        return start_ns;
    }
    // It may be negative: a process of the first tick.
    let past_tick = start_ns.cast_signed().rem_euclid(tick_ns.cast_signed());
    start_ns.wrapping_add_signed(tick_ns.cast_signed() - past_tick)
}

/// State of a process or thread, as `/proc` prints it (`task_state_array[]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// `R`: running or ready to run.
    Running,
    /// `S`: in an interruptible sleep.
    Sleeping,
    /// `D`: in an uninterruptible sleep.
    DiskSleep,
    /// `T`: stopped by a signal.
    Stopped,
    /// `t`: stopped by a tracer.
    TracingStop,
    /// `X`: dead.
    Dead,
    /// `Z`: a zombie, not yet waited for.
    Zombie,
    /// `P`: parked.
    Parked,
    /// `I`: an idle kernel thread.
    Idle,
}

impl State {
    const ALL: [Self; 9] = [
        Self::Running,
        Self::Sleeping,
        Self::DiskSleep,
        Self::Stopped,
        Self::TracingStop,
        Self::Dead,
        Self::Zombie,
        Self::Parked,
        Self::Idle,
    ];

    /// The state for these report bits: the highest of them counts.
    pub const fn from_bits(bits: u32) -> Self {
        let index = (u32::BITS - (bits & 0xff).leading_zeros()) as usize;
        Self::ALL[index]
    }

    /// The report bit of this state.
    pub const fn bits(self) -> u32 {
        (1 << self as u32) >> 1
    }

    /// The state for this letter of `/proc/PID/stat`.
    pub const fn from_letter(letter: u8) -> Option<Self> {
        Some(match letter {
            b'R' => Self::Running,
            b'S' => Self::Sleeping,
            b'D' => Self::DiskSleep,
            b'T' => Self::Stopped,
            b't' => Self::TracingStop,
            b'X' => Self::Dead,
            b'Z' => Self::Zombie,
            b'P' => Self::Parked,
            b'I' => Self::Idle,
            _ => return None,
        })
    }

    /// The letter that `/proc/PID/stat` and `ps` show.
    pub const fn letter(self) -> u8 {
        self.name().as_bytes()[0]
    }

    /// The words of the `State:` line of `/proc/PID/status`, as in `S (sleeping)`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "R (running)",
            Self::Sleeping => "S (sleeping)",
            Self::DiskSleep => "D (disk sleep)",
            Self::Stopped => "T (stopped)",
            Self::TracingStop => "t (tracing stop)",
            Self::Dead => "X (dead)",
            Self::Zombie => "Z (zombie)",
            Self::Parked => "P (parked)",
            Self::Idle => "I (idle)",
        }
    }
}

impl Identity {
    /// State of the process, that is of its leading thread.
    pub const fn state(&self) -> State {
        State::from_bits(self.state_bits)
    }

    /// Whether this is a kernel thread (`PF_KTHREAD`).
    pub const fn is_kernel_thread(&self) -> bool {
        self.flags & 0x0020_0000 != 0
    }
}

impl Delays {
    /// What adds nothing to a sum.
    pub(crate) const ZERO: Self = Self {
        blkio_delay_ns: 0,
        blkio_count: 0,
        swapin_delay_ns: 0,
        swapin_count: 0,
        reclaim_delay_ns: 0,
        reclaim_count: 0,
        thrashing_delay_ns: 0,
        thrashing_count: 0,
        compaction_delay_ns: 0,
        compaction_count: 0,
    };
}

impl Memory {
    /// Resident set, as exact as in this kernel's statm: `VmRSS`, `resident` of statm.
    pub const fn rss(&self) -> u64 {
        // No kernel has that much memory, but a recording may claim it.
        self.shared().saturating_add(self.rss_anon)
    }

    /// Resident memory that is not private by nature: `shared` of statm.
    pub const fn shared(&self) -> u64 {
        self.rss_file.saturating_add(self.rss_shmem)
    }
}

#[doc(hidden)]
impl Record {
    /// Whether a part of its values is in the pool.
    pub const fn points_into_pool(&self) -> bool {
        let details = &self.scheduling_details;
        (self.credentials.groups_at | self.namespaces.ids_at | details.cpus_at | details.mems_at)
            != 0
    }

    /// Adds `by` to its offsets in the pool, for callers that append pools to each other. An offset of 0,
    /// which points nowhere, stays.
    pub fn move_in_pool(&mut self, by: u32) {
        for at in [
            &mut self.credentials.groups_at,
            &mut self.namespaces.ids_at,
            &mut self.scheduling_details.cpus_at,
            &mut self.scheduling_details.mems_at,
        ] {
            if *at != 0 {
                *at = at.saturating_add(by);
            }
        }
    }
}

impl Credentials {
    /// `NoNewPrivs`: execve(2) no longer grants privileges.
    pub const fn no_new_privs(&self) -> bool {
        self.atomic_flags & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn exact_start_times_are_equal_or_of_two_processes() {
        let exact = 5 * TICK_NS + 1;
        assert!(is_same_start(exact, exact));
        assert!(!is_same_start(exact, exact + 1));
        for rounded in [5 * TICK_NS, 6 * TICK_NS] {
            assert!(is_same_start(exact, rounded) && is_same_start(rounded, exact));
        }
        assert!(!is_same_start(5 * TICK_NS, 6 * TICK_NS), "both are rounded");
        assert!(!is_same_start(exact, 7 * TICK_NS));
    }

    proptest! {
        #[test]
        fn a_rounded_start_time_is_that_of_its_process_and_of_its_text(
            start_ns in 0..1_u64 << 52,
            shown_ns in 0..1_u64 << 52,
        ) {
            // What the time namespace of the reader adds.
            let offset_ns = shown_ns.wrapping_sub(start_ns);
            let text_ns = shown_ns - shown_ns % TICK_NS;
            let marked = mark_rounded(text_ns.wrapping_sub(offset_ns), TICK_NS);
            prop_assert!(marked.is_multiple_of(TICK_NS));
            prop_assert_eq!(marked.wrapping_add(offset_ns) / TICK_NS, text_ns / TICK_NS);
            prop_assert!(is_same_start(start_ns, marked));
        }
    }
}
