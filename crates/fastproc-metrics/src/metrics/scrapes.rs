//! How long each collector took, and whether it succeeded.

use std::time::{Duration, Instant};

use crate::exposition::{Exposition, Family, Value};

super::families! {
    TOOK = "node_scrape_collector_duration_seconds" Gauge &["collector"],
        "Time that a collector took. What several need is counted for the first of them.";
    SUCCEEDED = "node_scrape_collector_success" Gauge &["collector"],
        "1 if a collector had something to tell, or could look and there was nothing.";
    BUILD = "node_exporter_build_info" Gauge &["branch", "goarch", "goos", "version"],
        "1, with the version of fastproc, which is its branch.";
}

/// Times of collectors, at the last collection and since.
#[derive(Debug, Default)]
pub(super) struct Scrapes {
    collected: Vec<(&'static str, Duration)>,
    written: Vec<(&'static str, Duration, bool)>,
}

impl Scrapes {
    /// Begins a collection.
    pub(super) fn begin(&mut self) {
        self.collected.clear();
    }

    /// Reads something for a collector, and measures the time.
    pub(super) fn collect<T>(&mut self, collector: &'static str, read: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = read();
        self.collected.push((collector, started.elapsed()));
        result
    }

    /// Writes the metrics of a collector. It succeeds if there are any, or if there may be none.
    pub(super) fn write(
        &mut self,
        text: &mut Exposition,
        collector: &'static str,
        may_be_none: bool,
        write: impl FnOnce(&mut Exposition),
    ) {
        let started = Instant::now();
        text.end_part("");
        let before = text.len();
        write(text);
        let succeeded = may_be_none || text.len() > before;
        text.end_part(collector);
        self.written.push((collector, started.elapsed(), succeeded));
    }

    /// Writes the times, and resets those of writing for the next text of the same collection.
    pub(super) fn finish(&mut self, text: &mut Exposition) {
        if self.written.is_empty() {
            return;
        }
        let label = |collector: &str| format!("collector=\"{collector}\"");
        let took = self.written.iter().map(|&(collector, wrote, _)| {
            let of_it = self.collected.iter().filter(|(name, _)| *name == collector);
            let took = of_it.fold(wrote, |sum, (_, took)| sum + *took);
            (label(collector), Value::Nano(took.as_nanos() as u64))
        });
        text.all(&TOOK, took);
        let succeeded = self
            .written
            .drain(..)
            .map(|(collector, _, succeeded)| (label(collector), Value::Whole(succeeded.into())));
        text.all(&SUCCEEDED, succeeded);
        // The other labels are those of Go's tools.
        let labels = format!(
            "branch=\"fastproc\",goarch=\"{}\",goos=\"linux\",version=\"{}\"",
            go_architecture(),
            env!("CARGO_PKG_VERSION")
        );
        text.all(&BUILD, [(labels, Value::Whole(1))]);
    }
}

/// This architecture as Go calls it.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}
