//! Forks beside a measurement, at a steady rate: as on a machine that runs scripts all the time. A child of this program
//! forks, and dies with it.

use std::{io, time::Duration};

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid,
};

use super::{
    exits::fork_and_wait,
    latency::{now_ns, sleep_until},
};

/// Children that end at once, forked until this is dropped.
#[derive(Debug)]
pub struct Forks {
    forker: Pid,
}

impl Forks {
    /// Starts to fork `per_second` times a second, or as often as the machine can.
    pub fn start(per_second: u32) -> io::Result<Self> {
        let period_ns = 1_000_000_000 / u64::from(per_second.max(1));
        // SAFETY: this process has one thread, so the child may do anything; it ends by a signal.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                let mut next = now_ns();
                loop {
                    let _ = fork_and_wait(Duration::ZERO);
                    next += period_ns;
                    let _ = sleep_until(next);
                }
            }
            pid => {
                let forker = Pid::from_raw(pid);
                let forker = forker.ok_or_else(|| io::Error::other("fork gave no pid"))?;
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
