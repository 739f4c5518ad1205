//! What the exporter says about itself.

use fastproc::SnapshotStats;

use crate::exposition::{Exposition, Family, Kind, Value, escape};

macro_rules! families {
    ($($constant:ident = $name:literal $kind:ident $labels:expr, $help:literal;)*) => {
        $(const $constant: Family = Family { name: $name, kind: Kind::$kind, help: $help, labels: $labels };)*
        /// All of them, in the order of the text.
        pub(super) const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    BUILD = "fastproc_build_info" Gauge &["version"],
        "1, with the version.";
    SOURCE = "fastproc_source_info" Gauge &["source", "counters", "sees_all"],
        "1, with where processes (source: bpf, bpf-iter, procfs) and counters (bpf, procfs) are read from, and whether the kernel shows this exporter everything of every process (sees_all: true, false).";
    SCAN = "fastproc_scan_duration_seconds" Gauge &[],
        "Time that the snapshot took.";
    TORN = "fastproc_records_torn_total" Counter &[],
        "Records that changed while they were read, and were read again from /proc.";
    MISSED = "fastproc_processes_missed" Gauge &[],
        "Processes that the walk does not meet, and that are read from /proc.";
    GROWN = "fastproc_arrays_grown_total" Counter &[],
        "Walks that were repeated because an array was too small.";
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
    COSTLY_CPU = "fastproc_costly_cpu_seconds_total" Counter &[],
        "CPU time that went into costly values: no more than --costly-share of the time.";
}

/// What is told.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// How the last snapshot was made; `None` if it failed.
    pub stats: Option<SnapshotStats>,
    /// Where processes are read from.
    pub source: &'a str,
    /// Where counters are read from.
    pub counters: &'a str,
    /// Whether the kernel hides nothing.
    pub sees_all: bool,
    /// Snapshots so far.
    pub snapshots: u64,
    /// Torn records so far.
    pub torn: u64,
    /// Repeated walks so far.
    pub grown: u64,
    /// Failed readings of the counters.
    pub counter_errors: u64,
    /// Groups that are folded.
    pub folded_groups: u64,
    /// Series that each of them would have.
    pub series_of_a_group: u64,
    /// Threads whose names are folded.
    pub folded_threads: u64,
    /// CPU time of costly values, in nanoseconds, if any are read.
    pub costly_cpu_ns: Option<u64>,
}

/// Writes it.
pub fn write_own(text: &mut Exposition, own: Own<'_>) {
    let mut one = |family: &Family, labels: &str, value| {
        text.family(family);
        text.series(family.name, labels, "", value);
    };
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    one(&BUILD, &version, Value::Whole(1));
    let source = format!(
        "source=\"{}\",counters=\"{}\",sees_all=\"{}\"",
        escape(own.source),
        escape(own.counters),
        own.sees_all
    );
    one(&SOURCE, &source, Value::Whole(1));
    if let Some(stats) = own.stats {
        one(&SCAN, "", Value::Nano(stats.took.as_nanos() as u64));
        one(&MISSED, "", Value::Whole(stats.missed.into()));
    }
    one(&TORN, "", Value::Whole(own.torn));
    one(&GROWN, "", Value::Whole(own.grown));
    one(&SCRAPES, "", Value::Whole(own.snapshots));
    one(&HOST_ERRORS, "", Value::Whole(own.counter_errors));
    one(&FOLDED, "", Value::Whole(own.folded_groups));
    one(
        &DROPPED,
        "",
        Value::Whole(own.folded_groups * own.series_of_a_group),
    );
    one(&FOLDED_THREADS, "", Value::Whole(own.folded_threads));
    if let Some(cpu_ns) = own.costly_cpu_ns {
        one(&COSTLY_CPU, "", Value::Nano(cpu_ns));
    }
}
