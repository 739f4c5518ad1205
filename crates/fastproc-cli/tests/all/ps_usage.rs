//! Help, and what is printed where. `frozen` tests mistakes in options.

use std::process::Command;

use crate::common::{output, rows, run};
use fastproc_testbed::{Folder, Sleepers, gate, needs};

#[test]
fn help_is_complete() {
    for arguments in [&["--help"][..], &["ps", "--help"], &["ps", "-h"]] {
        assert!(output(arguments).contains("Examples:"), "{arguments:?}");
    }
    for arguments in [&["--help"][..], &["ps", "--help"]] {
        assert!(output(arguments).contains("Exit status:"), "{arguments:?}");
    }
    let longest = output(&["ps", "--help"])
        .lines()
        .map(|line| line.chars().count())
        .max();
    assert!(longest <= Some(100), "{longest:?}");
    assert!(output(&["--version"]).starts_with("fastproc "));
}

#[test]
fn fields_are_listed_with_a_line_each() {
    for (command, name, heading) in [
        ("ps", "num_threads", "THR"),
        ("top", "num_threads", "THR"),
        ("exits", "lstart", "STARTED"),
        ("cgroups", "working_set", "WORKING"),
    ] {
        let list = output(&[command, "--fields", "help"]);
        let mut lines = list.lines().map(str::trim_start);
        let line = lines.find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.contains(heading)), "{list}");
        // An exited process and a cgroup have none.
        let has_threads = name == "num_threads";
        assert_eq!(list.contains("num_threads"), has_threads, "{list}");
    }
}

/// Nothing is printed to a pipe or a file but the requested output.
#[test]
fn standard_error_is_empty_where_nothing_is_wrong() {
    let own = std::process::id().to_string();
    for arguments in [
        &["ps"][..],
        &["ps", "--top", "1"],
        &["ps", "aux"],
        &["ps", "-o", "pid=", "-p", &own],
        &["ps", "--fields", "pid", "--json"],
        &["ps", "--interval", "0.02", "--count", "1"],
    ] {
        let output = run(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(said, "", "{arguments:?}");
        assert!(output.status.success(), "{arguments:?}");
    }
    let output = run(&["ps", "--top", "1", "--verbose"]);
    let line = String::from_utf8(output.stderr).expect("text");
    assert!(
        line.starts_with("fastproc: read ") && line.contains(" processes from "),
        "{line}"
    );
    assert!(line.contains(" ms, showed 1"), "{line}");
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn every_command_that_prints_has_json() {
    let own = std::process::id().to_string();
    let parse = |text: &str| -> Vec<serde_json::Value> {
        let lines = text.lines();
        lines
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    };
    for arguments in [
        &["ps", "--json"][..],
        &["ps", "aux", "--json"],
        &["ps", "-o", "pid,flags", "-p", &own, "--json"],
        &["top", "--once", "--json", "--interval", "0.05"],
        &["doctor", "--json"],
        &[
            "verify", "--json", "--rounds", "1", "--pids", &own, "--source", "procfs",
        ],
        &["run", "--system", "status", "--json"],
    ] {
        let output = run(arguments);
        let text = String::from_utf8(output.stdout).expect("text");
        let objects = parse(&text);
        assert_eq!(objects.len(), 1, "{arguments:?}: {text}");
        assert!(objects[0].is_object(), "{arguments:?}: {text}");
    }
    // JSON has the field of fastproc, whatever ps(1) calls by that name.
    let flags = &rows(&["-o", "flags", "-p", &own])[0]["flags"];
    assert!(flags.as_u64() > Some(0xff), "{flags}");
}

#[test]
fn closed_descriptors_are_no_reason_to_fail() {
    let program = env!("CARGO_BIN_EXE_fastproc");
    for closed in ["2>&-", "0<&- 2>&-"] {
        let status = Command::new("sh")
            .args(["-c", &format!("\"$0\" ps {closed} >/dev/null"), program])
            .status()
            .expect("sh can be started");
        assert!(status.success(), "{closed}");
    }
}

/// Another file lies over its stat, in a mount namespace of fastproc alone.
#[test]
fn a_process_whose_text_cannot_be_parsed_is_left_out_and_counted() {
    needs!(gate::root());
    let folder = Folder::new("left-out");
    let text = folder.join("stat");
    std::fs::write(&text, "1 (what) S is this\n").expect("a file");
    let sleepers = Sleepers::start(2);
    let pids: Vec<u32> = sleepers.pids().into_iter().collect();
    let script =
        r#"mount --bind "$1" "/proc/$2/stat" && exec "$3" ps -e --source procfs --fields pid"#;
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&text)
        .arg(pids[0].to_string())
        .arg(env!("CARGO_BIN_EXE_fastproc"))
        .output()
        .expect("there is unshare(1)");
    let (shown, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}");
    let shows = |pid: u32| shown.lines().any(|line| line.trim() == pid.to_string());
    assert_eq!([shows(pids[0]), shows(pids[1])], [false, true], "{shown}");
    assert!(said.contains("1 process left out"), "{said}");
}
