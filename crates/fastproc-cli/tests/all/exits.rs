//! Exited processes: `fastproc exits` and `fastproc ps --exited`.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use crate::common::{Lines, fastproc, shown_of_ended};
use fastproc_testbed::{gate, needs, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// `fastproc exits`, recording.
fn start(arguments: &[&str]) -> Child {
    // Exits of other tests may be lost, which standard error would report.
    fastproc(&[&["exits", "--quiet"], arguments].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// As csv, with the lines of its output.
struct Recording {
    child: Child,
    lines: Lines,
}

impl Recording {
    /// The heading shows that recording has begun.
    fn start(arguments: &[&str]) -> Self {
        let mut child = start(&[&["--format", "csv"], arguments].concat());
        let lines = Lines::new(child.stdout.take().expect("a pipe"));
        lines.line("a heading");
        Self { child, lines }
    }

    /// Interrupts it. Returns its exit status and its messages.
    fn end(self) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("the signal is sent");
        ended(self.child)
    }
}

fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), errors)
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
    needs!(gate::bpf());
    let own = std::process::id();
    let filter = format!("ppid == {own} && status != 0");
    let fields = "pid,ppid,user,comm,status,exit_code,state";
    let recording = Recording::start(&["--filter", &filter, "-o", fields]);
    let (_, lines) = (sh("exit 0"), &recording.lines);
    let (failed, [line]) = lines.of_one(0, || sh("exit 7"));
    assert_eq!(line, format!("{failed},{own},root,sh,7,1792,X"));
    let (killed, [line]) = lines.of_one(0, || sh("kill -KILL $$"));
    assert_eq!(line, format!("{killed},{own},root,sh,KILL,9,X"));
    assert_eq!(recording.end(), (Some(0), String::new()));
}

#[test]
fn execs_are_told_with_their_arguments() {
    needs!(gate::bpf());
    let own = std::process::id();
    let filter = format!("ppid == {own} && comm == sh");
    let fields = "event,pid,user,cmdline";
    let recording = Recording::start(&["--execs", "--filter", &filter, "-o", fields]);
    let (pid, [exec, exit]) = recording.lines.of_one(1, || sh("exit 0 # here"));
    let cmdline = "sh -c exit\\x200\\x20#\\x20here";
    assert_eq!(exec, format!("exec,{pid},root,{cmdline}"));
    assert_eq!(exit, format!("exit,{pid},root,{cmdline}"));
    assert_eq!(recording.end(), (Some(0), String::new()));
}

#[test]
fn exits_ends_on_a_signal_or_when_its_reader_closes() {
    needs!(gate::bpf());
    let nothing = ["--filter", "comm == 'no such name'"];
    let recording = Recording::start(&nothing);
    assert_eq!(recording.end(), (Some(1), String::new()));
    // The reader of its standard output is gone, and it has nothing to write.
    let mut child = start(&nothing);
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    output.read_line(&mut String::new()).expect("a heading");
    drop(output);
    assert_eq!(ended(child), (Some(1), String::new()));
}

#[test]
fn a_table_has_one_heading_and_as_many_rows_as_are_asked_for() {
    needs!(gate::bpf());
    let filter = format!("ppid == {}", std::process::id());
    let arguments = ["-o", "pid,comm", "--count", "2", "--filter", &filter];
    let mut child = start(&arguments);
    wait_until("two processes are told of", || {
        sh("exit 0");
        child.try_wait().expect("it is our child").is_some()
    });
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<_> = text.lines().collect();
    assert!(output.status.success());
    assert_eq!((lines[0], lines.len()), ("    PID  COMM", 3), "{text}");
    let columns = |row: &&str| row.trim_start().split("  ").count() == 2;
    assert!(lines[1..].iter().all(columns), "{text}");
}

#[test]
fn a_summary_adds_up_the_processes_of_a_name() {
    needs!(gate::bpf());
    let filter = format!("ppid == {} && status == 77", std::process::id());
    let summary = ["--summary", "--format", "csv", "--count", "2"];
    let mut child = start(&[&summary[..], &["--filter", &filter]].concat());
    wait_until("two processes are counted", || {
        sh("exit 77");
        child.try_wait().expect("it is our child").is_some()
    });
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    let rows: Vec<_> = text.lines().skip(1).collect();
    assert!(
        matches!(rows[..], [row] if row.starts_with("2,2,") && row.ends_with(",sh")),
        "{text}"
    );
}

#[test]
fn ps_shows_what_lived_between_two_looks() {
    needs!(gate::bpf());
    let own = std::process::id();
    let filter = format!("ppid == {own} && state == X && cmdline =~ 'unmistakable'");
    let fields = "pid,pcpu,status,etime,cmdline,rss";
    let row = shown_of_ended(&mut fastproc(&["ps"]), fields, &filter, || {
        sh("i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; exit 3; : unmistakable");
    });
    assert_eq!(row["status"], "3", "{row}");
    assert_eq!(row["rss_bytes"], Value::Null, "{row}");
    assert_eq!(row["cmdline"][0], "sh", "{row}");
}
