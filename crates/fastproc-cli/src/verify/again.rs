//! Reading a differing value again before it counts as wrong.

use std::{thread, time::Duration};

/// How often a differing value is read again.
pub const RETRIES: u32 = 6;
/// The first pause; each following one is twice as long.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits before the next attempt; `attempt` counts from 0. Without a pause it could meet the same situation: a kernel
/// thread that reading wakes, or a CPU that goes on- or offline, while the kernel's texts and memory disagree.
pub fn pause(attempt: u32) {
    thread::sleep(PAUSE * (1 << attempt.min(RETRIES)));
}
