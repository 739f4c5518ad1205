//! No panic is reachable from the public interface: `no-panic/` makes every call, and links only if that is so.
#![cfg(all(target_os = "linux", not(miri)))]

use std::{
    path::Path,
    process::{Command, Output},
};

fn link(features: &[&str]) -> Output {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("no-panic/Cargo.toml");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-panic");
    Command::new(env!("CARGO"))
        .args("rustc --quiet --offline --release --manifest-path".split(' '))
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        .args(features)
        .args(["--", "-C", "link-arg=-Wl,-z,defs"])
        // Instrumentation, which tests may run under, calls undefined symbols, too.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs")
}

#[test]
fn no_call_can_panic() {
    let linked = link(&[]);
    assert!(
        linked.status.success(),
        "{}",
        String::from_utf8_lossy(&linked.stderr)
    );
}

#[test]
fn a_call_that_can_panic_is_found() {
    let linked = link(&["--features", "control"]);
    let why = String::from_utf8_lossy(&linked.stderr);
    assert!(
        !linked.status.success(),
        "a panic was linked and nobody noticed"
    );
    assert!(why.contains("seqtext_can_panic"), "{why}");
}
