//! CPU times as the kernel shows them: sampled by ticks, scaled to the precise run time, never running backwards.

use std::collections::HashMap;

use crate::records::record::{Cpu, ThreadRecord, is_same_start};

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
/// times, without decreasing a part that was shown before.
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

/// The inputs of the calculation, for a process or a thread.
#[derive(Clone, Copy)]
struct Counted {
    sum_exec_ns: u64,
    sampled: CpuTime,
    /// What the kernel has shown last, to any reader.
    prev: CpuTime,
}

impl Counted {
    fn shown_by_kernel(self) -> CpuTime {
        cputime_adjust(self.sum_exec_ns, self.sampled, self.prev)
    }
}

macro_rules! counted {
    ($of:expr) => {
        Counted {
            sum_exec_ns: $of.sum_exec_ns,
            sampled: CpuTime {
                utime_ns: $of.sampled_utime_ns,
                stime_ns: $of.sampled_stime_ns,
            },
            prev: CpuTime {
                utime_ns: $of.prev_utime_ns,
                stime_ns: $of.prev_stime_ns,
            },
        }
    };
}

/// The CPU time that the kernel would show for a process now, whatever a collector has shown before.
pub fn shown_by_kernel(cpu: &Cpu) -> CpuTime {
    counted!(cpu).shown_by_kernel()
}

/// Remembers what was shown for each process, as the kernel does in `signal->prev_cputime`.
///
/// A BPF program cannot write to that member. While `/proc` is not read it does not change, so each snapshot would
/// split the time again, and user or system time could decrease.
#[derive(Debug, Default)]
pub(crate) struct CpuClock {
    shown: Vec<ShownTime>,
    before: Vec<ShownTime>,
    at: usize,
}

#[derive(Clone, Copy, Debug)]
struct ShownTime {
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

    /// Returns the times to show for the next process.
    pub(crate) fn show(&mut self, pid: u32, start_ns: u64, cpu: &Cpu) -> CpuTime {
        while self
            .before
            .get(self.at)
            .is_some_and(|before| before.pid < pid)
        {
            self.at += 1;
        }
        let before = self.before.get(self.at).copied();
        let shown = ShownTime::after(before, pid, start_ns, counted!(cpu));
        self.shown.push(shown);
        shown.time
    }

    /// Returns the times to show for the process at this place of the last pass. The others stay as they are.
    pub(crate) fn show_again(&mut self, at: usize, pid: u32, start_ns: u64, cpu: &Cpu) -> CpuTime {
        let before = self.shown.get(at).copied();
        let shown = ShownTime::after(before, pid, start_ns, counted!(cpu));
        if let Some(place) = self.shown.get_mut(at) {
            *place = shown;
        }
        shown.time
    }
}

/// Does the same for threads, which come in any order, and usually in the same.
#[derive(Debug, Default)]
pub(crate) struct ThreadClock {
    /// What the last snapshot showed, and the one before it, in the order of their threads.
    shown: Vec<ShownTime>,
    before: Vec<ShownTime>,
    /// Where each thread was in the one before, if the order has changed.
    places: HashMap<u32, usize>,
}

impl ThreadClock {
    /// Fills in the times to show for all threads.
    pub(crate) fn show(&mut self, threads: &mut [ThreadRecord]) {
        std::mem::swap(&mut self.shown, &mut self.before);
        self.shown.clear();
        self.places.clear();
        let Self {
            shown: all,
            before,
            places,
        } = self;
        // Threads keep their order. Only if some have started or ended, their places are searched.
        let mut next = 0;
        for thread in threads {
            let tid = thread.tid;
            let mut was = before.get(next).filter(|was| was.pid == tid).map(|_| next);
            if was.is_none() && !before.is_empty() {
                if places.is_empty() {
                    let pids = before.iter().enumerate();
                    places.extend(pids.map(|(at, was)| (was.pid, at)));
                }
                was = places.get(&tid).copied();
            }
            next = was.map_or(next, |was| was + 1);
            let was = was.map(|was| before[was]);
            let shown = ShownTime::after(was, tid, thread.start_ns, counted!(thread));
            (thread.utime_ns, thread.stime_ns) = (shown.time.utime_ns, shown.time.stime_ns);
            all.push(shown);
        }
    }
}

impl ShownTime {
    /// The kernel may have shown another split to another reader. Then no split may satisfy both, and the one shown
    /// here counts. This moves the border between the two by no more than the samples moved it. Their sum is exact.
    fn after(before: Option<Self>, pid: u32, start_ns: u64, counted: Counted) -> Self {
        let before = before.filter(|before| {
            // The text cuts the start time and both parts to ticks.
            before.pid == pid && is_same_start(before.start_ns, start_ns)
        });
        let time = match before {
            Some(before) if counted.sum_exec_ns == 0 => CpuTime {
                utime_ns: before.time.utime_ns.max(counted.prev.utime_ns),
                stime_ns: before.time.stime_ns.max(counted.prev.stime_ns),
            },
            // A thread that has not run shows the same times, unless the kernel has shown more to
            // another reader.
            Some(before)
                if before.sum_exec_ns == counted.sum_exec_ns
                    && counted.prev.utime_ns <= before.time.utime_ns
                    && counted.prev.stime_ns <= before.time.stime_ns =>
            {
                before.time
            }
            Some(before) => not_backwards(counted.shown_by_kernel(), before.time),
            None => counted.shown_by_kernel(),
        };
        Self {
            pid,
            start_ns,
            sum_exec_ns: counted.sum_exec_ns,
            time,
        }
    }
}

/// Moves the border between user and system time so that neither decreases, if their sum allows it.
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

    /// A torn record is read again from the text, which has ticks and the start time in ticks.
    #[test]
    fn times_from_one_text_take_nothing_back() {
        const MS: u64 = 1_000_000;
        let mut clock = CpuClock::default();
        let mut show = |start_ns, sum_exec_ns, prev: CpuTime| {
            let cpu = Cpu {
                sum_exec_ns,
                prev_utime_ns: prev.utime_ns,
                prev_stime_ns: prev.stime_ns,
                ..Cpu::default()
            };
            clock.start();
            let shown = clock.show(7, start_ns, &cpu);
            assert_eq!(clock.show_again(0, 7, start_ns, &cpu), shown);
            shown
        };
        let exact = time(139 * MS + 1, 99 * MS + 1);
        assert_eq!(show(5_000_001, exact.sum(), exact), exact);
        assert_eq!(show(0, 0, time(130 * MS, 90 * MS)), exact);
        let later = time(139 * MS + 1, 100 * MS);
        assert_eq!(show(0, 0, time(130 * MS, 100 * MS)), later);
        let exact = time(141 * MS, 100 * MS + 1);
        assert_eq!(show(5_000_001, exact.sum(), exact), exact);
        // Another process with the same pid.
        let other = time(10 * MS, 0);
        assert_eq!(show(30 * MS, 0, other), other);
    }

    #[test]
    fn the_run_time_is_split_as_it_was_sampled() {
        assert_eq!(cputime_adjust(100, time(3, 1), time(0, 0)), time(75, 25));
        assert_eq!(cputime_adjust(100, time(0, 1), time(0, 0)), time(0, 100));
        assert_eq!(cputime_adjust(100, time(0, 0), time(0, 0)), time(100, 0));
    }

    #[test]
    fn shown_times_do_not_fall() {
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

    #[test]
    fn shown_times_do_not_fall_to_those_that_the_kernel_showed_others() {
        let mut clock = CpuClock::default();
        let mut cpu = Cpu {
            sum_exec_ns: 99,
            sampled_utime_ns: 75,
            sampled_stime_ns: 24,
            ..Cpu::default()
        };
        clock.start();
        assert_eq!(clock.show(7, 1, &cpu), time(75, 24));
        // The samples changed, and another process read /proc: 80 and 24 do not fit into 100.
        (cpu.prev_utime_ns, cpu.prev_stime_ns) = (80, 20);
        cpu.sum_exec_ns = 100;
        clock.start();
        assert_eq!(clock.show(7, 1, &cpu), time(76, 24));
    }

    /// With the samples only, each part would decrease while /proc is not read.
    #[test]
    fn times_of_threads_do_not_fall_back() {
        let thread = |tid, sum_exec_ns, sampled_utime_ns, sampled_stime_ns| ThreadRecord {
            sum_exec_ns,
            sampled_utime_ns,
            sampled_stime_ns,
            tid,
            start_ns: 1,
            ..ThreadRecord::default()
        };
        let mut clock = ThreadClock::default();
        let mut show = |mut threads: [ThreadRecord; 2]| {
            clock.show(&mut threads);
            threads.map(|thread| time(thread.utime_ns, thread.stime_ns))
        };
        let first = show([thread(8, 100, 1, 1), thread(7, 100, 1, 0)]);
        assert_eq!(first, [time(50, 50), time(100, 0)]);
        // In another order, and one is a different thread.
        let mut other = thread(8, 110, 1, 0);
        let now = show([thread(7, 110, 1, 1), other]);
        assert_eq!(now, [time(100, 10), time(60, 50)]);
        other.start_ns = 2;
        assert_eq!(show([thread(7, 110, 1, 1), other])[1], time(110, 0));
    }

    #[test]
    fn threads_keep_their_times_while_others_start_and_end() {
        let mut clock = ThreadClock::default();
        let mut show = |tids: [u32; 4], sampled_utime_ns| {
            let mut threads = tids.map(|tid| ThreadRecord {
                sum_exec_ns: 100,
                sampled_utime_ns,
                sampled_stime_ns: 1,
                tid,
                ..ThreadRecord::default()
            });
            clock.show(&mut threads);
            threads.map(|thread| time(thread.utime_ns, thread.stime_ns))
        };
        let (half, most) = (time(50, 50), time(90, 10));
        assert_eq!(show([1, 2, 3, 4], 1), [half; 4]);
        // None has run since, so only a thread that is new is divided by the new samples.
        assert_eq!(show([1, 3, 4, 5], 9), [half, half, half, most]);
        assert_eq!(show([5, 4, 9, 1], 1), [most, half, half, half]);
        assert_eq!(show([5, 4, 9, 1], 9), [most, half, half, half]);
    }

    proptest! {
        /// However the samples change, the shown times only grow, and add up to the run time.
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
