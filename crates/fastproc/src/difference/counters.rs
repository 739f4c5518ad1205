//! Counters of a process or thread, which only grow.

use crate::{
    records::record::ThreadRecord,
    snapshot::{exit::Exit, process::Process},
};

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Counter {
    /// Time on a CPU, in nanoseconds.
    Run,
    /// The part of it in user mode.
    User,
    /// The part of it in kernel mode.
    System,
    /// Page faults without I/O.
    MinorFaults,
    /// Page faults with I/O.
    MajorFaults,
    /// Voluntary context switches; for a process, those of its leading thread.
    VoluntarySwitches,
    /// Involuntary context switches; for a process, those of its leading thread.
    InvoluntarySwitches,
    /// Bytes read from storage.
    ReadBytes,
    /// Bytes written to storage.
    WriteBytes,
    /// Time of waiting for a CPU, in nanoseconds: `sched_info.run_delay`.
    RunDelay,
}

impl Counter {
    /// All counters.
    pub const ALL: [Self; COUNT] = [
        Self::Run,
        Self::User,
        Self::System,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::VoluntarySwitches,
        Self::InvoluntarySwitches,
        Self::ReadBytes,
        Self::WriteBytes,
        Self::RunDelay,
    ];
}

pub(super) const COUNT: usize = 10;

/// A set of [`Counter`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(u16);

impl Set {
    pub(super) const fn contains(self, counter: Counter) -> bool {
        self.0 & 1 << counter as u32 != 0
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The counters for which `holds` is true, in the order of [`Counter::ALL`].
    #[inline]
    pub(super) fn new(holds: [bool; COUNT]) -> Self {
        let bits = holds.into_iter().enumerate();
        Self(bits.fold(0, |set, (at, holds)| set | u16::from(holds) << at))
    }

    pub(super) const fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    pub(super) const fn all_but(others: Self) -> Self {
        Self(!others.0 & ((1 << COUNT) - 1))
    }

    pub(super) const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub(super) fn put(&mut self, counter: Counter, is_in: bool) {
        self.0 = self.0 & !(1 << counter as u32) | u16::from(is_in) << counter as u32;
    }
}

/// The values of the counters of a process or thread. A counter may be unknown, which is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounters {
    pub(super) values: [u64; COUNT],
    pub(super) known: Set,
}

impl TaskCounters {
    /// The counters of a process: the sum of all its threads, including exited ones.
    pub fn from_process(process: Process<'_>) -> Self {
        let mut counters = Self::default();
        if let Some(cpu) = process.cpu() {
            counters.set_cpu([
                run_ns(cpu.sum_exec_ns, cpu.utime_ns, cpu.stime_ns),
                cpu.utime_ns,
                cpu.stime_ns,
                cpu.minflt,
                cpu.majflt,
                cpu.nvcsw,
                cpu.nivcsw,
            ]);
            counters.set_known(Counter::RunDelay, cpu.run_delay_ns());
        }
        if let Some(io) = process.io() {
            counters.set(Counter::ReadBytes, io.read_bytes);
            counters.set(Counter::WriteBytes, io.write_bytes);
        }
        counters
    }

    /// The counters of an exited process, without context switches: the exit has those of all threads, a process only
    /// those of its leading thread.
    pub fn from_exit(exit: &Exit) -> Self {
        let mut counters = Self::default();
        counters.set_cpu([
            run_ns(exit.sum_exec_ns, exit.utime_ns, exit.stime_ns),
            exit.utime_ns,
            exit.stime_ns,
            exit.minflt,
            exit.majflt,
            0,
            0,
        ]);
        counters.set_known(Counter::RunDelay, exit.run_delay_ns);
        for counter in [Counter::VoluntarySwitches, Counter::InvoluntarySwitches] {
            counters.known.put(counter, false);
        }
        if let Some(io) = exit.io {
            counters.set(Counter::ReadBytes, io.read_bytes);
            counters.set(Counter::WriteBytes, io.write_bytes);
        }
        counters
    }

    /// The counters of a thread. Whether its I/O is known, only its process says: see [`without_io`](Self::without_io).
    pub fn from_thread(thread: &ThreadRecord) -> Self {
        let mut counters = Self::default();
        counters.set_cpu([
            run_ns(thread.sum_exec_ns, thread.utime_ns, thread.stime_ns),
            thread.utime_ns,
            thread.stime_ns,
            thread.minflt,
            thread.majflt,
            thread.nvcsw,
            thread.nivcsw,
        ]);
        counters.set_known(Counter::RunDelay, thread.run_delay_ns());
        counters.set(Counter::ReadBytes, thread.io.read_bytes);
        counters.set(Counter::WriteBytes, thread.io.write_bytes);
        counters
    }

    /// The same counters without those of I/O.
    #[must_use]
    pub fn without_io(mut self) -> Self {
        for counter in [Counter::ReadBytes, Counter::WriteBytes] {
            self.values[counter as usize] = 0;
            self.known.put(counter, false);
        }
        self
    }

    /// The value of a counter, if it is known.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        self.known
            .contains(counter)
            .then(|| self.values[counter as usize])
    }

    fn set_known(&mut self, counter: Counter, value: Option<u64>) {
        if let Some(value) = value {
            self.set(counter, value);
        }
    }

    fn set(&mut self, counter: Counter, value: u64) {
        self.values[counter as usize] = value;
        self.known.put(counter, true);
    }

    /// Sets the first seven counters.
    fn set_cpu(&mut self, values: [u64; 7]) {
        self.values[..7].copy_from_slice(&values);
        self.known.0 |= (1 << 7) - 1;
    }
}

/// The precise run time. `/proc` has only user and system time in ticks; the kernel scales the two so that their sum is
/// the run time.
const fn run_ns(sum_exec_ns: u64, utime_ns: u64, stime_ns: u64) -> u64 {
    if sum_exec_ns > 0 {
        sum_exec_ns
    } else {
        utime_ns.saturating_add(stime_ns)
    }
}
