//! With `--interval`, what a process executes is shown and filtered by as it is now.

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use common::fastproc;

/// A shell that is asked to execute another shell keeps pid, start time and name.
#[test]
fn a_program_of_the_same_name_is_not_taken_for_the_one_before() {
    let mut shell = Command::new("sh")
        .args(["-c", "read line && exec $line", "first"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let of_shell = format!("pid == {}", shell.id());
    let watch = |filter: &str, columns: &str| {
        fastproc(&[
            "ps",
            "--interval",
            "0.05",
            "--count",
            "2000",
            "--format",
            "ndjson",
        ])
        .args(["-o", columns, "--filter", filter])
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
    let mut lines = BufReader::new(all.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a row").expect("text");
    assert!(first.contains("first"), "{first}");
    let mut stdin = shell.stdin.take().expect("a pipe");
    stdin.write_all(b"sh -s second\n").expect("it reads");
    let seen = lines
        .take(1000)
        .map(|line| line.expect("text"))
        .find(|line| line.contains("second"));
    let seen = seen.expect("the other program is shown");
    assert!(seen.contains(r#""comm":"sh""#), "{seen}");
    // A row only comes where the filter knows it, too.
    let mut lines = BufReader::new(filtered.stdout.take().expect("a pipe")).lines();
    let admitted = lines.next().expect("a row").expect("text");
    assert!(admitted.contains("second"), "{admitted}");
    for child in [&mut all, &mut filtered, &mut shell] {
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
}
