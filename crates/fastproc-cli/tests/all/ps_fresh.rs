//! With `--interval`, the program that a process has executed last is shown and filtered by.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::common::{Lines, fastproc};
use fastproc_testbed::wait_until;

/// A shell that executes another shell keeps pid, start time and name.
#[test]
fn a_program_of_the_same_name_is_not_taken_for_the_one_before() {
    let mut shell = Command::new("sh")
        .args(["-c", "read line && exec $line", "first"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let of_shell = format!("pid == {}", shell.id());
    let watch = |filter: &str, columns: &str| {
        fastproc(&["ps", "--interval", "0.05", "--format", "ndjson"])
            .args(["--fields", columns, "--filter", filter])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be started")
    };
    let mut all = watch(&of_shell, "pid,comm,cmdline");
    let mut filtered = watch(
        &format!("{of_shell} && cmdline =~ \"second\""),
        "pid,comm,cmdline",
    );
    let lines = Lines::new(all.stdout.take().expect("a pipe"));
    let first = lines.line("the first program");
    assert!(first.contains("first"), "{first}");
    let mut stdin = shell.stdin.take().expect("a pipe");
    stdin.write_all(b"sh -s second\n").expect("it reads");
    wait_until("the other program is shown", || {
        let seen = lines.line("a row of the shell");
        let second = seen.contains("second");
        assert!(!second || seen.contains(r#""comm":"sh""#), "{seen}");
        second
    });
    // A row comes only if the filter knows it, too.
    let admitted = Lines::new(filtered.stdout.take().expect("a pipe")).line("a row");
    assert!(admitted.contains("second"), "{admitted}");
    for child in [&mut all, &mut filtered, &mut shell] {
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
    }
}
