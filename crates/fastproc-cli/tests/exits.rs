//! Processes that end: `fastproc exits` and `fastproc ps --exited`.

mod common;

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
};

use common::{fastproc, run, shown_of_ended};
use fastproc_testbed::gate;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// `fastproc exits` that has begun to record, with what it writes.
struct Recording {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Recording {
    /// As csv, the heading of which says that it has begun.
    fn start(arguments: &[&str]) -> Self {
        let mut child = fastproc(&[&["exits", "--format", "csv"], arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = child.stdout.take().expect("a pipe");
        let mut started = Self {
            child,
            lines: BufReader::new(output),
        };
        started.line();
        started
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    /// Its exit status and what it wrote to standard error.
    fn end(self) -> (Option<i32>, String) {
        drop(self.lines);
        let output = self.child.wait_with_output().expect("it ends");
        let errors = String::from_utf8(output.stderr).expect("text");
        (output.status.code(), errors)
    }
}

fn sh(script: &str) -> u32 {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .spawn()
        .expect("sh runs");
    child.wait().expect("it ends");
    child.id()
}

#[test]
fn an_exit_is_told_with_how_it_ended() {
    if !gate::bpf() {
        return;
    }
    let own = std::process::id();
    let filter = format!("ppid == {own} && status != 0");
    let fields = "pid,ppid,user,comm,status,exit_code,state,pgrp,tty,nspid";
    let mut recording = Recording::start(&["--filter", &filter, "-o", fields, "--count", "2"]);
    sh("exit 0");
    let failed = sh("exit 7");
    let line = recording.line();
    assert_eq!(line, format!("{failed},{own},root,sh,7,1792,X,,,"));
    let killed = sh("kill -KILL $$");
    let line = recording.line();
    assert_eq!(line, format!("{killed},{own},root,sh,KILL,9,X,,,"));
    assert_eq!(recording.end(), (Some(0), String::new()));
}

#[test]
fn execs_are_told_with_their_arguments() {
    if !gate::bpf() {
        return;
    }
    let own = std::process::id();
    let filter = format!("ppid == {own} && comm == sh");
    let fields = "event,pid,user,cmdline";
    let mut recording =
        Recording::start(&["--execs", "--filter", &filter, "-o", fields, "--count", "2"]);
    let pid = sh("exit 0 # here");
    let cmdline = "sh -c exit\\x200\\x20#\\x20here";
    assert_eq!(recording.line(), format!("exec,{pid},root,{cmdline}"));
    assert_eq!(recording.line(), format!("exit,{pid},root,{cmdline}"));
    assert_eq!(recording.end(), (Some(0), String::new()));
}

#[test]
fn it_ends_when_it_is_told_to_or_nobody_reads() {
    if !gate::bpf() {
        return;
    }
    let nothing = ["--filter", "comm == 'no such name'"];
    let recording = Recording::start(&nothing);
    let pid = Pid::from_child(&recording.child);
    kill_process(pid, Signal::INT).expect("it runs");
    assert_eq!(recording.end(), (Some(1), String::new()));
    // The other end of its standard output is closed, and it has nothing to write.
    let recording = Recording::start(&nothing);
    assert_eq!(recording.end(), (Some(1), String::new()));
}

#[test]
fn a_table_has_one_heading() {
    if !gate::bpf() {
        return;
    }
    let mut child = fastproc(&["exits", "-o", "pid,comm", "--count", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    assert_eq!(line(), "    PID  COMM");
    sh("exit 0");
    sh("exit 0");
    let rows = [line(), line()];
    assert!(
        rows.iter()
            .all(|row| row.trim_start().split("  ").count() == 2),
        "{rows:?}"
    );
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn ps_shows_what_lived_between_two_looks() {
    if !gate::bpf() {
        return;
    }
    let own = std::process::id();
    let filter = format!("ppid == {own} && state == X && cmdline =~ 'unmistakable'");
    let fields = "pid,pcpu,status,etime,cmdline,rss";
    // For as long as it looks, processes come and go of which none is there for a tenth of a second.
    let arguments = [
        "ps",
        "--interval",
        "0.3",
        "--exited",
        "--count",
        "30",
        "--format",
        "ndjson",
        "-o",
        fields,
        "--filter",
        &filter,
    ];
    let row = shown_of_ended(&mut fastproc(&arguments), || {
        sh("i=0; while [ $i -lt 100 ]; do i=$((i+1)); done; exit 3; : unmistakable");
    });
    assert_eq!(row["status"], "3", "{row}");
    assert_eq!(row["rss_bytes"], Value::Null, "{row}");
    assert_eq!(row["cmdline"][0], "sh", "{row}");
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |arguments: &[&str], why: &str| {
        let output = run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(why), "{errors}");
    };
    refused(&["ps", "--exited"], "--interval");
    refused(
        &["ps", "--exited", "--threads", "--interval", "1"],
        "--threads",
    );
    refused(
        &["ps", "-eLf", "--exited", "--interval", "1", "--count", "1"],
        "--threads",
    );
    refused(
        &["exits", "--filter", "no_such_field == 1"],
        "no_such_field",
    );
}
