//! A process that has exited.

use std::{os::unix::process::CommandExt, process::Command};

/// Runs a shell as this user and group, with `word` in its command line, until it ends with status 7. Returns its pid.
///
/// It uses some CPU time and has been waited for.
///
/// # Panics
/// If it cannot be run, or ends otherwise: a test cannot continue without it.
pub fn ended_shell(uid: u32, word: &str) -> u32 {
    let mut child = Command::new("/bin/sh")
        .args([
            "-c",
            "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; exit 7",
            word,
        ])
        .current_dir("/")
        .uid(uid)
        .gid(uid)
        .spawn()
        .expect("sh(1) can be run");
    let status = child.wait().expect("it is a child of the test");
    assert_eq!(status.code(), Some(7), "the shell failed");
    child.id()
}
