//! Metrics of the exporter itself.

use std::fmt::Debug;

use fastproc::SnapshotStats;
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

use crate::{
    exposition::{Exposition, Family, Value, escape},
    link::Used,
    reloaded::Reloaded,
};

super::families! {
    BUILD = "fastproc_build_info" Gauge &["version"],
        "1, with the version.";
    SOURCE = "fastproc_source_info" Gauge &["source", "sees_all"],
        "1, with where processes are read from (source: bpf, bpf-iter, procfs), and whether the kernel shows this exporter everything of every process (sees_all: true, false).";
    SCAN = "fastproc_scan_duration_seconds" Gauge &[],
        "Time that the snapshot took.";
    TORN = "fastproc_records_torn_total" Counter &[],
        "Records that changed while they were read, and were read again from /proc.";
    MISSED = "fastproc_processes_missed" Gauge &[],
        "Processes that the walk does not meet, and that are read from /proc.";
    LEFT_OUT = "fastproc_processes_left_out" Gauge &[],
        "Processes that are in no group, because a file of theirs in /proc holds what this exporter does not understand.";
    GROWN = "fastproc_arrays_grown_total" Counter &[],
        "Walks that were repeated because an array was too small.";
    EXITS = "fastproc_exits_total" Counter &[],
        "Processes that ended, and whose last values are in their groups. Absent if exits are not recorded.";
    EXITS_LOST = "fastproc_exits_lost_total" Counter &[],
        "Exits that there was no room for: what those processes did since the last snapshot is in no group.";
    SCRAPES = "fastproc_snapshots_total" Counter &[],
        "Snapshots.";
    HOST_ERRORS = "fastproc_host_errors_total" Counter &[],
        "Times that the machine's counters could not be read.";
    FOLDED = "fastproc_groups_folded" Gauge &[],
        "Groups that are summed up as the group other, because there are more than --max-groups.";
    DROPPED = "fastproc_series_dropped" Gauge &[],
        "Series of groups that are folded, which are in the sums of the group other.";
    FOLDED_THREADS = "fastproc_threads_folded" Gauge &[],
        "Threads that are summed up under the name other, because there are more names than --max-thread-names.";
    RELOADED = "fastproc_config_last_reload_successful" Gauge &[],
        "1 if the configuration could be read the last time, at the start or at a reload; 0 if the one of before is kept.";
    RELOADED_AT = "fastproc_config_last_reload_success_timestamp_seconds" Gauge &[],
        "When the configuration that is used was read, since 1970.";
    COSTLY_CPU = "fastproc_costly_cpu_seconds_total" Counter &[],
        "CPU time that went into costly values: no more than --costly-share of the time.";
    SERVICE_REFUSED = "fastproc_service_refused_total" Counter &["user", "reason"],
        "Times that a user of the service of snapshots was refused (reason: over_budget, over_memory), disconnected (cut_off), or held up its work (blocked). The user is a number; other stands for those after the first 256, and for what nobody is known to have done. This and the next two are absent without --socket.";
    SERVICE_CONNECTIONS = "fastproc_service_connections" Gauge &[],
        "Connections to the service of snapshots.";
    SERVICE_LENT = "fastproc_service_lent_bytes" Gauge &[],
        "Memory of the snapshots that readers of the service have.";
    CPU = "process_cpu_seconds_total" Counter &[],
        "CPU time of this exporter.";
    OPEN_FDS = "process_open_fds" Gauge &[],
        "Open descriptors of this exporter.";
    MAX_FDS = "process_max_fds" Gauge &[],
        "Limit of open descriptors of this exporter.";
    VIRTUAL = "process_virtual_memory_bytes" Gauge &[],
        "Virtual memory of this exporter.";
    VIRTUAL_MAX = "process_virtual_memory_max_bytes" Gauge &[],
        "Limit of virtual memory of this exporter; without one, the largest number that there is.";
    RESIDENT = "process_resident_memory_bytes" Gauge &[],
        "Resident memory of this exporter.";
    START = "process_start_time_seconds" Gauge &[],
        "Start of this exporter, since 1970.";
}

/// Exits so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExitCounts {
    /// Recorded exits.
    pub recorded: u64,
    /// Lost exits.
    pub lost: u64,
}

/// A service of snapshots that runs in this process.
pub trait Service: Debug + Send {
    /// Its counts so far. Reading them must not wait for the service, nor delay it.
    fn read(&self) -> Served;
}

/// The counts of this service.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Current connections.
    pub connections: u64,
    /// Bytes that are currently lent.
    pub lent_bytes: u64,
    /// A user (`None`: all others), a reason, and how often.
    pub refused: Vec<(Option<u32>, &'static str, u64)>,
}

/// The values to report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    /// Statistics of the last snapshot; `None` if it failed.
    pub stats: Option<SnapshotStats>,
    /// The source of processes.
    pub source: &'static str,
    /// Whether the kernel hides nothing.
    pub sees_all: bool,
    /// Snapshots so far.
    pub snapshots: u64,
    /// Torn records so far.
    pub torn: u64,
    /// Repeated walks so far.
    pub grown: u64,
    /// Exits, if they are recorded.
    pub exits: Option<ExitCounts>,
    /// Failed readings of the counters.
    pub counter_errors: u64,
    /// Groups that are folded.
    pub folded_groups: u64,
    /// Series that each folded group would have.
    pub series_of_a_group: u64,
    /// Threads whose names are folded.
    pub folded_threads: u64,
    /// CPU time of costly values, in nanoseconds, if any are read.
    pub costly_cpu_ns: Option<u64>,
    /// When the machine was booted, in seconds since 1970.
    pub btime: u64,
    /// How the configuration was read the last time.
    pub reloaded: Reloaded,
    /// Time and memory of the process that serves the metrics.
    pub beside: Used,
}

/// Writes the metrics, with the counts of the service if there is one.
pub fn write_own(text: &mut Exposition, own: &Own, service: Option<&Served>) {
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    text.all(&BUILD, [(version, Value::Whole(1))]);
    let source = format!(
        "source=\"{}\",sees_all=\"{}\"",
        escape(own.source),
        own.sees_all
    );
    text.all(&SOURCE, [(source, Value::Whole(1))]);
    let stats = own.stats;
    let took = stats.map(|stats| Value::Nano(stats.took.as_nanos() as u64));
    text.one(&SCAN, took);
    for (family, count) in [
        (MISSED, stats.map(|stats| stats.missed.into())),
        (LEFT_OUT, stats.map(|stats| stats.left_out.into())),
        (TORN, Some(own.torn)),
        (GROWN, Some(own.grown)),
        (EXITS, own.exits.map(|exits| exits.recorded)),
        (EXITS_LOST, own.exits.map(|exits| exits.lost)),
        (SCRAPES, Some(own.snapshots)),
        (HOST_ERRORS, Some(own.counter_errors)),
        (FOLDED, Some(own.folded_groups)),
        (DROPPED, Some(own.folded_groups * own.series_of_a_group)),
        (FOLDED_THREADS, Some(own.folded_threads)),
        (RELOADED, Some(own.reloaded.successful.into())),
    ] {
        text.one(&family, count.map(Value::Whole));
    }
    text.one(&RELOADED_AT, Value::Nano(own.reloaded.success_unix_ns));
    text.one(&COSTLY_CPU, own.costly_cpu_ns.map(Value::Nano));
    if let Some(service) = service {
        write_service(text, service);
    }
    write_process(text, own.btime, own.beside);
}

fn write_service(text: &mut Exposition, service: &Served) {
    let refused = service.refused.iter().map(|(uid, reason, count)| {
        let user = uid.map_or_else(|| "other".to_owned(), |uid| uid.to_string());
        let labels = format!("user=\"{user}\",reason=\"{reason}\"");
        (labels, Value::Whole(*count))
    });
    text.all(&SERVICE_REFUSED, refused);
    text.one(&SERVICE_CONNECTIONS, Value::Whole(service.connections));
    text.one(&SERVICE_LENT, Value::Whole(service.lent_bytes));
}

/// Writes the usual metrics of the exporter's own process, with the time and memory of the serving process added.
fn write_process(text: &mut Exposition, btime: u64, beside: Used) {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu_ns = cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64;
    text.one(&CPU, Value::Nano(cpu_ns.saturating_add(beside.cpu_ns)));
    if let Ok(folder) = std::fs::read_dir("/proc/self/fd") {
        // One of them belongs to the folder itself.
        let open = folder.count().saturating_sub(1);
        text.one(&OPEN_FDS, Value::Whole(open as u64));
    }
    let limit = getrlimit(Resource::Nofile).current;
    text.one(&MAX_FDS, limit.map(Value::Whole));
    // It has the name of this process, which may be any bytes.
    let stat = std::fs::read("/proc/self/stat").unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
    let field = |number: usize| fields.split(' ').nth(number - 3)?.parse::<u64>().ok();
    if let (Some(start), Some(size), Some(pages)) = (field(22), field(23), field(24)) {
        text.one(&VIRTUAL, Value::Whole(size));
        let limit = getrlimit(Resource::As).current;
        text.one(&VIRTUAL_MAX, Value::Whole(limit.unwrap_or(u64::MAX)));
        let resident = pages * page_size() as u64;
        text.one(
            &RESIDENT,
            Value::Whole(resident.saturating_add(beside.resident_bytes)),
        );
        let tick_ns = 1_000_000_000 / clock_ticks_per_second();
        text.one(&START, Value::Nano(btime * 1_000_000_000 + start * tick_ns));
    }
}
