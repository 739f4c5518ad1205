//! The systemd unit.

use std::{path::Path, process::Command};

use fastproc_testbed::gate;

use crate::{FASTPROC, folder::Folder};

#[test]
fn systemd_understands_the_units() {
    if !gate::programs(&["systemd-analyze"]) {
        return;
    }
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let folder = Folder::new();
    let units = [
        "fastproc.service",
        "fastproc-snapshots.service",
        "fastproc.socket",
    ];
    let paths = units.map(|name| {
        let unit = std::fs::read_to_string(packaging.join(name)).expect("it is there");
        // It is checked that the program exists: this one does, wherever the package would put it.
        let starts = unit.contains("\nExecStart=/usr/bin/fastproc serve");
        assert!(starts || name.ends_with(".socket"));
        let reloads = unit.contains("\nExecReload=/bin/kill -HUP $MAINPID\n");
        assert!(reloads || name != "fastproc.service");
        folder.write(name, &unit.replace("/usr/bin/fastproc", FASTPROC))
    });
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .args(&paths)
        .env("SYSTEMD_LOG_LEVEL", "warning")
        .output()
        .expect("it is there");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}
