//! Load, memory, pressure, open files, the system's name, time, scheduling.

use std::ffi::CStr;

use fastproc::frozen;

use super::text::{TextFile, nano};
use crate::{
    exposition::{Exposition, Family, Kind, Value, escape},
    names,
};

const NONE: &[&str] = &[];

crate::metrics::families! {
    LOAD1 = "node_load1" Gauge NONE, "Threads that ran or waited, on average of a minute. --collector.loadavg, as the next.";
    LOAD5 = "node_load5" Gauge NONE, "The same of five minutes.";
    LOAD15 = "node_load15" Gauge NONE, "The same of fifteen minutes.";
    MEMORY = "node_memory_*" Gauge NONE, "A line of /proc/meminfo, in bytes where it has kB. --collector.meminfo";
    PRESSURE_CPU = "node_pressure_cpu_waiting_seconds_total" Counter NONE, "Time that some task waited for a CPU. --collector.pressure, as the next.";
    PRESSURE_IO_SOME = "node_pressure_io_waiting_seconds_total" Counter NONE, "Time that some task waited for I/O.";
    PRESSURE_IO_FULL = "node_pressure_io_stalled_seconds_total" Counter NONE, "Time that all tasks waited for I/O.";
    PRESSURE_MEMORY_SOME = "node_pressure_memory_waiting_seconds_total" Counter NONE, "Time that some task waited for memory.";
    PRESSURE_MEMORY_FULL = "node_pressure_memory_stalled_seconds_total" Counter NONE, "Time that all tasks waited for memory.";
    PRESSURE_IRQ = "node_pressure_irq_stalled_seconds_total" Counter NONE, "Time that all tasks waited for interrupts.";
    FILEFD_ALLOCATED = "node_filefd_allocated" Gauge NONE, "Open files of the system. --collector.filefd, as the next.";
    FILEFD_MAXIMUM = "node_filefd_maximum" Gauge NONE, "Limit of open files of the system.";
    UNAME = "node_uname_info" Gauge &["sysname", "release", "version", "machine", "nodename", "domainname"], "1, with what uname(2) says. --collector.uname";
    TIME = "node_time_seconds" Gauge NONE, "The system's time, since 1970. --collector.time, as the next.";
    ZONE = "node_time_zone_offset_seconds" Gauge &["time_zone"], "Offset of the system's time zone.";
    CLOCK_AVAILABLE = "node_time_clocksource_available_info" Gauge &["device", "clocksource"], "1 for each clock source that there is.";
    CLOCK_CURRENT = "node_time_clocksource_current_info" Gauge &["device", "clocksource"], "1 for the clock source that is used.";
    ENTROPY = "node_entropy_available_bits" Gauge NONE, "Entropy that the kernel has. --collector.entropy, as the next.";
    ENTROPY_POOL = "node_entropy_pool_size_bits" Gauge NONE, "Entropy that the kernel keeps at most.";
    SCHED_RUNNING = "node_schedstat_running_seconds_total" Counter &["cpu"], "Time that tasks ran on a CPU. --collector.schedstat, as the next.";
    SCHED_WAITING = "node_schedstat_waiting_seconds_total" Counter &["cpu"], "Time that tasks waited for a CPU.";
    SCHED_SLICES = "node_schedstat_timeslices_total" Counter &["cpu"], "Time slices on a CPU.";
}

pub(super) fn loadavg(text: &mut Exposition, file: &TextFile) {
    let words = file.text().split_ascii_whitespace();
    for (family, load) in [LOAD1, LOAD5, LOAD15].iter().zip(words) {
        text.one(family, nano(load).map(Value::Nano));
    }
}

pub(super) fn meminfo(text: &mut Exposition, file: &TextFile) {
    for mut words in file.lines() {
        let (Some(name), Some(number)) = (words.next(), words.next()) else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        let name = name.trim_end_matches([':', ')']).replace('(', "_");
        let in_kib = words.next() == Some("kB");
        let (unit, factor) = if in_kib { ("_bytes", 1024) } else { ("", 1) };
        let name = format!("node_memory_{name}{unit}");
        let help = "A line of /proc/meminfo.";
        text.named(&name, Kind::Gauge, help, Value::Whole(number * factor));
    }
}

/// Writes the sums in microseconds, the last words of the `some` and `full` lines.
pub(super) fn pressure(text: &mut Exposition, [cpu, io, memory, irq]: [&TextFile; 4]) {
    for (file, line, family) in [
        (cpu, "some", PRESSURE_CPU),
        (io, "some", PRESSURE_IO_SOME),
        (io, "full", PRESSURE_IO_FULL),
        (memory, "some", PRESSURE_MEMORY_SOME),
        (memory, "full", PRESSURE_MEMORY_FULL),
        (irq, "full", PRESSURE_IRQ),
    ] {
        let mut lines = file.text().lines();
        let total = lines
            .find(|found| found.starts_with(line))
            .and_then(|found| found.rsplit_once("total=")?.1.parse::<u64>().ok());
        text.one(&family, total.map(|total| Value::Nano(total * 1000)));
    }
}

pub(super) fn filefd(text: &mut Exposition, file: &TextFile) {
    let mut words = file.text().split_ascii_whitespace();
    // The second is always 0.
    let (allocated, maximum) = (words.next(), words.nth(1));
    for (family, word) in [(FILEFD_ALLOCATED, allocated), (FILEFD_MAXIMUM, maximum)] {
        let number = word.and_then(|word| word.parse().ok());
        text.one(&family, number.map(Value::Whole));
    }
}

pub(super) fn entropy(text: &mut Exposition, available: &TextFile, pool: &TextFile) {
    for (family, file) in [(ENTROPY, available), (ENTROPY_POOL, pool)] {
        text.one(&family, file.number().map(Value::Whole));
    }
}

pub(super) fn uname(text: &mut Exposition) {
    let name = rustix::system::uname();
    let parts = [
        ("ostype", name.sysname()),
        ("osrelease", name.release()),
        ("version", name.version()),
        ("arch", name.machine()),
        ("hostname", name.nodename()),
        ("domainname", name.domainname()),
    ];
    // The kernel has each in a file as well.
    let part = |(file, part): (&str, &CStr)| match frozen::path(&format!("/proc/sys/kernel/{file}"))
    {
        Some(path) => std::fs::read(path)
            .unwrap_or_default()
            .trim_ascii()
            .to_vec(),
        None => part.to_bytes().to_vec(),
    };
    let labels: Vec<String> = UNAME
        .labels
        .iter()
        .zip(parts)
        .map(|(label, of)| format!("{label}=\"{}\"", escape(&names::text(&part(of)))))
        .collect();
    text.all(&UNAME, [(labels.join(","), Value::Whole(1))]);
}

pub(super) fn time(text: &mut Exposition, available: &TextFile, current: &TextFile) {
    let now = jiff::Timestamp::try_from(frozen::system_time()).unwrap_or_default();
    let now = now.to_zoned(jiff::tz::TimeZone::system());
    let unix_ns = now.timestamp().as_nanosecond();
    text.one(&TIME, Value::Nano(unix_ns.try_into().unwrap_or_default()));
    let zone = now.time_zone().to_offset_info(now.timestamp());
    let label = format!("time_zone=\"{}\"", escape(zone.abbreviation()));
    let offset = Value::Signed(zone.offset().seconds().into());
    text.all(&ZONE, [(label, offset)]);
    for (family, file) in [(CLOCK_AVAILABLE, available), (CLOCK_CURRENT, current)] {
        let sources = file.text().split_ascii_whitespace();
        let label = |source: &str| format!("device=\"0\",clocksource=\"{}\"", escape(source));
        text.all(
            &family,
            sources.map(|source| (label(source), Value::Whole(1))),
        );
    }
}

pub(super) fn schedstat(text: &mut Exposition, file: &TextFile) {
    type Unit = fn(u64) -> Value;
    let cpus: Vec<(String, [u64; 3])> = file
        .lines()
        .filter_map(|mut words| {
            let cpu: u32 = words.next()?.strip_prefix("cpu")?.parse().ok()?;
            let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
            let last = numbers.get(6..9)?;
            Some((format!("cpu=\"{cpu}\""), [last[0], last[1], last[2]]))
        })
        .collect();
    let families: [(_, Unit); 3] = [
        (SCHED_RUNNING, Value::Nano),
        (SCHED_WAITING, Value::Nano),
        (SCHED_SLICES, Value::Whole),
    ];
    for (at, (family, unit)) in families.iter().enumerate() {
        let cpus = cpus.iter();
        text.all(
            family,
            cpus.map(|(label, numbers)| (label, unit(numbers[at]))),
        );
    }
}
