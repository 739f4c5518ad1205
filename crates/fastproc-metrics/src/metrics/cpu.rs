//! CPU times, which never decrease.

use fastproc::text::machine_stat::Cpu;

use crate::exposition::{Exposition, Family, Value};

/// In the order of `node_exporter`'s modes, which is by name: the label, and the index in [`CpuTimes::ns`].
///
/// [`CpuTimes::ns`]: fastproc::text::machine_stat::CpuTimes::ns
const MODES: [(&str, usize); 8] = [
    (",mode=\"idle\"", 3),
    (",mode=\"iowait\"", 4),
    (",mode=\"irq\"", 5),
    (",mode=\"nice\"", 1),
    (",mode=\"softirq\"", 6),
    (",mode=\"steal\"", 7),
    (",mode=\"system\"", 2),
    (",mode=\"user\"", 0),
];
const GUEST_MODES: [(&str, usize); 2] = [(",mode=\"user\"", 8), (",mode=\"nice\"", 9)];

/// A counter that falls by more than this has restarted, for example after a suspension.
const RESTART_NS: u64 = 3_000_000_000;

super::families! {
    CPU = "node_cpu_seconds_total" Counter &["cpu", "mode"],
        "Time that a CPU spent (mode: idle, iowait, irq, nice, softirq, steal, system, user). --collector.cpu";
    GUEST = "node_cpu_guest_seconds_total" Counter &["cpu", "mode"],
        "Time that a CPU spent in guests, also part of user and nice (mode: user, nice). --collector.cpu";
}

/// The reported times of all CPUs.
#[derive(Debug, Default)]
pub(super) struct Cpus(Vec<Told>);

#[derive(Debug)]
struct Told {
    id: u32,
    label: String,
    ns: [u64; 10],
}

impl Cpus {
    /// Updates the times. Idle and iowait may decrease slightly, as proc(5) says, which Prometheus would take for a
    /// reset.
    pub(super) fn update(&mut self, cpus: &[Cpu]) {
        if !self
            .0
            .iter()
            .map(|told| told.id)
            .eq(cpus.iter().map(|cpu| cpu.id))
        {
            let told = |cpu: &Cpu| Told {
                id: cpu.id,
                label: format!("cpu=\"{}\"", cpu.id),
                ns: cpu.times.ns,
            };
            self.0 = cpus.iter().map(told).collect();
        }
        for (told, cpu) in self.0.iter_mut().zip(cpus) {
            for (told, now) in told.ns.iter_mut().zip(cpu.times.ns) {
                if now > *told || *told - now > RESTART_NS {
                    *told = now;
                }
            }
        }
    }

    pub(super) fn write(&self, text: &mut Exposition) {
        for (family, modes) in [(&CPU, &MODES[..]), (&GUEST, &GUEST_MODES)] {
            text.family(family);
            for told in &self.0 {
                for &(mode, at) in modes {
                    text.series(family.name, &told.label, mode, Value::Nano(told.ns[at]));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fastproc::text::machine_stat::CpuTimes;

    use super::*;

    #[test]
    fn a_little_less_is_not_told_and_a_restart_is() {
        let mut cpus = Cpus::default();
        let mut told = |id, idle_ns| {
            let mut times = CpuTimes::default();
            times.ns[3] = idle_ns;
            cpus.update(&[Cpu { id, times }]);
            (cpus.0[0].label.clone(), cpus.0[0].ns[3])
        };
        for (id, idle_ns, expected) in [
            (0, 9_000_000_000, 9_000_000_000),
            (0, 8_990_000_000, 9_000_000_000),
            (0, 9_000_000_001, 9_000_000_001),
            (0, 5_000_000_000, 5_000_000_000),
            // Another CPU has its place.
            (1, 4_000_000_000, 4_000_000_000),
        ] {
            assert_eq!(told(id, idle_ns), (format!("cpu=\"{id}\""), expected));
        }
    }
}
