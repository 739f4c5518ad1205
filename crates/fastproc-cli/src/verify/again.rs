//! Looking again at what differs, before it is called wrong.

use std::{thread, time::Duration};

/// What differs is looked at again this often.
pub const RETRIES: u32 = 6;
/// Before the first time; twice as long each time after that.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits before the look that follows this one, from 0. At once, it would meet the same moment again: a kernel thread that
/// reading itself wakes, or a CPU that comes or goes, in which the kernel's own texts and places disagree.
pub fn pause(attempt: u32) {
    thread::sleep(PAUSE * (1 << attempt.min(RETRIES)));
}
