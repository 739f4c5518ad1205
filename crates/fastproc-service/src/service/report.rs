//! The status that the service reports.

use fastproc::Fields;

use super::Service;
use crate::status::{BuffersReport, CollectorReport, ExitsReport, Report, TextsReport};

impl Service {
    pub(super) fn report(&mut self) -> String {
        let names = |fields: Fields| {
            let named = Fields::NAMES.iter();
            named
                .filter(|(_, group)| fields.contains(*group))
                .map(|(name, _)| *name)
                .collect()
        };
        let (processes, bytes, left_to_readers) = self.texts.sizes();
        let (kept, exit_bytes) = self.exits.sizes();
        let [
            (lent, lent_bytes),
            (ready, ready_bytes),
            (kept_by, kept_bytes),
        ] = self.buffers.sizes();
        let report = Report {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            exporter: self.exporter,
            source: self.source().name(),
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            clients: self.connections_by_user(),
            connections_total: self.counted.connections,
            requests_total: self.counted.requests,
            wakes_total: self.counted.wakes,
            walks_total: self.field_sets.walks,
            records_kept_total: self.field_sets.kept,
            records_disproven_total: self.field_sets.disproven,
            fills_total: self.counted.fills,
            blamed: self.user_events.sum(),
            users: self.user_events.users(),
            pauses_total: self.counted.pauses,
            cgroups_refused_total: self.counted.cgroups_refused,
            files_refused_total: self.counted.files_refused,
            refusals_total: &self.counted.refusals,
            collectors: self
                .field_sets
                .sizes()
                .map(|(fields, age, array_bytes)| CollectorReport {
                    fields: names(fields),
                    age_seconds: age.map(|age| age.as_secs_f64()),
                    array_bytes,
                })
                .collect(),
            texts: TextsReport {
                processes,
                bytes,
                reads_total: self.texts.reads,
                refused_total: self.counted.texts_refused,
                readings: self.jobs.len(),
                left_to_readers,
            },
            exits: ExitsReport {
                readers: self
                    .clients
                    .values()
                    .filter(|client| client.exits.is_some())
                    .count(),
                recording: self.exits.is_recording().into(),
                starts_total: self.exits.starts,
                kept,
                bytes: exit_bytes,
            },
            buffers: BuffersReport {
                lent,
                lent_bytes,
                ready,
                ready_bytes,
                kept: kept_by,
                kept_bytes,
            },
        };
        // Names and numbers: nothing in it can fail.
        serde_json::to_string(&report).unwrap_or_default()
    }
}
