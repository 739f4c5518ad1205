//! Processes that end, shown by a service to a user without privileges. Needs root.

mod common;
mod served;

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Stdio},
};

use common::shown_of_ended;
use fastproc_testbed::{ended_shell, gate};
use serde_json::Value;
use served::{Served, wait_until};

const NOBODY: u32 = 65534;

/// The command as nobody calls it, and what it writes.
fn as_nobody(served: &Served, arguments: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = served
        .prepared(NOBODY, arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = child.stdout.take().expect("a pipe");
    (child, BufReader::new(output).lines())
}

#[test]
fn a_user_sees_what_ends_and_of_others_not_how() {
    if !gate::bpf() {
        return;
    }
    let served = Served::start("exits");
    let fields = "pid,user,comm,status,exit_code,rchar,cmdline";
    let filter = "cmdline =~ 'unmistakable'";
    let arguments = [
        "exits", "--format", "csv", "-o", fields, "--filter", filter, "--count", "2",
    ];
    let (mut child, mut lines) = as_nobody(&served, &arguments);
    let mut line = || lines.next().expect("a line").expect("text");
    assert!(line().starts_with("pid,"), "it has begun to record");
    let others = ended_shell(0, "unmistakable");
    let told = line();
    assert!(
        told.starts_with(&format!("{others},root,sh,,,,/bin/sh -c ")),
        "{told}"
    );
    let own = ended_shell(NOBODY, "unmistakable");
    let told = line();
    assert!(
        told.starts_with(&format!("{own},nobody,sh,7,1792,")),
        "{told}"
    );
    assert!(child.wait().expect("it ends").success());
    let refused = served.command(NOBODY, &["exits", "--execs", "--count", "1"]);
    assert_eq!(refused.status.code(), Some(2), "a service tells no execs");
}

/// A broken pipe to the service is not one to who reads.
#[test]
fn that_the_service_has_ended_is_an_error() {
    if !gate::bpf() {
        return;
    }
    let served = Served::start("ended");
    let arguments = ["exits", "--format", "csv", "-o", "pid"];
    let (mut child, mut lines) = as_nobody(&served, &arguments);
    assert!(lines.next().is_some(), "it has begun to record");
    drop(served);
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
}

#[test]
fn ps_shows_a_user_what_lived_between_two_looks() {
    if !gate::bpf() {
        return;
    }
    let served = Served::start("exited");
    let arguments = [
        "ps",
        "--source",
        "service",
        "--interval",
        "0.3",
        "--exited",
        "--count",
        "100",
        "--format",
        "ndjson",
        "-o",
        "pid,pcpu,status,etime,cmdline",
        "--filter",
        "state == X && cmdline =~ 'inimitable'",
    ];
    let row = shown_of_ended(&mut served.prepared(NOBODY, &arguments), || {
        ended_shell(NOBODY, "inimitable");
    });
    assert_eq!(row["status"], "7", "{row}");
    wait_until("nothing is recorded for nobody", || {
        let status = served.output(0, &["serve", "--status", "--json"]);
        let status: Value = serde_json::from_slice(&status).expect("JSON");
        status["exits"]["recording"] == 0
    });
}
