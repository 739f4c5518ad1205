//! Reads the numbers of the machine.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    time::{Duration, Instant, UNIX_EPOCH},
};

use fastproc::{
    counters::{self, Counters, MachineFile, Want},
    frozen, proc_root,
    text::{loadavg::LoadAvg, uptime::Uptime},
};

use crate::machine::{Cpu, Gauge, Machine};

/// How old interrupt counts may be: exact ones would cost more than everything else.
const INTERRUPT_AGE: Duration = Duration::from_millis(500);
/// Samples that follow one another so soon are cheaper by BPF…
const OFTEN: Duration = Duration::from_millis(100);
/// …and so many in a row promise that there will be thousands: loading the programs costs as much as they save in 2,500.
const MANY: u32 = 50;
/// How old memory and load may be. The kernel itself does not update them more often than this.
const TEXT_AGE: Duration = Duration::from_millis(400);

/// How old the rates of disks and networks and the temperature may be.
const RATE_AGE: Duration = Duration::from_millis(900);

/// The rates of disks and networks.
const RATES: [Gauge; 4] = [
    Gauge::DiskRead,
    Gauge::DiskWritten,
    Gauge::Received,
    Gauge::Sent,
];
/// Devices that are parts of others, are in memory, or connect parts of this machine.
const INNER_DISKS: [&str; 7] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];
const INNER_NETWORKS: [&str; 7] = ["lo", "veth", "docker", "br", "virbr", "cni", "tap"];
/// Sensors of processors, by their names in /sys.
const SENSORS: [&str; 6] = [
    "coretemp",
    "k10temp",
    "zenpower",
    "cpu_thermal",
    "cpu-thermal",
    "x86_pkg_temp",
];

const MEMORY: [(&str, Gauge); 7] = [
    ("MemTotal:", Gauge::MemTotal),
    ("MemFree:", Gauge::MemFree),
    ("MemAvailable:", Gauge::MemAvailable),
    ("Buffers:", Gauge::Buffers),
    ("Cached:", Gauge::Cached),
    ("SwapTotal:", Gauge::SwapTotal),
    ("SwapFree:", Gauge::SwapFree),
];

const PRESSURE: [(&str, Gauge, Option<Gauge>); 3] = [
    ("/proc/pressure/cpu", Gauge::CpuSome, None),
    (
        "/proc/pressure/memory",
        Gauge::MemorySome,
        Some(Gauge::MemoryFull),
    ),
    ("/proc/pressure/io", Gauge::IoSome, Some(Gauge::IoFull)),
];

/// How fast samples follow one another.
#[derive(Debug, Default)]
struct Pace {
    before: Option<Instant>,
    /// How many in a row came soon after the one before.
    soon: u32,
}

impl Pace {
    /// Counts a sample, and tells whether programs pay back what loading them costs.
    fn is_high(&mut self, now: Instant) -> bool {
        let before = self.before.replace(now);
        let is_soon = before.is_some_and(|before| now - before < OFTEN);
        self.soon = if is_soon { self.soon + 1 } else { 0 };
        self.soon >= MANY
    }
}

fn reader(bpf: bool) -> Result<Counters, counters::Error> {
    let options = counters::Options::new().bpf(bpf);
    options.stat_irqs_latency(INTERRUPT_AGE).open()
}

/// Reads the machine repeatedly.
#[derive(Debug)]
pub struct Sampler {
    reader: Counters,
    /// Whether BPF was tried.
    has_tried: bool,
    pace: Pace,
    /// A kernel without PSI lacks these files.
    pressure: [Option<File>; 3],
    texts_at: Option<Instant>,
    /// When the bytes of disks and networks were counted, and how many there were.
    bytes: Option<(Instant, [Option<u64>; 4])>,
    thermometer: Option<File>,
    /// What lxcfs subtracts from the time since boot, in nanoseconds: in a container it shows the time since its start.
    before_container_ns: u64,
}

impl Sampler {
    /// Opens the counters as texts.
    pub fn open() -> Result<Self, counters::Error> {
        Ok(Self {
            reader: reader(false)?,
            has_tried: false,
            pace: Pace::default(),
            pressure: PRESSURE.map(|(path, ..)| File::open(proc_root::path(path)).ok()),
            texts_at: None,
            bytes: None,
            thermometer: thermometer(),
            before_container_ns: 0,
        })
    }

    /// Updates `machine`. If a file cannot be read, its numbers are unknown. With `bpf`, they are read by programs once samples
    /// are frequent.
    pub fn sample(&mut self, machine: &mut Machine, bpf: bool) {
        let now = Instant::now();
        if self.pace.is_high(now) && bpf && !std::mem::replace(&mut self.has_tried, true) {
            // The texts stay good if the programs cannot be loaded.
            if let Ok(reader) = reader(true) {
                self.reader = reader;
            }
        }
        let sample = self.reader.collect(Want::STAT).ok();
        let stat = sample.map(|sample| &sample.stat);
        machine.total = stat
            .map(|stat| stat.total.ns)
            .filter(|_| stat.is_some_and(|stat| !stat.cpus.is_empty()));
        machine.cpus.clear();
        let cpus = stat.iter().flat_map(|stat| &stat.cpus);
        machine.cpus.extend(cpus.map(|cpu| Cpu {
            id: cpu.id,
            times: cpu.times.ns,
        }));
        machine.set(Gauge::ContextSwitches, stat.map(|stat| stat.ctxt));
        machine.set(Gauge::Interrupts, stat.map(|stat| stat.intr));
        machine.set(Gauge::Forks, stat.map(|stat| stat.processes));
        let calendar = frozen::system_time().duration_since(UNIX_EPOCH);
        let calendar = calendar.map(|time| time.as_nanos() as u64);
        machine.set(Gauge::Calendar, calendar.ok());
        self.pressure(machine);
        if self.texts_at.is_none_or(|at| now - at >= TEXT_AGE) {
            self.texts_at = Some(now);
            self.load(machine);
            let text = self.reader.text(MachineFile::Meminfo);
            memory(text.unwrap_or_default(), machine);
            let clock_ns = fastproc::host::boottime_ns();
            let text = self.reader.text(MachineFile::Uptime).ok();
            if let Some(uptime) = text.and_then(|text| Uptime::parse(text).ok()) {
                self.before_container_ns = before(self.before_container_ns, clock_ns, uptime.up);
            }
        }
        if self.bytes.is_none_or(|(at, _)| now - at >= RATE_AGE) {
            self.devices(now, machine);
        }
        // Rates need more than the hundredths of a second in the text.
        let up = fastproc::host::boottime_ns().saturating_sub(self.before_container_ns);
        machine.set(Gauge::Uptime, Some(up));
    }

    /// Disks, networks and temperature.
    fn devices(&mut self, now: Instant, machine: &mut Machine) {
        let [read, written] =
            disk_bytes(self.reader.text(MachineFile::Diskstats).unwrap_or_default());
        let [received, sent] =
            network_bytes(self.reader.text(MachineFile::NetDev).unwrap_or_default());
        let bytes = [read, written, received, sent];
        if let Some((at, before)) = self.bytes.replace((now, bytes)) {
            let seconds = (now - at).as_secs_f64();
            for ((gauge, now), before) in RATES.into_iter().zip(bytes).zip(before) {
                let grown = now
                    .zip(before)
                    .and_then(|(now, before)| now.checked_sub(before));
                let rate = grown.map(|grown| (grown as f64 / seconds) as u64);
                machine.set(gauge, rate);
            }
        }
        let mut text = [0; 16];
        let read = self.thermometer.as_ref();
        let read = read.and_then(|file| file.read_at(&mut text, 0).ok());
        let degrees = number(text[..read.unwrap_or(0)].trim_ascii());
        machine.set(Gauge::Temperature, degrees);
    }

    fn load(&mut self, machine: &mut Machine) {
        let text = self.reader.text(MachineFile::Loadavg).ok();
        let load = text.and_then(|text| LoadAvg::parse(text).ok());
        for (i, gauge) in [Gauge::Load1, Gauge::Load5, Gauge::Load15]
            .into_iter()
            .enumerate()
        {
            let load = load.as_ref().map(|load| load.averages()[i]);
            machine.set(gauge, load.map(|load| (load * 100.0).round() as u64));
        }
    }

    fn pressure(&mut self, machine: &mut Machine) {
        for ((_, some, full), file) in PRESSURE.into_iter().zip(&self.pressure) {
            let mut text = [0; 256];
            let read = file
                .as_ref()
                .and_then(|file| file.read_at(&mut text, 0).ok());
            let text = &text[..read.unwrap_or(0)];
            machine.set(some, total(text, b"some "));
            if let Some(full) = full {
                machine.set(full, total(text, b"full "));
            }
        }
    }
}

/// The file of the processor's temperature, if it has a sensor.
fn thermometer() -> Option<File> {
    for (class, name, file) in [
        ("hwmon", "name", "temp1_input"),
        ("thermal", "type", "temp"),
    ] {
        let devices = std::fs::read_dir(format!("/sys/class/{class}"));
        for device in devices.into_iter().flatten().flatten() {
            let sensor = std::fs::read_to_string(device.path().join(name)).unwrap_or_default();
            if SENSORS.contains(&sensor.trim())
                && let Ok(file) = File::open(device.path().join(file))
            {
                return Some(file);
            }
        }
    }
    None
}

/// The sums of two columns over the devices of a text; unknown if it has none.
fn sums<'t>(lines: impl Iterator<Item = &'t str>, columns: [usize; 2]) -> [Option<u64>; 2] {
    let mut sums = [None; 2];
    for line in lines {
        for (sum, column) in sums.iter_mut().zip(columns) {
            let word = line.split_ascii_whitespace().nth(column);
            if let Some(number) = word.and_then(|word| word.parse::<u64>().ok()) {
                *sum = Some(sum.unwrap_or(0) + number);
            }
        }
    }
    sums
}

/// The bytes that disks read and wrote, from `/proc/diskstats`: of whole ones, whose partitions follow them.
fn disk_bytes(text: &[u8]) -> [Option<u64>; 2] {
    let text = String::from_utf8_lossy(text);
    let mut disk = "";
    let lines = text.lines().filter(|line| {
        let name = line.split_ascii_whitespace().nth(2).unwrap_or_default();
        let part = name.strip_prefix(disk).filter(|_| !disk.is_empty());
        let is_part = part.is_some_and(|part| part.trim_start_matches('p').parse::<u32>().is_ok());
        let is_whole = !is_part && !INNER_DISKS.iter().any(|inner| name.starts_with(inner));
        disk = if is_whole { name } else { disk };
        is_whole
    });
    sums(lines, [5, 9]).map(|sectors| sectors.map(|sectors| sectors * 512))
}

/// The bytes that network interfaces received and sent, from `/proc/net/dev`.
fn network_bytes(text: &[u8]) -> [Option<u64>; 2] {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().filter_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        let name = name.trim();
        let is_inner = INNER_NETWORKS.iter().any(|inner| name.starts_with(inner));
        (!is_inner).then_some(numbers)
    });
    sums(lines, [0, 8])
}

/// Takes the sizes from `/proc/meminfo`.
fn memory(text: &[u8], machine: &mut Machine) {
    let mut sizes = [None; MEMORY.len()];
    let (mut reclaimable, mut shared) = (0, 0);
    for line in text.split(|&byte| byte == b'\n') {
        let mut words = line.split(|&byte| byte == b' ');
        let name = words.next().unwrap_or_default();
        let size = words.find(|word| !word.is_empty()).and_then(number);
        let size = size.map(|kibibytes| kibibytes.saturating_mul(1024));
        match name {
            b"SReclaimable:" => reclaimable = size.unwrap_or(0),
            b"Shmem:" => shared = size.unwrap_or(0),
            _ => {
                let known = MEMORY
                    .iter()
                    .position(|(known, _)| known.as_bytes() == name);
                if let Some(at) = known {
                    sizes[at] = size;
                }
            }
        }
    }
    for ((_, gauge), size) in MEMORY.into_iter().zip(sizes) {
        let size = match gauge {
            Gauge::Cached => size.map(|size| (size + reclaimable).saturating_sub(shared)),
            _ => size,
        };
        machine.set(gauge, size);
    }
}

/// By how much a text of `/proc/uptime` is behind the clock, which was read before it: 0 unless it is not the kernel's. A
/// difference of less than two seconds from the one before is that of the two readings, and changes no rate.
fn before(earlier_ns: u64, clock_ns: u64, up: Duration) -> u64 {
    let behind_ns = clock_ns.saturating_sub(up.as_nanos() as u64);
    if behind_ns.abs_diff(earlier_ns) < 2_000_000_000 {
        earlier_ns
    } else {
        behind_ns
    }
}

/// The total of a line of `/proc/pressure`, in nanoseconds.
fn total(text: &[u8], line: &[u8]) -> Option<u64> {
    let line = text
        .split(|&byte| byte == b'\n')
        .find_map(|text| text.strip_prefix(line))?;
    let mut words = line.split(|&byte| byte == b' ');
    let microseconds = words.find_map(|word| word.strip_prefix(b"total="))?;
    Some(number(microseconds)?.saturating_mul(1000))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_pay_only_for_many_samples_in_a_row() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let mut high_after = |pause: Duration, samples: u32| {
            (0..samples)
                .filter(|_| {
                    now += pause;
                    pace.is_high(now)
                })
                .count()
        };
        assert_eq!(high_after(Duration::from_secs(1), 1000), 0);
        assert_eq!(high_after(Duration::from_millis(20), MANY - 1), 0);
        assert_eq!(high_after(Duration::from_secs(1), 1), 0);
        assert_eq!(high_after(Duration::from_millis(20), MANY), 1);
    }

    #[test]
    fn pressure_is_the_total_of_its_line() {
        let text = b"some avg10=90.88 avg60=85.75 avg300=64.23 total=9240312145\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(total(text, b"some "), Some(9_240_312_145_000));
        assert_eq!(total(text, b"full "), Some(7000));
        assert_eq!(total(b"", b"some "), None);
        assert_eq!(total(b"some total=x", b"some "), None);
    }

    #[test]
    fn bytes_of_whole_disks_and_outer_networks_are_added_up() {
        let disks = b" 8 0 sda 1 0 10 0 1 0 20 0\n 8 1 sda1 1 0 10 0 1 0 20 0\n\
            259 0 nvme0n1 1 0 4 0 1 0 0 0\n 259 1 nvme0n1p1 1 0 4 0 1 0 0 0\n 7 0 loop0 9 9 9 9 9 9 9 9\n";
        assert_eq!(disk_bytes(disks), [Some(14 * 512), Some(20 * 512)]);
        let networks = b"Inter-|   Receive |  Transmit\n face |bytes packets|bytes\n    lo: 7 0 0 0 0 0 0 0 7 0\n\
            eth0: 5 0 0 0 0 0 0 0 3 0\n wlan0:2 0 0 0 0 0 0 0 1 0\n";
        assert_eq!(network_bytes(networks), [Some(7), Some(4)]);
        assert_eq!(disk_bytes(b""), [None, None]);
    }

    #[test]
    fn shared_memory_is_in_use_and_cache_is_not() {
        let text = b"MemTotal:  100 kB\nMemFree:  10 kB\nBuffers:  20 kB\nCached:  40 kB\nShmem:  15 kB\nSReclaimable:  5 kB\n";
        let mut machine = Machine::default();
        memory(text, &mut machine);
        assert_eq!(machine.get(Gauge::Cached), Some(30 << 10));
        assert_eq!(machine.memory_used(), Some(40 << 10));
    }

    #[test]
    fn the_uptime_is_that_of_the_text_where_lxcfs_writes_it() {
        let now = 86_400_123_456_789;
        assert_eq!(before(0, now, Duration::from_millis(86_400_120)), 0);
        let container = Duration::from_millis(3_600_120);
        let behind = before(0, now, container);
        assert_eq!(behind, 82_800_003_456_789);
        // A moment between the two readings moves nothing.
        assert_eq!(before(behind, now + 1_500_000_000, container), behind);
    }

    #[test]
    fn the_machine_is_read() {
        let mut sampler = Sampler::open().expect("there is a /proc/stat");
        let mut machine = Machine::default();
        sampler.sample(&mut machine, false);
        assert!(!machine.cpus.is_empty());
        assert!(machine.memory_used() > Some(0));
        for gauge in [Gauge::Uptime, Gauge::Load1, Gauge::SwapTotal, Gauge::Forks] {
            assert!(machine.get(gauge).is_some(), "{gauge:?}");
        }
    }
}
