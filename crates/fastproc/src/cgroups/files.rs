//! Converts the files of a cgroup to a record.

use super::{
    fields::Fields,
    lists::Lists,
    record::{Cpu, Device, Io, Memory, Pids, Pressure, PressureAverages, Record, UNLIMITED},
    stat::Lines,
    text::PRESSURE,
    tree::Tree,
};

/// A reader of files, with a buffer for texts.
#[derive(Debug, Default)]
pub(super) struct Files {
    memory: Vec<u8>,
}

impl Files {
    /// The text of a file, if it exists.
    pub(super) fn text(&mut self, tree: &mut Tree, id: u64, name: &'static str) -> Option<&str> {
        tree.read(id, name, &mut self.memory)
    }

    /// The number in a file that has a single one.
    pub(super) fn number(&mut self, tree: &mut Tree, id: u64, name: &'static str) -> Option<u64> {
        number(self.text(tree, id, name)?.trim_end())
    }

    /// Fills the identity, except for the ids and the level. `None`: it may not be read, or the cgroup is gone.
    pub(super) fn identity(&mut self, tree: &mut Tree, record: &mut Record) -> Option<()> {
        let id = record.identity.id;
        let identity = &mut record.identity;
        match self.text(tree, id, "cgroup.events") {
            Some(text) => {
                identity.populated = value(text, "populated").unwrap_or(0) as u32;
                identity.frozen = value(text, "frozen").unwrap_or(0) as u32;
            }
            None if tree.is_hidden(id, "cgroup.events") => return None,
            // The root lacks this file, and this process is below the root.
            None => identity.populated = 1,
        }
        match self.text(tree, id, "cgroup.stat") {
            Some(text) => {
                identity.descendants = value(text, "nr_descendants").unwrap_or(0) as u32;
                identity.dying_descendants =
                    value(text, "nr_dying_descendants").unwrap_or(0) as u32;
            }
            None if tree.is_hidden(id, "cgroup.stat") => return None,
            None => {}
        }
        match self.text(tree, id, "cgroup.type") {
            Some(kind) => identity.threaded = u32::from(kind == "threaded\n"),
            None if tree.is_hidden(id, "cgroup.type") => return None,
            None => {}
        }
        Some(())
    }

    /// Fills the groups for which the cgroup has files.
    pub(super) fn fill(
        &mut self,
        tree: &mut Tree,
        record: &mut Record,
        groups: Fields,
        lines: &Lines,
        lists: &mut Lists,
    ) {
        let id = record.identity.id;
        let mut filled = Fields::empty();
        if groups.contains(Fields::CPU) {
            let cpu = self.cpu(tree, id);
            filled.set(Fields::CPU, cpu.is_some());
            record.cpu = cpu.unwrap_or_default();
        }
        if groups.contains(Fields::MEMORY) {
            let memory = self.memory(tree, id);
            filled.set(Fields::MEMORY, memory.is_some());
            record.memory = memory.unwrap_or_default();
        }
        if groups.contains(Fields::MEMORY_STAT) {
            let text = self.text(tree, id, "memory.stat");
            let parsed = text.and_then(|text| lines.parse(text, &mut record.memory_stat.slots));
            record.identity.stat_by_line = 1;
            filled.set(Fields::MEMORY_STAT, parsed.is_some());
        }
        if groups.contains(Fields::PIDS) {
            let pids = self.pids(tree, id);
            filled.set(Fields::PIDS, pids.is_some());
            record.pids = pids.unwrap_or_default();
        }
        if groups.contains(Fields::IO) {
            let devices = &mut lists.devices;
            let at = devices.len();
            let parsed = self.text(tree, id, "io.stat").map(|text| io(text, devices));
            filled.set(Fields::IO, parsed.is_some());
            record.io = Io {
                devices_at: at as u32,
                devices: (devices.len() - at) as u32,
                ..Io::default()
            };
        }
        let of_pressure = groups & (Fields::PRESSURE | Fields::PRESSURE_AVERAGES);
        if !of_pressure.is_empty() {
            let read = self.pressure(tree, id);
            if read.is_some() {
                filled |= of_pressure;
            }
            let (pressure, averages) = read.unwrap_or_default();
            if groups.contains(Fields::PRESSURE) {
                record.pressure = pressure;
            }
            record.pressure_averages = averages;
        }
        let before = Fields::from_bits_retain(record.identity.groups);
        record.identity.groups = ((before - groups) | filled).bits();
    }

    /// The same of the root of the hierarchy, which lacks the files of limits and of what is used. Looking for them costs more than
    /// reading others.
    pub(super) fn fill_root(
        &mut self,
        tree: &mut Tree,
        record: &mut Record,
        groups: Fields,
        lines: &Lines,
        lists: &mut Lists,
    ) {
        let absent = Fields::CPU | Fields::MEMORY | Fields::PIDS;
        self.fill(tree, record, groups - absent, lines, lists);
        if groups.contains(Fields::CPU)
            && let Some(of_root) = self
                .text(tree, record.identity.id, "cpu.stat")
                .and_then(cpu)
        {
            record.cpu = of_root;
            record.identity.groups |= Fields::CPU.bits();
        }
    }

    fn cpu(&mut self, tree: &mut Tree, id: u64) -> Option<Cpu> {
        let mut cpu = cpu(self.text(tree, id, "cpu.stat")?)?;
        if let Some([quota_ns, period_ns]) = self.cpu_max(tree, id) {
            cpu.set_quota_ns(quota_ns);
            cpu.set_period_ns(period_ns);
        }
        cpu.set_weight(self.number(tree, id, "cpu.weight"));
        Some(cpu)
    }

    /// The quota and the period, in nanoseconds, of a cgroup that has this file.
    pub(super) fn cpu_max(&mut self, tree: &mut Tree, id: u64) -> Option<[Option<u64>; 2]> {
        let mut words = self.text(tree, id, "cpu.max")?.split_ascii_whitespace();
        Some([(); 2].map(|()| match number(words.next()?)? {
            UNLIMITED => Some(UNLIMITED),
            usec => Some(usec.saturating_mul(1000)),
        }))
    }

    fn memory(&mut self, tree: &mut Tree, id: u64) -> Option<Memory> {
        let current = self.number(tree, id, "memory.current")?;
        let mut memory = Memory::default();
        memory.set_current(Some(current));
        memory.set_peak(self.number(tree, id, "memory.peak"));
        memory.set_min(self.number(tree, id, "memory.min"));
        memory.set_low(self.number(tree, id, "memory.low"));
        memory.set_high(self.number(tree, id, "memory.high"));
        memory.set_max(self.number(tree, id, "memory.max"));
        memory.set_swap_current(self.number(tree, id, "memory.swap.current"));
        memory.set_swap_peak(self.number(tree, id, "memory.swap.peak"));
        memory.set_swap_high(self.number(tree, id, "memory.swap.high"));
        memory.set_swap_max(self.number(tree, id, "memory.swap.max"));
        memory.set_oom_group(self.number(tree, id, "memory.oom.group"));
        if let Some(text) = self.text(tree, id, "memory.events") {
            memory.set_events_low(value(text, "low"));
            memory.set_events_high(value(text, "high"));
            memory.set_events_max(value(text, "max"));
            memory.set_events_oom(value(text, "oom"));
            memory.set_oom_kills(value(text, "oom_kill"));
            memory.set_oom_group_kills(value(text, "oom_group_kill"));
            memory.set_sock_throttled(value(text, "sock_throttled"));
        }
        if let Some(text) = self.text(tree, id, "memory.events.local") {
            memory.set_local_low(value(text, "low"));
            memory.set_local_high(value(text, "high"));
            memory.set_local_max(value(text, "max"));
            memory.set_local_oom(value(text, "oom"));
            memory.set_local_oom_kills(value(text, "oom_kill"));
            memory.set_local_oom_group_kills(value(text, "oom_group_kill"));
            memory.set_local_sock_throttled(value(text, "sock_throttled"));
        }
        if let Some(text) = self.text(tree, id, "memory.swap.events") {
            memory.set_swap_events_high(value(text, "high"));
            memory.set_swap_events_max(value(text, "max"));
            memory.set_swap_events_fail(value(text, "fail"));
        }
        Some(memory)
    }

    fn pids(&mut self, tree: &mut Tree, id: u64) -> Option<Pids> {
        let mut pids = Pids {
            current: self.number(tree, id, "pids.current")?,
            max: self.number(tree, id, "pids.max")?,
            ..Pids::default()
        };
        pids.set_peak(self.number(tree, id, "pids.peak"));
        Some(pids)
    }

    /// Reads the files of pressure. `None`: one is not there.
    fn pressure(&mut self, tree: &mut Tree, id: u64) -> Option<(Pressure, PressureAverages)> {
        let (mut pressure, mut averages) = (Pressure::default(), PressureAverages::default());
        for (at, name) in PRESSURE.into_iter().enumerate() {
            let shares = &mut averages.averages[at * 6..at * 6 + 6];
            let both = stalls(self.text(tree, id, name)?, shares)?;
            let totals = pressure.totals_mut().into_iter().skip(at * 2);
            for (total, value) in totals.zip(both) {
                *total = value;
            }
        }
        Some((pressure, averages))
    }
}

fn number(word: &str) -> Option<u64> {
    if word == "max" {
        return Some(UNLIMITED);
    }
    word.parse().ok()
}

/// The value of a line.
pub(super) fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(' ')?;
        (found == name).then(|| value.parse().ok())?
    })
}

fn cpu(text: &str) -> Option<Cpu> {
    let usec = |name| value(text, name).map(|usec| usec.saturating_mul(1000));
    let mut cpu = Cpu {
        usage_ns: usec("usage_usec")?,
        user_ns: usec("user_usec")?,
        system_ns: usec("system_usec")?,
        ..Cpu::default()
    };
    cpu.set_nice_ns(usec("nice_usec"));
    cpu.set_forced_idle_ns(usec("core_sched.force_idle_usec"));
    cpu.set_periods(value(text, "nr_periods"));
    cpu.set_throttled(value(text, "nr_throttled"));
    cpu.set_throttled_ns(usec("throttled_usec"));
    cpu.set_bursts(value(text, "nr_bursts"));
    cpu.set_burst_ns(usec("burst_usec"));
    Some(cpu)
}

/// The lines of io.stat. Kernels from 5.14 to 5.16 do not end the line of a device without values, so the next device
/// follows in it.
fn io(text: &str, devices: &mut Vec<Device>) {
    for line in text.lines() {
        let mut device = None;
        for word in line.split_ascii_whitespace() {
            let Some((name, value)) = word.split_once('=') else {
                if let Some((Ok(major), Ok(minor))) = word
                    .split_once(':')
                    .map(|(major, minor)| (major.parse(), minor.parse()))
                {
                    devices.extend(device.replace(Device {
                        major,
                        minor,
                        ..Device::default()
                    }));
                }
                continue;
            };
            let Some(device) = &mut device else { break };
            let place = match name {
                "rbytes" => &mut device.rbytes,
                "wbytes" => &mut device.wbytes,
                "dbytes" => &mut device.dbytes,
                "rios" => &mut device.rios,
                "wios" => &mut device.wios,
                "dios" => &mut device.dios,
                _ => continue,
            };
            *place = value.parse().unwrap_or(0);
        }
        devices.extend(device);
    }
}

/// The lines `some` and `full` of a file of pressure: total times, and shares in hundredths of a percent.
fn stalls(text: &str, shares: &mut [u32]) -> Option<[u64; 2]> {
    let mut totals = [0; 2];
    for (at, name) in ["some ", "full "].into_iter().enumerate() {
        // Older kernels lack the line `full` of CPUs.
        let Some(line) = text.lines().find_map(|line| line.strip_prefix(name)) else {
            continue;
        };
        let mut values = line
            .split(' ')
            .filter_map(|word| Some(word.split_once('=')?.1));
        for share in &mut shares[at * 3..at * 3 + 3] {
            let (whole, hundredths) = values.next()?.split_once('.')?;
            *share = whole
                .parse::<u32>()
                .ok()?
                .saturating_mul(100)
                .saturating_add(hundredths.parse().ok()?);
        }
        totals[at] = values.next()?.parse::<u64>().ok()?.saturating_mul(1000);
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_files_are_found() {
        let of_cpu = cpu(
            "usage_usec 30\nuser_usec 10\nsystem_usec 20\nnr_periods 4\nnr_throttled 3\nthrottled_usec 9\n",
        );
        let of_cpu = of_cpu.expect("it has what every kernel has");
        assert_eq!(
            (of_cpu.usage_ns, of_cpu.user_ns, of_cpu.system_ns),
            (30_000, 10_000, 20_000)
        );
        assert_eq!(
            (of_cpu.periods(), of_cpu.throttled_ns(), of_cpu.bursts()),
            (Some(4), Some(9000), None)
        );
        assert_eq!(cpu("usage_usec 30\n"), None);
        let events = "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\n";
        assert_eq!(
            (
                value(events, "oom"),
                value(events, "oom_kill"),
                value(events, "o")
            ),
            (Some(3), Some(4), None)
        );
        assert_eq!(
            (number("max"), number("17"), number("")),
            (Some(UNLIMITED), Some(17), None)
        );
    }

    #[test]
    fn devices_may_have_no_values_and_more_values() {
        let mut devices = Vec::new();
        io(
            "8:0 \n259:3 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6 cost.usage=7\nnothing\n",
            &mut devices,
        );
        assert_eq!(devices.len(), 2);
        assert_eq!((devices[0].major, devices[0].rbytes), (8, 0));
        let Device {
            minor,
            rbytes,
            wbytes,
            dbytes,
            rios,
            wios,
            dios,
            ..
        } = devices[1];
        assert_eq!(
            [rbytes, wbytes, rios, wios, dbytes, dios],
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(minor, 3);
    }

    #[test]
    fn values_after_several_devices_belong_to_the_last() {
        let mut devices = Vec::new();
        let text = "7:7 7:6 8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n7:5 7:4 \n";
        io(text, &mut devices);
        let seen: Vec<_> = devices
            .iter()
            .map(|device| (device.major, device.minor, device.rbytes, device.dios))
            .collect();
        let expected = [
            (7, 7, 0, 0),
            (7, 6, 0, 0),
            (8, 0, 1, 6),
            (7, 5, 0, 0),
            (7, 4, 0, 0),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn pressure_has_shares_and_totals() {
        let mut shares = [0; 6];
        let text = "some avg10=1.25 avg60=0.07 avg300=100.00 total=5\nfull avg10=0.00 avg60=0.01 avg300=0.00 total=4\n";
        assert_eq!(stalls(text, &mut shares), Some([5000, 4000]));
        assert_eq!(shares, [125, 7, 10000, 0, 1, 0]);
        let (some, _) = text
            .split_once("full")
            .expect("the text has a line \"full\"");
        assert_eq!(stalls(some, &mut shares), Some([5000, 0]));
        assert_eq!(stalls("some avg10=1 total=2\n", &mut shares), None);
    }
}
