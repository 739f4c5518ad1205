//! Compares the metrics of cgroups, value by value, with the kernel's files.

use std::{collections::HashMap, io, path::Path, process::Command, time::Instant};

use crate::{
    cgroups::{ROUNDS, TREE, cgroups, value},
    proofs::FASTPROC,
    reporter::Reporter,
    service,
};

/// The files with the values.
const FILES: [&str; 17] = [
    "cpu.stat",
    "cpu.max",
    "memory.current",
    "memory.peak",
    "memory.min",
    "memory.max",
    "memory.swap.current",
    "memory.swap.max",
    "memory.events",
    "memory.stat",
    "pids.current",
    "pids.max",
    "io.stat",
    "cgroup.procs",
    "cpu.pressure",
    "memory.pressure",
    "io.pressure",
];

/// The form of a metric's value in the kernel's file.
#[derive(Clone, Copy)]
enum Kernel {
    /// The file is a number.
    Number,
    /// The file is a limit.
    Limit,
    /// The number after a name.
    Line(&'static str),
    /// The same in microseconds.
    Micros(&'static str),
    /// Like the two above, for a cgroup with a quota.
    Limited(&'static str),
    LimitedMicros(&'static str),
    /// The total of a line of pressure.
    Total(&'static str),
    /// A word of cpu.max.
    Word(usize),
    /// The number of lines.
    Lines,
    /// Another file's number minus that of this line.
    Without(&'static str, &'static str),
}

use Kernel::{Limit, Limited, LimitedMicros, Line, Lines, Micros, Number, Total, Without, Word};

const PGFAULT: &str = ",failure_type=\"pgfault\",scope=\"container\"";
const PGMAJFAULT: &str = ",failure_type=\"pgmajfault\",scope=\"hierarchy\"";
const DISK: &str = ",device=\"/dev/nvme0n1\"";

/// Metrics, labels besides the id, the file, and the form there.
const METRICS: [(&str, &str, &str, Kernel); 47] = [
    (
        "cpu_usage_seconds_total",
        ",cpu=\"total\"",
        "cpu.stat",
        Micros("usage_usec"),
    ),
    (
        "cpu_user_seconds_total",
        "",
        "cpu.stat",
        Micros("user_usec"),
    ),
    (
        "cpu_system_seconds_total",
        "",
        "cpu.stat",
        Micros("system_usec"),
    ),
    (
        "cpu_cfs_periods_total",
        "",
        "cpu.stat",
        Limited("nr_periods"),
    ),
    (
        "cpu_cfs_throttled_periods_total",
        "",
        "cpu.stat",
        Limited("nr_throttled"),
    ),
    (
        "cpu_cfs_throttled_seconds_total",
        "",
        "cpu.stat",
        LimitedMicros("throttled_usec"),
    ),
    (
        "cpu_cfs_burst_periods_total",
        "",
        "cpu.stat",
        Limited("nr_bursts"),
    ),
    (
        "cpu_cfs_burst_seconds_total",
        "",
        "cpu.stat",
        LimitedMicros("burst_usec"),
    ),
    ("spec_cpu_quota", "", "cpu.max", Word(0)),
    ("spec_cpu_period", "", "cpu.max", Word(1)),
    ("memory_usage_bytes", "", "memory.current", Number),
    (
        "memory_working_set_bytes",
        "",
        "memory.current",
        Without("memory.stat", "inactive_file"),
    ),
    ("memory_max_usage_bytes", "", "memory.peak", Number),
    ("memory_swap", "", "memory.swap.current", Number),
    ("memory_rss", "", "memory.stat", Line("anon")),
    ("memory_cache", "", "memory.stat", Line("file")),
    ("memory_mapped_file", "", "memory.stat", Line("file_mapped")),
    ("memory_kernel_usage", "", "memory.stat", Line("kernel")),
    (
        "memory_total_active_file_bytes",
        "",
        "memory.stat",
        Line("active_file"),
    ),
    (
        "memory_total_inactive_file_bytes",
        "",
        "memory.stat",
        Line("inactive_file"),
    ),
    (
        "memory_file_dirty_bytes",
        "",
        "memory.stat",
        Line("file_dirty"),
    ),
    (
        "memory_file_writeback_bytes",
        "",
        "memory.stat",
        Line("file_writeback"),
    ),
    (
        "memory_failures_total",
        PGFAULT,
        "memory.stat",
        Line("pgfault"),
    ),
    (
        "memory_failures_total",
        PGMAJFAULT,
        "memory.stat",
        Line("pgmajfault"),
    ),
    ("memory_pgscan_total", "", "memory.stat", Line("pgscan")),
    ("memory_pgsteal_total", "", "memory.stat", Line("pgsteal")),
    (
        "memory_workingset_refault_file_total",
        "",
        "memory.stat",
        Line("workingset_refault_file"),
    ),
    (
        "memory_workingset_refault_anon_total",
        "",
        "memory.stat",
        Line("workingset_refault_anon"),
    ),
    (
        "memory_events_high_total",
        "",
        "memory.events",
        Line("high"),
    ),
    ("memory_events_max_total", "", "memory.events", Line("max")),
    ("oom_events_total", "", "memory.events", Line("oom_kill")),
    ("spec_memory_limit_bytes", "", "memory.max", Limit),
    (
        "spec_memory_reservation_limit_bytes",
        "",
        "memory.min",
        Limit,
    ),
    ("spec_memory_swap_limit_bytes", "", "memory.swap.max", Limit),
    ("fs_reads_bytes_total", DISK, "io.stat", Line("rbytes")),
    ("fs_reads_total", DISK, "io.stat", Line("rios")),
    ("fs_writes_bytes_total", DISK, "io.stat", Line("wbytes")),
    ("fs_writes_total", DISK, "io.stat", Line("wios")),
    ("processes", "", "cgroup.procs", Lines),
    ("threads", "", "pids.current", Number),
    ("threads_max", "", "pids.max", Limit),
    (
        "pressure_cpu_waiting_seconds_total",
        "",
        "cpu.pressure",
        Total("some"),
    ),
    (
        "pressure_cpu_stalled_seconds_total",
        "",
        "cpu.pressure",
        Total("full"),
    ),
    (
        "pressure_memory_waiting_seconds_total",
        "",
        "memory.pressure",
        Total("some"),
    ),
    (
        "pressure_memory_stalled_seconds_total",
        "",
        "memory.pressure",
        Total("full"),
    ),
    (
        "pressure_io_waiting_seconds_total",
        "",
        "io.pressure",
        Total("some"),
    ),
    (
        "pressure_io_stalled_seconds_total",
        "",
        "io.pressure",
        Total("full"),
    ),
];

/// Compares the metrics of cgroups that `fastproc serve` exports, read from this source, with their files.
pub fn compare(reporter: &mut Reporter, source: &str) -> io::Result<()> {
    service::make_nobody()?;
    let name = format!("serve cgroups {source}");
    let source = format!("--source={source}");
    let argv = [
        FASTPROC,
        "serve",
        "--once-to-stdout-delay=0s",
        "--cgroups",
        "--no-host",
        "--exits=false",
        &source,
    ];
    let mut rounds = 0;
    let (started, output, kernel) = loop {
        rounds += 1;
        let started = Instant::now();
        let before = texts();
        let output = Command::new(argv[0]).args(&argv[1..]).output();
        let after = texts();
        if before == after || rounds == ROUNDS {
            break (started, output, after);
        }
    };
    let mut told = Vec::new();
    // The report does not need the whole output.
    let output = output.map(|mut output| {
        told = std::mem::take(&mut output.stdout);
        output
    });
    reporter.command(&name, &argv, started, output)?;
    let told = String::from_utf8_lossy(&told).into_owned();
    let told: HashMap<&str, &str> = told
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .collect();
    let (mut compared, mut not_zero, mut wrong) = (0, 0, Vec::new());
    for cgroup in cgroups() {
        for (metric, more, file, how) in METRICS {
            let series = format!("container_{metric}{{id=\"/tree/{cgroup}\"{more}}}");
            let ours = told.get(&*series).copied();
            let expected = expected(&kernel, cgroup, file, how);
            let same = match (ours, expected) {
                (Some(ours), Some(value)) => number(ours, how) == Some(value),
                (ours, None) => ours.is_none(),
                (None, Some(_)) => false,
            };
            if !same {
                wrong.push(format!("{series} is {ours:?} instead of {expected:?}"));
            }
            compared += usize::from(expected.is_some());
            not_zero += usize::from(expected.is_some_and(|value| value > 0));
        }
    }
    reporter.fact(&format!("{name}: values compared"), compared)?;
    reporter.fact(&format!("{name}: values above zero"), not_zero)?;
    reporter.check(&name, wrong.is_empty() && not_zero > 50, wrong.join("; "))
}

type Texts = HashMap<(&'static str, &'static str), String>;

fn texts() -> Texts {
    let files = cgroups().flat_map(|cgroup| FILES.map(|file| (cgroup, file)));
    files
        .filter_map(|(cgroup, file)| {
            let path = Path::new(TREE).join(cgroup).join(file);
            // A kernel may lack some of the files.
            Some(((cgroup, file), std::fs::read_to_string(path).ok()?))
        })
        .collect()
}

/// The kernel's value, if it has one.
fn expected(texts: &Texts, cgroup: &'static str, file: &'static str, how: Kernel) -> Option<u64> {
    let text = texts.get(&(cgroup, file))?;
    let has_quota = || Some(!texts.get(&(cgroup, "cpu.max"))?.starts_with("max"));
    match how {
        Limit if text == "max\n" => Some(0),
        Number | Limit => text.trim().parse().ok(),
        Line(name) | Micros(name) => value(text, name),
        Limited(name) | LimitedMicros(name) => {
            value(text, name).filter(|_| has_quota() == Some(true))
        }
        Total(name) => {
            let line = text.lines().find(|line| line.starts_with(name));
            // Older kernels lack the line `full` of CPUs, because nothing can wait so.
            line.map_or(Some(0), |line| value(line, "total"))
        }
        Word(at) => text.split_ascii_whitespace().nth(at)?.parse().ok(),
        Lines => Some(text.lines().count() as u64),
        Without(other, name) => {
            let part = value(texts.get(&(cgroup, other))?, name)?;
            Some(text.trim().parse::<u64>().ok()?.saturating_sub(part))
        }
    }
}

/// A metric's number in the unit of the kernel's file.
fn number(text: &str, how: Kernel) -> Option<u64> {
    if !matches!(how, Micros(_) | LimitedMicros(_) | Total(_)) {
        return text.parse().ok();
    }
    let (seconds, rest) = text.split_once('.').unwrap_or((text, ""));
    let micros = format!("{rest:0<6}");
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.get(..6)?.parse::<u64>().ok()?)
}
