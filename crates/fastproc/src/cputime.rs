//! CPU times as the kernel shows them: sampled by ticks, scaled to the precise run time, never running backwards.

use crate::record::{Cpu, ThreadRecord};

/// User and system time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in user mode.
    pub utime_ns: u64,
    /// Time in kernel mode.
    pub stime_ns: u64,
}

impl CpuTime {
    const fn sum(self) -> u64 {
        self.utime_ns.saturating_add(self.stime_ns)
    }
}

/// `cputime_adjust()` of kernel/sched/cputime.c: splits the precise run time `rtime` in the proportion of the sampled
/// times, and lets neither part fall behind what was shown before.
pub fn cputime_adjust(rtime: u64, sampled: CpuTime, shown: CpuTime) -> CpuTime {
    if shown.sum() >= rtime {
        return shown;
    }
    let stime = match sampled {
        CpuTime { stime_ns: 0, .. } => 0,
        CpuTime { utime_ns: 0, .. } => rtime,
        CpuTime { utime_ns, stime_ns } => {
            let scaled = u128::from(stime_ns) * u128::from(rtime)
                / (u128::from(stime_ns) + u128::from(utime_ns));
            // stime / (stime + utime) is at most one
            scaled as u64
        }
    };
    forward(rtime, stime, shown)
}

/// Splits `rtime` with `stime` as the system part, but no part below what was shown. `shown.sum() < rtime`.
fn forward(rtime: u64, stime: u64, shown: CpuTime) -> CpuTime {
    let mut stime = stime.max(shown.stime_ns);
    let mut utime = rtime.saturating_sub(stime);
    if utime < shown.utime_ns {
        utime = shown.utime_ns;
        stime = rtime.saturating_sub(utime);
    }
    CpuTime {
        utime_ns: utime,
        stime_ns: stime,
    }
}

/// What the kernel would show now, whatever a collector has shown before.
pub fn of_process(cpu: &Cpu) -> CpuTime {
    cputime_adjust(
        cpu.sum_exec_ns,
        CpuTime {
            utime_ns: cpu.sampled_utime_ns,
            stime_ns: cpu.sampled_stime_ns,
        },
        CpuTime {
            utime_ns: cpu.prev_utime_ns,
            stime_ns: cpu.prev_stime_ns,
        },
    )
}

/// The same for a thread.
pub(crate) fn of_thread(thread: &ThreadRecord) -> CpuTime {
    cputime_adjust(
        thread.sum_exec_ns,
        CpuTime {
            utime_ns: thread.sampled_utime_ns,
            stime_ns: thread.sampled_stime_ns,
        },
        CpuTime {
            utime_ns: thread.prev_utime_ns,
            stime_ns: thread.prev_stime_ns,
        },
    )
}

/// Remembers what was shown of each process, as the kernel does in `signal->prev_cputime`.
///
/// A BPF program cannot write there, and if nobody reads `/proc` the kernel's memory stands still: the split between
/// user and system time would then be made afresh each time, and could move either of them back.
#[derive(Debug, Default)]
pub(crate) struct CpuClock {
    shown: Vec<Shown>,
    before: Vec<Shown>,
    at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    pid: u32,
    start_ns: u64,
    sum_exec_ns: u64,
    time: CpuTime,
}

impl CpuClock {
    /// Starts a pass over all processes, in the order of their pids.
    pub(crate) fn start(&mut self) {
        std::mem::swap(&mut self.shown, &mut self.before);
        self.shown.clear();
        self.at = 0;
    }

    /// The times to show for the next process.
    pub(crate) fn show(&mut self, pid: u32, start_ns: u64, cpu: &Cpu) -> CpuTime {
        while self
            .before
            .get(self.at)
            .is_some_and(|before| before.pid < pid)
        {
            self.at += 1;
        }
        let before = self.before.get(self.at).copied();
        let shown = Shown::after(before, pid, start_ns, cpu);
        self.shown.push(shown);
        shown.time
    }

    /// The times to show for the process at this place of the last pass; the others stay as they are.
    pub(crate) fn show_again(&mut self, at: usize, pid: u32, start_ns: u64, cpu: &Cpu) -> CpuTime {
        let before = self.shown.get(at).copied();
        let shown = Shown::after(before, pid, start_ns, cpu);
        if let Some(place) = self.shown.get_mut(at) {
            *place = shown;
        }
        shown.time
    }
}

impl Shown {
    fn after(before: Option<Self>, pid: u32, start_ns: u64, cpu: &Cpu) -> Self {
        let before = before.filter(|before| before.pid == pid && before.start_ns == start_ns);
        let time = match before {
            // A process that has not run shows what it showed; unless the kernel has shown somebody more.
            Some(before)
                if before.sum_exec_ns == cpu.sum_exec_ns
                    && cpu.prev_utime_ns <= before.time.utime_ns
                    && cpu.prev_stime_ns <= before.time.stime_ns =>
            {
                before.time
            }
            Some(before) => not_backwards(of_process(cpu), before.time),
            None => of_process(cpu),
        };
        Self {
            pid,
            start_ns,
            sum_exec_ns: cpu.sum_exec_ns,
            time,
        }
    }
}

/// Moves the border between user and system time so that neither falls back, if their sum allows it.
fn not_backwards(now: CpuTime, before: CpuTime) -> CpuTime {
    if now.sum() <= before.sum() {
        before
    } else {
        forward(now.sum(), now.stime_ns, before)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn time(utime_ns: u64, stime_ns: u64) -> CpuTime {
        CpuTime { utime_ns, stime_ns }
    }

    #[test]
    fn the_run_time_is_split_as_it_was_sampled() {
        assert_eq!(cputime_adjust(100, time(3, 1), time(0, 0)), time(75, 25));
        assert_eq!(cputime_adjust(100, time(0, 1), time(0, 0)), time(0, 100));
        assert_eq!(cputime_adjust(100, time(0, 0), time(0, 0)), time(100, 0));
    }

    #[test]
    fn what_was_shown_does_not_fall_back() {
        assert_eq!(cputime_adjust(100, time(1, 1), time(80, 20)), time(80, 20));
        assert_eq!(cputime_adjust(110, time(1, 1), time(80, 20)), time(80, 30));
        assert_eq!(cputime_adjust(110, time(1, 0), time(80, 20)), time(90, 20));
    }

    #[test]
    fn large_times_do_not_overflow() {
        let year = 365 * 24 * 3600 * 1_000_000_000;
        assert_eq!(
            cputime_adjust(year * 500, time(year, year), time(0, 0)),
            time(year * 250, year * 250)
        );
    }

    proptest! {
        /// Whatever the samples do, the shown times only grow, and add up to the run time.
        #[test]
        fn a_clock_never_runs_backwards(steps in prop::collection::vec((0..1000_u64, 0..1000_u64, 0..1000_u64), 1..50)) {
            let mut clock = CpuClock::default();
            let mut cpu = Cpu::default();
            let mut last = CpuTime::default();
            let mut again = false;
            for (run, user, system) in steps {
                cpu.sum_exec_ns += run;
                cpu.sampled_utime_ns += user;
                cpu.sampled_stime_ns += system;
                let now = if again {
                    clock.show_again(0, 7, 1, &cpu)
                } else {
                    clock.start();
                    clock.show(7, 1, &cpu)
                };
                again = !again && run % 2 == 0;
                prop_assert!(now.utime_ns >= last.utime_ns && now.stime_ns >= last.stime_ns);
                prop_assert_eq!(now.sum(), cpu.sum_exec_ns);
                last = now;
            }
        }

        /// A new process with an old pid starts afresh.
        #[test]
        fn a_reused_pid_is_another_process(run in 1..1000_u64) {
            let mut clock = CpuClock::default();
            clock.start();
            clock.show(7, 1, &Cpu { sum_exec_ns: 5000, ..Cpu::default() });
            clock.start();
            let now = clock.show(7, 2, &Cpu { sum_exec_ns: run, ..Cpu::default() });
            prop_assert_eq!(now, time(run, 0));
        }
    }
}
