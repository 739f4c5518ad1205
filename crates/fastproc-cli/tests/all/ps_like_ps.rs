//! Options that `fastproc ps` has in common with ps(1). `ps_as_ps` compares the columns of both.

use std::{collections::BTreeMap, process::Command};

use crate::common::{output, rows, run};
use fastproc_testbed::{Options, Testbed};

fn by_pid(text: &str) -> BTreeMap<u32, String> {
    let line = |line: &str| {
        let line = line.trim();
        let (pid, value) = line.split_once(' ').unwrap_or((line, ""));
        (pid.parse().expect("a pid"), value.trim().to_owned())
    };
    text.lines().map(line).collect()
}

#[test]
fn the_calls_of_ps_are_understood() {
    let own = std::process::id();
    let by_pid = |arguments: &[&str]| by_pid(&output(&[&["ps"], arguments].concat()));
    // This process and its parent, since others start and exit.
    let all = [own, std::os::unix::process::parent_id()];
    for arguments in [
        &["-e", "-o", "pid="][..],
        &["-eo", "pid="],
        &["-A", "-opid="],
        &["axo", "pid", "h"],
        &["-ax", "-o", "pid="],
        &["-aux", "-o", "pid="],
        &["-e", "--format", "pid=", "--no-heading"],
        &["ax", "--fields", "pid", "--no-headers"],
        &["--fields", "pid", "--no-headings"],
    ] {
        let shown = by_pid(arguments);
        assert!(
            all.iter().all(|pid| shown.contains_key(pid)),
            "{arguments:?}"
        );
    }
    let own = own.to_string();
    for arguments in [
        &["-o", "pid=", &own][..],
        &["-o", "pid=", "-p", &own],
        &["p", &own, "o", "pid", "h"],
        &["-q", &own, "-o", "pid="],
        &["--pid", &own, "--no-headings", "-o", "pid"],
    ] {
        assert_eq!(by_pid(arguments).len(), 1, "{arguments:?}");
    }
    // The order is that of the list.
    for pids in [format!("{own},1"), format!("1,{own}")] {
        for arguments in [
            &["-q", &pids, "-o", "pid="][..],
            &["q", &pids, "o", "pid="],
            &["--quick-pid", &pids, "--fields", "pid", "--no-headers"],
        ] {
            let text = output(&[&["ps"], arguments].concat());
            let shown: Vec<_> = text.split_whitespace().collect();
            assert_eq!(shown.join(","), pids, "{arguments:?}");
        }
    }
    for arguments in [
        &["ps", "extra"][..],
        &["ps", "-f", "extra"],
        &["ps", "auxz"],
    ] {
        let output = run(arguments);
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains("type aux, ax"), "{arguments:?}: {message}");
    }
}

/// `--fields`, and no option at all, print fastproc's own table; so do its own options, if no option of ps(1) names
/// columns.
#[test]
fn the_arguments_choose_the_table_of_ps_or_our_own() {
    let own = std::process::id().to_string();
    let heading = |arguments: &[&str]| {
        let text = output(&[&["ps"], arguments].concat());
        text.lines().next().expect("a heading").to_owned()
    };
    for arguments in [
        &[][..],
        &["--top", "2"],
        &["--top", "2", "--sort", "-rss"],
        &["--filter", "pid > 0", "-u", "root,65534"],
        &["--threads", "--top", "1"],
        &["--fields", "pid,vsize", "-p", &own],
    ] {
        let heading = heading(arguments);
        assert!(
            heading.contains("VSIZE") || heading.contains("ELAPSED"),
            "{heading}"
        );
    }
    for (arguments, headings) in [
        (
            &["aux"][..],
            "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND",
        ),
        (
            &["aux", "--top", "2"],
            "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND",
        ),
        (&["-ef"], "UID PID PPID C STIME TTY TIME CMD"),
        (&["-p", &own], "PID TTY TIME CMD"),
        (&["-e", "--sort", "-rss"], "PID TTY TIME CMD"),
        (&["-eL"], "PID LWP TTY TIME CMD"),
        (&["-o", "pid,vsz", "--filter", "pid > 0"], "PID VSZ"),
    ] {
        let heading = heading(arguments);
        let words: Vec<_> = heading.split_whitespace().collect();
        assert_eq!(words.join(" "), headings, "{arguments:?}");
    }
}

#[test]
fn processes_are_selected_as_in_ps() {
    let testbed = Testbed::open(&Options::only(["threads-8", "zombie", "pidns-3"]))
        .expect("the testbed opens");
    let pids: Vec<_> = testbed
        .processes()
        .iter()
        .map(|process| process.pid.to_string())
        .collect();
    let shown = |arguments: &[&str]| {
        let text = run(&[
            &[
                "ps",
                "--quiet",
                "--no-headers",
                "--fields",
                "pid",
                "--sort",
                "pid",
            ],
            arguments,
        ]
        .concat());
        let text = String::from_utf8(text.stdout).expect("text");
        text.lines()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let mut sorted = pids.clone();
    sorted.sort_by_key(|pid| pid.parse::<u32>().expect("a pid"));
    assert_eq!(shown(&["-p", &pids.join(",")]), sorted);
    assert_eq!(shown(&["-p", &pids.join("\n")]), sorted);
    let each: Vec<_> = pids.iter().flat_map(|pid| ["-p", pid]).collect();
    assert_eq!(shown(&each), sorted);
    // Lists are joined, and a filter removes from them.
    let both = shown(&["-p", &pids[0], "-C", "no such name"]);
    assert_eq!(both, [pids[0].clone()]);
    let none = shown(&["-p", &pids[0], "--filter", "pid == 0"]);
    assert!(none.is_empty());
    let name = std::fs::read_to_string("/proc/self/comm").expect("/proc is mounted");
    assert!(shown(&["-C", name.trim()]).contains(&std::process::id().to_string()));
    let ours = shown(&["-u", &rustix::process::geteuid().as_raw().to_string()]);
    assert!(ours.contains(&std::process::id().to_string()));
}

#[test]
fn a_tree_has_children_below_their_parents() {
    let mut child = Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("sleep(1) is there");
    let (parent, child_pid) = (std::process::id().to_string(), child.id().to_string());
    let pids = format!("{parent},{child_pid}");
    // spawn() may return before the process has its name.
    let text = output(&[
        "ps",
        "--quiet",
        "--no-headers",
        "--tree",
        "-p",
        &pids,
        "--fields",
        "pid,comm",
        "--sort",
        "-pid",
    ]);
    child.kill().expect("the child is killed");
    child.wait().expect("it ends");
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    assert!(lines[0].starts_with(&parent), "{text}");
    assert!(
        lines[1].starts_with(&child_pid) && lines[1].contains(r" \_ "),
        "{text}"
    );
    let output = run(&["ps", "--tree", "--threads"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn several_keys_decide_the_order() {
    let rows = rows(&["--fields", "user,ppid,pid", "--sort", "user,-ppid,-pid"]);
    let keys: Vec<_> = rows
        .iter()
        .map(|row| {
            let number = |key| -row[key].as_i64().expect("a number");
            (
                row["user"].as_str().expect("a name").to_owned(),
                number("ppid"),
                number("pid"),
            )
        })
        .collect();
    assert!(keys.is_sorted(), "{keys:?}");
}

#[test]
fn rates_take_an_interval() {
    for arguments in [
        &["ps", "--filter", "pid > 0 && read/s > 1"][..],
        &["ps", "--sort", "pid,-minflt/s"],
    ] {
        let output = run(arguments);
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("--interval 1"), "{message}");
    }
    let interval = [
        "--interval",
        "0.05",
        "--count",
        "1",
        "--filter",
        "minflt/s >= 0",
        "--sort",
        "-minflt/s",
    ];
    assert!(!rows(&[&["--fields", "pid"], &interval[..]].concat()).is_empty());
}
