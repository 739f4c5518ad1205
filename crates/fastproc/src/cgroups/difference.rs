//! Changes between two snapshots.

use std::collections::HashMap;

use super::{Cgroup, Snapshot, record::Record};

/// Data of a snapshot, to compare the next one with it.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    began_ns: u64,
    kept: HashMap<u64, Record>,
}

/// Changes of a cgroup. `None`: the value was not requested, the cgroup lacks it, or the cgroup is new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Changes {
    /// CPUs in use, as a share of one: 2.0 is two CPUs.
    pub cpu: Option<f64>,
    /// The share of enforced periods in which it was throttled.
    pub throttled: Option<f64>,
    /// Bytes read per second.
    pub read: Option<f64>,
    /// Bytes written per second.
    pub write: Option<f64>,
    /// The shares of the time in which some and in which all tasks waited for a CPU, for memory and for I/O.
    pub pressure: Option<[[f64; 2]; 3]>,
    /// Processes killed by an OOM killer.
    pub oom_kills: Option<u64>,
}

impl Baseline {
    /// Keeps this snapshot instead of the last one.
    pub fn set(&mut self, snapshot: Snapshot<'_>) {
        self.began_ns = snapshot.began_ns();
        self.kept.clear();
        self.kept.extend(
            snapshot
                .iter()
                .map(|cgroup| (cgroup.id(), *cgroup.record())),
        );
    }

    /// The changes of a cgroup of a later snapshot.
    pub fn changes(&self, snapshot: Snapshot<'_>, cgroup: Cgroup<'_>) -> Changes {
        let elapsed = snapshot.began_ns().saturating_sub(self.began_ns) as f64;
        let Some(before) = self.kept.get(&cgroup.id()).filter(|_| elapsed > 0.0) else {
            return Changes::default();
        };
        let had = |group: super::Fields| before.identity.groups & group.bits() != 0;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed;
        let rate = |now: u64, then: u64| share(now, then) * 1e9;
        let cpu = cgroup.cpu().filter(|_| had(super::Fields::CPU));
        let memory = cgroup.memory().filter(|_| had(super::Fields::MEMORY));
        let io = cgroup.io().filter(|_| had(super::Fields::IO));
        let pressure = cgroup.pressure().filter(|_| had(super::Fields::PRESSURE));
        let throttled = cpu.and_then(|cpu| {
            let periods = cpu.periods()?.saturating_sub(before.cpu.periods()?);
            let throttled = cpu.throttled()?.saturating_sub(before.cpu.throttled()?);
            Some(if periods == 0 {
                0.0
            } else {
                throttled as f64 / periods as f64
            })
        });
        Changes {
            cpu: cpu.map(|cpu| share(cpu.usage_ns, before.cpu.usage_ns)),
            throttled,
            read: io.map(|io| rate(io.rbytes, before.io.rbytes)),
            write: io.map(|io| rate(io.wbytes, before.io.wbytes)),
            pressure: pressure.map(|now| {
                let then = &before.pressure;
                [
                    [
                        share(now.cpu_some_ns, then.cpu_some_ns),
                        share(now.cpu_full_ns, then.cpu_full_ns),
                    ],
                    [
                        share(now.memory_some_ns, then.memory_some_ns),
                        share(now.memory_full_ns, then.memory_full_ns),
                    ],
                    [
                        share(now.io_some_ns, then.io_some_ns),
                        share(now.io_full_ns, then.io_full_ns),
                    ],
                ]
            }),
            oom_kills: memory.and_then(|memory| {
                Some(
                    memory
                        .oom_kills()?
                        .saturating_sub(before.memory.oom_kills()?),
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroups::{Fields, Recorded};

    #[test]
    fn compares_each_value_with_its_own_over_the_time_between() {
        const S: u64 = 1_000_000_000;
        let mut earlier = Record::default();
        let groups = Fields::CPU | Fields::MEMORY | Fields::IO | Fields::PRESSURE;
        (earlier.identity.id, earlier.identity.groups) = (1, groups.bits());
        earlier.cpu.usage_ns = S;
        earlier.cpu.set_periods(Some(10));
        earlier.cpu.set_throttled(Some(2));
        earlier.memory.set_oom_kills(Some(3));
        (earlier.io.rbytes, earlier.io.wbytes) = (7, S);
        let mut later = earlier;
        later.cpu.usage_ns += 3 * S;
        later.cpu.set_periods(Some(20));
        later.cpu.set_throttled(Some(7));
        later.memory.set_oom_kills(Some(5));
        later.io.rbytes += 2 * S;
        later.io.wbytes += S / 2;
        for (at, total) in (1..).zip(later.pressure.totals_mut()) {
            *total += at * S / 5;
        }
        let recorded = |record, began_ns| {
            let mut recorded = Recorded::new(began_ns);
            recorded.add(record, b"/");
            recorded
        };
        let (earlier, later) = (recorded(earlier, 5 * S), recorded(later, 7 * S));
        let mut before = Baseline::default();
        before.set(earlier.snapshot());
        let later = later.snapshot();
        let cgroup = later.at(0).expect("the snapshot has one cgroup");
        let expected = Changes {
            cpu: Some(1.5),
            throttled: Some(0.5),
            read: Some(1e9),
            write: Some(0.25e9),
            pressure: Some([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]),
            oom_kills: Some(2),
        };
        assert_eq!(before.changes(later, cgroup), expected);
    }
}
