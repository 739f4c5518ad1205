//! The status that the service reports.

use std::collections::BTreeMap;

use fastproc::source::service::wire::Status;
use serde::Serialize;

use crate::user_events::Counts;

/// Counts since the service began.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    /// How often the service woke up.
    pub(crate) wakes: u64,
    pub(crate) fills: u64,
    /// Snapshots without texts, because the budget was used up.
    pub(crate) texts_refused: u64,
    /// Requests for cgroups that were refused because there are too many of them.
    pub(crate) cgroups_refused: u64,
    /// Requests for open files that were refused, but not because of the user's own.
    pub(crate) files_refused: u64,
    /// How often accepting was paused.
    pub(crate) pauses: u64,
    pub(crate) refusals: BTreeMap<String, u64>,
}

impl Counted {
    pub(crate) fn refuse(&mut self, status: Status) {
        *self.refusals.entry(status.to_string()).or_default() += 1;
    }
}

/// The answer to a request for the status.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    pub(crate) version: &'static str,
    pub(crate) pid: u32,
    /// The process that serves metrics, if this one collects for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exporter: Option<u32>,
    pub(crate) source: &'static str,
    pub(crate) uptime_seconds: f64,
    /// Current connections, by user.
    pub(crate) clients: BTreeMap<u32, usize>,
    pub(crate) connections_total: u64,
    pub(crate) requests_total: u64,
    pub(crate) wakes_total: u64,
    pub(crate) walks_total: u64,
    /// Records that walks did not read again, because they were proven unchanged.
    pub(crate) records_kept_total: u64,
    /// Those that were read all the same, and had changed: each is a defect.
    pub(crate) records_disproven_total: u64,
    pub(crate) fills_total: u64,
    #[serde(flatten)]
    pub(crate) blamed: Counts,
    /// The same by user, for users other than root with any count.
    pub(crate) users: BTreeMap<u32, Counts>,
    /// How often the service had no descriptors, and accepted no connection for a moment.
    pub(crate) pauses_total: u64,
    /// Requests for cgroups that were refused because there are too many of them, whoever made them.
    pub(crate) cgroups_refused_total: u64,
    /// Requests for open files that were refused because reading those of all users took too long.
    pub(crate) files_refused_total: u64,
    pub(crate) refusals_total: &'a BTreeMap<String, u64>,
    pub(crate) collectors: Vec<CollectorReport>,
    pub(crate) texts: TextsReport,
    pub(crate) exits: ExitsReport,
    pub(crate) buffers: BuffersReport,
}

/// Command lines and paths of programs that are kept.
#[derive(Debug, Serialize)]
pub(crate) struct TextsReport {
    pub(crate) processes: usize,
    pub(crate) bytes: usize,
    pub(crate) reads_total: u64,
    /// Snapshots without texts, because their user's budget was used up.
    pub(crate) refused_total: u64,
    /// Current readings.
    pub(crate) readings: usize,
    /// Owners that are left to the readers for a while, because reading took too long.
    pub(crate) left_to_readers: usize,
}

/// Exited processes.
#[derive(Debug, Serialize)]
pub(crate) struct ExitsReport {
    /// Connections that want exits. Exits are recorded while there are any, and for a moment after.
    pub(crate) readers: usize,
    /// 1 or 0.
    pub(crate) recording: u32,
    /// How often recording has begun.
    pub(crate) starts_total: u64,
    pub(crate) kept: usize,
    pub(crate) bytes: usize,
}

/// A collector that is open.
#[derive(Debug, Serialize)]
pub(crate) struct CollectorReport {
    pub(crate) fields: Vec<&'static str>,
    /// Age of the last walk; unknown before the first, and after its arrays were released.
    pub(crate) age_seconds: Option<f64>,
    pub(crate) array_bytes: u64,
}

/// Memory of the snapshots.
#[derive(Debug, Serialize)]
pub(crate) struct BuffersReport {
    pub(crate) lent: usize,
    pub(crate) lent_bytes: usize,
    pub(crate) ready: usize,
    pub(crate) ready_bytes: usize,
    /// Buffers that readers have given back but still have open.
    pub(crate) kept: usize,
    pub(crate) kept_bytes: usize,
}
