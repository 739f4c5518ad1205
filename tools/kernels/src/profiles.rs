//! `AppArmor` profiles for the guest, in the form that its kernel loads.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

/// The path of each profile in the guest, and its text in this repository.
pub const PROFILES: [(&str, &str); 2] = [
    ("apparmor/guest", "tools/guest/apparmor"),
    ("apparmor/pod", "packaging/kubernetes/apparmor"),
];

/// The features for which the profiles are written: a kernel mediates those that it supports.
const FEATURES: &str = "/etc/apparmor.d/abi/3.0";

/// Compiles the profiles of a file. The kernel of this machine is not involved.
pub fn compile(text: &str) -> Result<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("apparmor_parser")
        .args(["--skip-kernel-load", "--skip-cache", "--stdout", "--quiet"])
        .args(["--features-file", FEATURES])
        .arg(root.join(text))
        // The compiler may be among root's programs.
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .output()
        .context("cannot run apparmor_parser")?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{text} is no profile of AppArmor: {}", error.trim());
    }
    Ok(output.stdout)
}
