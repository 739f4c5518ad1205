//! One collection, and what changed from one to the next.

use std::time::Duration;

use crate::text::{
    machine_stat::{CpuTimes, MachineStat},
    vmstat::VmStat,
};

/// The machine's counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// When they were read, on `CLOCK_MONOTONIC`.
    pub taken: Duration,
    /// When the counts by interrupt were read: earlier than `taken` by at most
    /// [`stat_irqs_latency`](super::Counters::stat_irqs_latency).
    pub irqs_taken: Duration,
    /// `/proc/stat`.
    pub stat: MachineStat,
    /// `/proc/vmstat`.
    pub vmstat: VmStat,
}

impl Sample {
    /// One online CPU's times.
    pub fn cpu(&self, id: u32) -> Option<&CpuTimes> {
        let at = self
            .stat
            .cpus
            .binary_search_by_key(&id, |cpu| cpu.id)
            .ok()?;
        Some(&self.stat.cpus[at].times)
    }

    /// The count of an interrupt, modulo 2^32.
    pub fn irq(&self, number: u32) -> Option<u32> {
        self.stat.irqs.get(number as usize).copied()
    }

    /// A counter of `/proc/vmstat` by name.
    pub fn vm(&self, name: &str) -> Option<u64> {
        self.vmstat.get(name)
    }

    /// What changed since `earlier`.
    pub fn since<'a>(&'a self, earlier: &'a Self) -> MachineChange<'a> {
        MachineChange {
            earlier,
            later: self,
        }
    }
}

/// What changed between two collections.
#[derive(Clone, Copy, Debug)]
pub struct MachineChange<'a> {
    earlier: &'a Sample,
    later: &'a Sample,
}

impl MachineChange<'_> {
    /// The time between them.
    pub fn elapsed(&self) -> Duration {
        self.later.taken.saturating_sub(self.earlier.taken)
    }

    /// The times of all CPUs together.
    pub fn total(&self) -> CpuTimes {
        difference(&self.later.stat.total, &self.earlier.stat.total)
    }

    /// The times of a CPU that was online both times.
    pub fn cpu(&self, id: u32) -> Option<CpuTimes> {
        Some(difference(self.later.cpu(id)?, self.earlier.cpu(id)?))
    }

    /// The share of the time that the CPUs were busy, from 0 to 1; 0 if no time has passed.
    pub fn busy(&self) -> f64 {
        let total = self.total();
        let all = total.total().as_secs_f64();
        if all > 0.0 {
            total.busy().as_secs_f64() / all
        } else {
            0.0
        }
    }

    /// Interrupts of every kind.
    pub fn intr(&self) -> u64 {
        self.later.stat.intr.wrapping_sub(self.earlier.stat.intr)
    }

    /// One interrupt, correct also if its 32 bits wrap around.
    pub fn irq(&self, number: u32) -> Option<u32> {
        Some(
            self.later
                .irq(number)?
                .wrapping_sub(self.earlier.irq(number)?),
        )
    }

    /// Context switches.
    pub fn ctxt(&self) -> u64 {
        self.later.stat.ctxt.wrapping_sub(self.earlier.stat.ctxt)
    }

    /// Forks.
    pub fn processes(&self) -> u64 {
        self.later
            .stat
            .processes
            .wrapping_sub(self.earlier.stat.processes)
    }

    /// One kind of softirq, by its index in the row, correct also if its 32 bits wrap around.
    pub fn softirq(&self, kind: usize) -> Option<u32> {
        Some(
            self.later
                .stat
                .softirqs
                .get(kind)?
                .wrapping_sub(*self.earlier.stat.softirqs.get(kind)?),
        )
    }

    /// A counter of `/proc/vmstat`. Numbers of pages go down as well as up.
    pub fn vm(&self, name: &str) -> Option<i64> {
        Some(self.later.vm(name)?.wrapping_sub(self.earlier.vm(name)?) as i64)
    }

    /// Any difference, per second; 0 if no time has passed.
    pub fn per_second(&self, difference: f64) -> f64 {
        let elapsed = self.elapsed().as_secs_f64();
        if elapsed > 0.0 {
            difference / elapsed
        } else {
            0.0
        }
    }
}

/// Idle and iowait may decrease slightly, as proc(5) says: that counts as zero.
fn difference(later: &CpuTimes, earlier: &CpuTimes) -> CpuTimes {
    let mut times = CpuTimes::default();
    for (ns, (later, earlier)) in times.ns.iter_mut().zip(later.ns.iter().zip(earlier.ns)) {
        *ns = later.saturating_sub(earlier);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: u64, stat: &str, vmstat: &str) -> Sample {
        Sample {
            taken: Duration::from_secs(seconds),
            stat: MachineStat::parse(stat.as_bytes()).expect("a text of the kernel"),
            vmstat: VmStat::parse(vmstat.as_bytes()).expect("a text of the kernel"),
            ..Sample::default()
        }
    }

    #[test]
    fn changes_are_shares_of_all_cpus_and_survive_a_wrap() {
        let stat = |user, idle, irq| {
            format!(
                "cpu  {user} 0 0 {idle} 0 0 0 0 0 0\ncpu0 {user} 0 0 {idle} 0 0 0 0 0 0\nintr 9 {irq}\nctxt 1\nbtime 1\n\
                 processes 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n"
            )
        };
        let earlier = sample(10, &stat(100, 100, u32::MAX), "nr_free_pages 10\n");
        let later = sample(12, &stat(400, 200, 2), "nr_free_pages 7\n");
        let change = later.since(&earlier);
        assert!((change.busy() - 0.75).abs() < 1e-9);
        assert_eq!(change.irq(0), Some(3));
        assert_eq!(change.vm("nr_free_pages"), Some(-3));
        assert!((change.per_second(5.0) - 2.5).abs() < 1e-9);
    }
}
