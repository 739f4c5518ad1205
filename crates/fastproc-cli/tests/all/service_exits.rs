//! Exited processes, reported by a service to an unprivileged user. Needs root.

use std::process::{Child, Stdio};

use crate::common::Lines;
use crate::served::{NOBODY, Served};
use fastproc_testbed::{ended_shell, gate, needs, wait_for};

/// The command as user nobody, and its output.
fn as_nobody(served: &Served, arguments: &[&str]) -> (Child, Lines) {
    let mut child = served
        .prepared(NOBODY, arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = child.stdout.take().expect("a pipe");
    (child, Lines::new(output))
}

#[test]
fn a_user_sees_what_ends_and_of_others_not_how() {
    needs!(gate::bpf());
    let served = Served::start("exits");
    let fields = "pid,user,comm,status,exit_code,rchar,cmdline";
    // Another test may run at the same time.
    let word = format!("unmistakable-{}", std::process::id());
    // Arguments that a program might erase are shown only to its user; others see the name.
    let filter = format!("ppid == {}", std::process::id());
    let arguments = [
        "exits", "--quiet", "--format", "csv", "-o", fields, "--filter", &filter,
    ];
    let (mut child, lines) = as_nobody(&served, &arguments);
    assert!(lines.line("it has begun to record").starts_with("pid,"));
    let (others, [told]) = lines.of_one(0, || ended_shell(0, &word));
    assert_eq!(told, format!("{others},root,sh,,,,"));
    let (own, [told]) = lines.of_one(0, || ended_shell(NOBODY, &word));
    assert!(
        told.starts_with(&format!("{own},nobody,sh,7,1792,")) && told.contains(&word),
        "{told}"
    );
    child.kill().expect("the child is killed");
    child.wait().expect("the child ends");
    let refused = served.command(NOBODY, &["exits", "--execs", "--count", "1"]);
    assert_eq!(refused.status.code(), Some(2), "a service tells no execs");
}

/// A broken pipe to the service is not one of the output.
#[test]
fn that_the_service_has_ended_is_an_error() {
    needs!(gate::bpf());
    let served = Served::start("ended");
    let arguments = ["exits", "--format", "csv", "-o", "pid"];
    let (mut child, lines) = as_nobody(&served, &arguments);
    lines.line("it has begun to record");
    drop(served);
    let status = wait_for("it ends", || child.try_wait().expect("it is our child"));
    assert_eq!(status.code(), Some(2));
}
