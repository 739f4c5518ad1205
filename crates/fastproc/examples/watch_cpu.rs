//! The busiest processes over an interval, five times.
//!
//! `cargo run --example watch_cpu -- [MILLISECONDS]`

use std::{thread::sleep, time::Duration};

use fastproc::{Baseline, Collector, Fields};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let milliseconds = std::env::args()
        .nth(1)
        .map_or(Ok(1000), |text| text.parse())?;
    let mut collector = Collector::builder().fields(Fields::TOP).open()?;
    let mut before = Baseline::default();
    before.set(&collector.snapshot()?);
    for _ in 0..5 {
        sleep(Duration::from_millis(milliseconds));
        let now = collector.snapshot()?;
        let mut changes: Vec<_> = before.changes(&now).collect();
        changes.sort_by(|a, b| {
            b.cpu_share
                .partial_cmp(&a.cpu_share)
                .expect("no share is NaN")
        });
        for change in changes.iter().take(3) {
            let percent = change.cpu_share.unwrap_or(0.0) * 100.0;
            let faults = change.minflt_per_second.unwrap_or(0.0);
            let name = change.process.name();
            println!(
                "{percent:5.1} % {faults:8.0} faults/s  {}",
                name.escape_ascii()
            );
        }
        println!("{} ended", before.gone(&now).count());
        before.set(&now);
    }
    Ok(())
}
