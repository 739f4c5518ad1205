//! Numbers of the whole machine, for the header.

use std::time::Duration;

macro_rules! gauges {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// A number of the machine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Gauge { $($(#[$doc])* $name),* }

        /// The number of gauges.
        pub const GAUGES: usize = [$(Gauge::$name),*].len();
    };
}

gauges! {
    /// Time of the calendar, in nanoseconds since 1970.
    Calendar,
    /// Time since boot, in nanoseconds.
    Uptime,
    /// Context switches since boot.
    ContextSwitches,
    /// Interrupts since boot.
    Interrupts,
    /// Forks since boot, including threads.
    Forks,
    /// Load averages over 1, 5 and 15 minutes, in hundredths.
    Load1,
    /// See [`Load1`](Self::Load1).
    Load5,
    /// See [`Load1`](Self::Load1).
    Load15,
    /// Memory, in bytes.
    MemTotal,
    /// Unused memory.
    MemFree,
    /// Memory that is available without swapping.
    MemAvailable,
    /// Buffers of block devices.
    Buffers,
    /// The page cache and reclaimable slabs, without shared memory.
    Cached,
    /// Swap space, in bytes.
    SwapTotal,
    /// Unused swap space.
    SwapFree,
    /// Time in which some task waited for a CPU, since boot, in nanoseconds (PSI).
    CpuSome,
    /// The same for memory.
    MemorySome,
    /// Time in which all tasks waited for memory.
    MemoryFull,
    /// Time in which some task waited for I/O.
    IoSome,
    /// Time in which all tasks waited for I/O.
    IoFull,
    /// Bytes a second that disks read, in the last second or so.
    DiskRead,
    /// Bytes a second that disks wrote.
    DiskWritten,
    /// Bytes a second that network interfaces received.
    Received,
    /// Bytes a second that network interfaces sent.
    Sent,
    /// Temperature of the processor, in thousandths of a degree Celsius.
    Temperature,
}

/// The time of a CPU in each state since boot: `user nice system idle iowait irq softirq steal guest guest_nice`, in
/// nanoseconds.
pub type Times = [u64; 10];

/// A CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: u32,
    /// Its times.
    pub times: Times,
}

/// The machine at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    values: [Option<u64>; GAUGES],
    /// All CPUs together, if they are known.
    pub total: Option<Times>,
    /// The CPUs that are online. None if `/proc/stat` cannot be read, or if it was not recorded.
    pub cpus: Vec<Cpu>,
}

impl Machine {
    /// A number, if it is known.
    pub fn get(&self, gauge: Gauge) -> Option<u64> {
        self.values[gauge as usize]
    }

    /// Sets a number.
    pub fn set(&mut self, gauge: Gauge, value: Option<u64>) {
        self.values[gauge as usize] = value;
    }

    /// The sum of two numbers that are known together.
    pub fn sum(&self, one: Gauge, other: Gauge) -> Option<f64> {
        Some((self.get(one)? + self.get(other)?) as f64)
    }

    /// The time since the earlier reading.
    pub fn since(&self, earlier: &Self) -> Option<Duration> {
        self.growth(earlier, Gauge::Uptime)
            .map(Duration::from_nanos)
    }

    fn growth(&self, earlier: &Self, gauge: Gauge) -> Option<u64> {
        self.get(gauge)?.checked_sub(earlier.get(gauge)?)
    }

    /// The growth of a number per second.
    pub fn per_second(&self, earlier: &Self, gauge: Gauge) -> Option<f64> {
        let seconds = self.since(earlier)?.as_secs_f64();
        (seconds > 0.0)
            .then(|| Some(self.growth(earlier, gauge)? as f64 / seconds))
            .flatten()
    }

    /// The growth of a time, as a share of the elapsed time.
    pub fn share(&self, earlier: &Self, gauge: Gauge) -> Option<f64> {
        let share = self.per_second(earlier, gauge)? / 1e9;
        Some(share.min(1.0))
    }

    /// Memory in use: neither free nor reclaimable.
    pub fn memory_used(&self) -> Option<u64> {
        let other = [Gauge::MemFree, Gauge::Buffers, Gauge::Cached];
        let other = other
            .iter()
            .try_fold(0_u64, |sum, &gauge| Some(sum + self.get(gauge)?))?;
        Some(self.get(Gauge::MemTotal)?.saturating_sub(other))
    }

    /// The shares of every CPU since the earlier reading, ordered by number.
    pub fn cpu_shares<'a>(
        &'a self,
        earlier: Option<&'a Self>,
    ) -> impl Iterator<Item = (u32, Shares)> + 'a {
        self.cpus.iter().map(move |cpu| {
            let before = earlier.and_then(|earlier| {
                let at = earlier.cpus.binary_search_by_key(&cpu.id, |cpu| cpu.id);
                at.ok().map(|at| &earlier.cpus[at].times)
            });
            (cpu.id, Shares::between(&cpu.times, before))
        })
    }

    /// The shares of all CPUs since the earlier reading; without one, since boot. `None` if they are unknown.
    pub fn total_shares(&self, earlier: Option<&Self>) -> Option<Shares> {
        let before = earlier.and_then(|earlier| earlier.total.as_ref());
        Some(Shares::between(self.total.as_ref()?, before))
    }
}

/// The shares of a CPU's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// In user mode at low priority.
    pub nice: f64,
    /// In user mode otherwise.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// Serving interrupts and softirqs.
    pub interrupts: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Idle while a task waited for I/O.
    pub iowait: f64,
}

impl Shares {
    fn between(now: &Times, before: Option<&Times>) -> Self {
        let before = before.copied().unwrap_or_default();
        // Idle time can decrease slightly.
        let grown: [u64; 10] = std::array::from_fn(|i| now[i].saturating_sub(before[i]));
        let all: u64 = grown[..8].iter().sum();
        let share = |ns: u64| {
            if all > 0 { ns as f64 / all as f64 } else { 0.0 }
        };
        Self {
            user: share(grown[0]),
            nice: share(grown[1]),
            system: share(grown[2]),
            iowait: share(grown[4]),
            interrupts: share(grown[5] + grown[6]),
            steal: share(grown[7]),
        }
    }

    /// The sum of all except iowait.
    pub fn busy(&self) -> f64 {
        self.user + self.nice + self.system + self.interrupts + self.steal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_between_two_looks() {
        let at = |user, idle| Machine {
            total: Some([user, 0, 0, idle, 0, 0, 0, 0, 0, 0]),
            ..Machine::default()
        };
        let (earlier, later) = (at(100, 100), at(130, 110));
        let busy = |earlier| later.total_shares(earlier).expect("a CPU").busy();
        assert!((busy(Some(&earlier)) - 0.75).abs() < 1e-9);
        assert!((busy(None) - 130.0 / 240.0).abs() < 1e-9);
        assert!(busy(Some(&later)).abs() < 1e-9);
        assert_eq!(Machine::default().total_shares(None), None);
    }

    #[test]
    fn guests_count_once_and_stolen_time_is_busy() {
        let machine = Machine {
            total: Some([10, 20, 30, 100, 40, 1, 2, 7, 10, 20]),
            ..Machine::default()
        };
        let shares = machine.total_shares(None).expect("a CPU");
        assert!((shares.busy() - 70.0 / 210.0).abs() < 1e-9);
    }

    #[test]
    fn unknown_counters_have_no_rate() {
        let at = |uptime, switches| {
            let mut machine = Machine::default();
            machine.set(Gauge::Uptime, Some(uptime));
            machine.set(Gauge::ContextSwitches, switches);
            machine
        };
        let rate = |earlier, later: Machine| later.per_second(&earlier, Gauge::ContextSwitches);
        assert_eq!(
            rate(at(0, Some(5)), at(2_000_000_000, Some(25))),
            Some(10.0)
        );
        assert_eq!(rate(at(0, None), at(2_000_000_000, Some(25))), None);
        assert_eq!(rate(at(0, Some(5)), at(0, Some(5))), None);
        assert_eq!(rate(at(0, Some(5)), at(1, Some(4))), None);
    }
}
