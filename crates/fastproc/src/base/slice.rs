//! The time slice of a thread that walks, so that other threads need not wait for it.

use std::io;

/// As long as a walk of some ten thousand processes. The kernel allows 0.1 to 100 ms.
const SLICE_NS: u64 = 20_000_000;

/// Lets ordinary threads preempt the calling thread, and those that it creates later, as soon as they wake.
///
/// A walk runs on in short pieces, and a thread that slept before has earned its whole slice: who wakes meanwhile would
/// wait for its end. So this asks the scheduler for a slice of 20 ms, because a thread with a shorter one may preempt it.
/// Only how long others wait changes, not the share of the CPU. Returns whether the kernel keeps the slice: it does since
/// Linux 6.12, for threads without a real-time or deadline policy.
///
/// # Errors
///
/// Those of `sched_getattr` and `sched_setattr`, for instance where a filter of system calls forbids them.
pub fn give_way() -> io::Result<bool> {
    let mut attributes = attributes()?;
    if !matches!(
        attributes.sched_policy as i32,
        libc::SCHED_OTHER | libc::SCHED_BATCH
    ) {
        return Ok(false);
    }
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: the kernel reads the structure, which has its size in it; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(self::attributes()?.sched_runtime == SLICE_NS)
}

fn attributes() -> io::Result<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>() as u32;
    let mut attributes = libc::sched_attr {
        size,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `size` bytes to the structure; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if result == 0 {
        Ok(attributes)
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel that keeps slices says so in the attributes of any ordinary thread: it has one.
    #[test]
    fn the_slice_is_kept_where_the_kernel_has_slices() {
        let has_slices = attributes().expect("a thread has attributes").sched_runtime != 0;
        assert_eq!(give_way().expect("it is allowed"), has_slices);
        let nice = attributes().expect("a thread has attributes").sched_nice;
        let child = std::thread::spawn(|| attributes().expect("a thread has attributes"));
        let child = child.join().expect("it ends");
        assert_eq!(child.sched_runtime == SLICE_NS, has_slices);
        assert_eq!(child.sched_nice, nice);
    }
}
