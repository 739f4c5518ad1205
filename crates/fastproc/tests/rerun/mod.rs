//! Tests that change the whole process run themselves again in a new one.

use std::{
    env,
    process::{Command, Output},
};

/// The case that this process runs.
pub const CASE: &str = "FASTPROC_OPENING_CASE";

/// Runs the test of this name again with `case` set, and returns its output.
pub fn rerun(test: &str, case: &str) -> Output {
    let exe = env::current_exe().expect("this test has a path");
    let output = Command::new(exe)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CASE, case)
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "{case}: {}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

pub fn is_case(case: &str) -> bool {
    env::var(CASE).is_ok_and(|now| now == case)
}
