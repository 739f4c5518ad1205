//! Compared with a real process-exporter: the differences are the documented ones.

use std::process::Command;

use fastproc_testbed::{gate, needs};

use crate::serve::FASTPROC;

#[test]
fn only_documented_metrics_differ_from_process_exporter() {
    // Only BPF sees processes that exit between two scrapes.
    needs!(
        gate::programs(&["prometheus-process-exporter", "python3", "unshare"]),
        gate::bpf()
    );
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let output = Command::new(format!("{root}/tools/exporter/compare"))
        .args([FASTPROC, "--verbose", "--documented"])
        .arg(format!("{root}/docs/exporter.md"))
        .output()
        .expect("it can be started");
    let [differences, details] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    details
        .lines()
        .filter_map(|line| line.strip_prefix("repeated: "))
        .for_each(gate::repeated);
    assert!(output.status.success(), "{differences}{details}");
}
