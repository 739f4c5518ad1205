//! The systemd unit.

use std::{path::Path, process::Command};

use fastproc_zoo::gate;

use crate::{FASTPROC, TMP, folder::Folder};

#[test]
fn systemd_understands_the_unit() {
    const TEST: &str = "systemd_understands_the_unit";
    if !gate::programs(TEST, TMP, &["systemd-analyze"]) {
        return;
    }
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let unit = std::fs::read_to_string(packaging.join("fastproc.service")).expect("it is there");
    // It is checked that the program exists: this one does, wherever the package would put it.
    assert!(unit.contains("\nExecStart=/usr/bin/fastproc serve"));
    let folder = Folder::new();
    let path = folder.write(
        "fastproc.service",
        &unit.replace("/usr/bin/fastproc", FASTPROC),
    );
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no", &path])
        .env("SYSTEMD_LOG_LEVEL", "warning")
        .output()
        .expect("it is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
