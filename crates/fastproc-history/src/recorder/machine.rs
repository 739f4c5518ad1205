//! The counters and gauges of the machine, for `machine`.

use std::{fs::File, os::unix::fs::FileExt, time::Duration};

use fastproc::{
    Host, Snapshot,
    counters::{self, Counters, MachineFile, Options, Want},
    proc_root,
    text::loadavg::LoadAvg,
};

use super::cells::{Row, place, row_of};
use crate::table::MACHINE;

/// How old counts of interrupts may be: exact ones cost more than everything else.
const INTERRUPT_AGE: Duration = Duration::from_millis(500);

const TIMES: [&str; 10] = [
    "user_ns",
    "nice_ns",
    "system_ns",
    "idle_ns",
    "iowait_ns",
    "irq_ns",
    "softirq_ns",
    "steal_ns",
    "guest_ns",
    "guest_nice_ns",
];

const LOADS: [&str; 3] = ["load_1", "load_5", "load_15"];

const MEMORY: [(&str, &str); 10] = [
    ("MemTotal", "memory_bytes"),
    ("MemFree", "memory_free_bytes"),
    ("MemAvailable", "memory_available_bytes"),
    ("Buffers", "buffers_bytes"),
    ("Cached", "cached_bytes"),
    ("Shmem", "shared_bytes"),
    ("SReclaimable", "reclaimable_bytes"),
    ("Dirty", "dirty_bytes"),
    ("SwapTotal", "swap_total_bytes"),
    ("SwapFree", "swap_free_bytes"),
];

const PRESSURE: [(&str, &str, Option<&str>); 3] = [
    ("/proc/pressure/cpu", "cpu_some_ns", None),
    (
        "/proc/pressure/memory",
        "memory_some_ns",
        Some("memory_full_ns"),
    ),
    ("/proc/pressure/io", "io_some_ns", Some("io_full_ns")),
];

/// Reads the machine again and again.
#[derive(Debug)]
pub struct Machine {
    reader: Counters,
    /// A kernel without PSI lacks these files.
    pressure: [Option<File>; 3],
    page_bytes: u64,
    interval_ns: u64,
}

impl Machine {
    /// Opens the counters, by BPF if that may be tried.
    ///
    /// # Errors
    /// There is no `/proc/stat`.
    pub fn open(host: &Host, interval: Duration, bpf: bool) -> Result<Self, counters::Error> {
        let options = Options::new().bpf(bpf);
        Ok(Self {
            reader: options.stat_irqs_latency(INTERRUPT_AGE).open()?,
            pressure: PRESSURE.map(|(path, ..)| File::open(proc_root::path(path)).ok()),
            page_bytes: host.page_size,
            interval_ns: interval.as_nanos() as u64,
        })
    }

    /// The row at a snapshot. A value that cannot be read is null.
    pub fn row(&mut self, snapshot: &Snapshot<'_>) -> Row {
        let mut row = row_of(&MACHINE, &[]);
        let mut set = |name: &str, value: Option<u64>| row[place(&MACHINE, name)] = value.into();
        let stats = snapshot.stats();
        set("began_ns", Some(stats.kernel_boottime_ns()));
        set("read_for_ns", Some(stats.read_for.as_nanos() as u64));
        set("interval_ns", Some(self.interval_ns));
        set("processes", Some(snapshot.len() as u64));
        set("lost_exits", snapshot.exits().map(|_| stats.lost_exits));
        set("page_bytes", Some(self.page_bytes));
        let sample = self.reader.collect(Want::STAT).ok();
        if let Some(stat) = sample.map(|sample| &sample.stat) {
            for (name, ns) in TIMES.into_iter().zip(stat.total.ns) {
                set(name, Some(ns));
            }
            set("cpus", Some(stat.cpus.len() as u64));
            set("context_switches", Some(stat.ctxt));
            set("interrupts", Some(stat.intr));
            set("forks", Some(stat.processes));
            set("running", Some(stat.procs_running));
            set("blocked", Some(stat.procs_blocked));
        }
        let load = self.reader.text(MachineFile::Loadavg).ok();
        if let Some(load) = load.and_then(|text| LoadAvg::parse(text).ok()) {
            for (name, load) in LOADS.into_iter().zip(load.averages()) {
                set(name, Some((load * 100.0).round() as u64));
            }
        }
        let text = self.reader.text(MachineFile::Meminfo).unwrap_or_default();
        for line in text.split(|&byte| byte == b'\n') {
            let mut words = line.split(|byte| b": ".contains(byte));
            let name = words.next().unwrap_or_default();
            let found = MEMORY.iter().find(|(of, _)| of.as_bytes() == name);
            if let Some((_, column)) = found {
                let kibibytes = words.find(|word| !word.is_empty()).and_then(number);
                set(column, kibibytes.and_then(|kib| kib.checked_mul(1024)));
            }
        }
        for ((_, some, full), file) in PRESSURE.into_iter().zip(&self.pressure) {
            let mut text = [0; 256];
            let read = file
                .as_ref()
                .and_then(|file| file.read_at(&mut text, 0).ok());
            let text = &text[..read.unwrap_or(0)];
            set(some, total(text, b"some "));
            if let Some(full) = full {
                set(full, total(text, b"full "));
            }
        }
        row
    }
}

/// The total of a line of `/proc/pressure`, in nanoseconds.
fn total(text: &[u8], line: &[u8]) -> Option<u64> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.find_map(|text| text.strip_prefix(line))?;
    let mut words = line.split(|&byte| byte == b' ');
    let microseconds = words.find_map(|word| word.strip_prefix(b"total="))?;
    number(microseconds)?.checked_mul(1000)
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use fastproc::{SnapshotStats, SourceKind, Table};

    use super::{super::cells::Cell, *};

    #[test]
    fn the_machine_is_read() {
        let host = Host::read().expect("there is a /proc");
        let second = Duration::from_secs(1);
        let mut machine = Machine::open(&host, second, false).expect("there is a /proc/stat");
        let stats = SnapshotStats::recorded(SourceKind::Procfs, 5, Duration::ZERO);
        let row = machine.row(&Snapshot::recorded(Table::default(), stats));
        for name in [
            "began_ns",
            "user_ns",
            "forks",
            "load_1",
            "memory_available_bytes",
        ] {
            assert_ne!(row[place(&MACHINE, name)], Cell::Null, "{name}");
        }
        assert_eq!(row[place(&MACHINE, "lost_exits")], Cell::Null);
    }
}
