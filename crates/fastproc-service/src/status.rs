//! What the service tells of itself.

use std::collections::BTreeMap;

use fastproc::source::service::wire::Status;
use serde::Serialize;

use crate::blame::Counts;

/// Counted since the service began.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    /// Times when it had something to do, or thought so.
    pub(crate) wakes: u64,
    pub(crate) fills: u64,
    /// Snapshots without texts, for want of budget.
    pub(crate) texts_refused: u64,
    /// Times when nobody was accepted for a while.
    pub(crate) pauses: u64,
    pub(crate) refusals: BTreeMap<String, u64>,
}

impl Counted {
    pub(crate) fn refuse(&mut self, status: Status) {
        *self.refusals.entry(status.to_string()).or_default() += 1;
    }
}

/// The answer to a question for the status.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    pub(crate) version: &'static str,
    pub(crate) pid: u32,
    /// The process that serves metrics, if this one collects for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exporter: Option<u32>,
    pub(crate) source: &'static str,
    pub(crate) uptime_seconds: f64,
    /// Connections now, by user.
    pub(crate) clients: BTreeMap<u32, usize>,
    pub(crate) connections_total: u64,
    pub(crate) requests_total: u64,
    pub(crate) wakes_total: u64,
    pub(crate) walks_total: u64,
    pub(crate) fills_total: u64,
    #[serde(flatten)]
    pub(crate) blamed: Counts,
    /// The same, of users other than root that there is something to tell of.
    pub(crate) users: BTreeMap<u32, Counts>,
    /// Times when the service had no descriptors, and accepted nobody for a moment.
    pub(crate) pauses_total: u64,
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
    /// Snapshots that went without, because their user had had its share of work.
    pub(crate) refused_total: u64,
    /// Readings now.
    pub(crate) readings: usize,
    /// Users and processes that are left to the readers for a while, because reading took too long.
    pub(crate) left_to_readers: usize,
}

/// Processes that ended.
#[derive(Debug, Serialize)]
pub(crate) struct ExitsReport {
    /// Connections that want them; if there is any they are recorded, and for a moment after.
    pub(crate) readers: usize,
    /// 1, or 0.
    pub(crate) recording: u32,
    /// Times when recording began.
    pub(crate) starts_total: u64,
    pub(crate) kept: usize,
    pub(crate) bytes: usize,
}

/// A collector that is open.
#[derive(Debug, Serialize)]
pub(crate) struct CollectorReport {
    pub(crate) fields: Vec<&'static str>,
    /// Of the last walk; not known if there was none yet.
    pub(crate) age_seconds: Option<f64>,
}

/// Memory of the snapshots.
#[derive(Debug, Serialize)]
pub(crate) struct BuffersReport {
    pub(crate) lent: usize,
    pub(crate) lent_bytes: usize,
    pub(crate) ready: usize,
    pub(crate) ready_bytes: usize,
    /// Those that readers have given back, and still have.
    pub(crate) kept: usize,
    pub(crate) kept_bytes: usize,
}
