//! Forks beside a measurement, at a steady rate: as on a machine that runs scripts all the time.
//!
//! A child of this program forks, and dies with it. It only makes system calls, because this program may have threads.

use std::io;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Children that end at once, forked until this is dropped.
#[derive(Debug)]
pub struct Forks {
    forker: Pid,
}

impl Forks {
    /// Starts to fork `per_second` times a second, or as often as the machine can.
    pub fn start(per_second: u32) -> io::Result<Self> {
        let period_ns = 1_000_000_000 / u64::from(per_second.max(1));
        // SAFETY: the child only makes system calls, and ends by a signal.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => fork_forever(period_ns),
            pid => {
                let forker =
                    Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork gave no pid"))?;
                Ok(Self { forker })
            }
        }
    }
}

impl Drop for Forks {
    fn drop(&mut self) {
        // Nothing else reaps it, so the pid is still its own.
        let _ = kill_process(self.forker, Signal::KILL);
        let _ = waitpid(Some(self.forker), WaitOptions::empty());
    }
}

fn fork_forever(period_ns: u64) -> ! {
    let mut next = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: system calls on values of this stack; the children leave by _exit.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut next);
        loop {
            match libc::fork() {
                0 => libc::_exit(0),
                child => libc::waitpid(child, std::ptr::null_mut(), 0),
            };
            let ns = next.tv_nsec as u64 + period_ns;
            next.tv_sec += (ns / 1_000_000_000) as libc::time_t;
            next.tv_nsec = (ns % 1_000_000_000) as libc::c_long;
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const next,
                std::ptr::null_mut(),
            );
        }
    }
}
