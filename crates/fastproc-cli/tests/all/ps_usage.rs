//! Mistakes in options, help, and exit statuses.

use std::process::Command;

use crate::common::{output, rows, run};
use fastproc_testbed::{Folder, Sleepers, gate, needs};

/// The exit status and the message of a failing call.
#[track_caller]
fn refused(arguments: &[&str]) -> (i32, String) {
    let output = run(arguments);
    let code = output.status.code().expect("it ends by itself");
    (code, String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn mistakes_are_told() {
    for (arguments, says) in [
        (
            &["ps", "--fields", "pid,rsss"][..],
            "there is no field 'rsss'; did you mean 'rss'?",
        ),
        (
            &["ps", "-o", "pid,rsss"],
            "there is no column 'rsss'; did you mean 'rss'?",
        ),
        (&["ps", "-o", "pid,lxc"], "ps(1) has a column 'lxc'"),
        (&["ps", "-o", "pid:x"], "-o comm:20"),
        (&["ps", "-m"], "there is no option -m; type -L"),
        (&["ps", "-e", "--nosuch"], "there is no option --nosuch"),
        (&["ps", "--filtr", "pid"], "did you mean --filter?"),
        (
            &["ps", "-fu", "no-such-user"],
            "there is no user 'no-such-user'",
        ),
        (
            &["ps", "-t", "no-such-tty"],
            "there is no terminal 'no-such-tty'",
        ),
        (
            &["ps", "aux", "--top", "3"],
            "'aux' chooses the output of ps(1), and --top chooses fastproc's",
        ),
        (&["ps", "-eo", "pid", "--fields", "rss"], "'-o' chooses"),
        (&["ps", "-f", "u"], "each name a set of columns"),
        (&["ps", "axm"], "type H"),
        (
            &["ps", "--sort", "-cpuu"],
            "there is no field 'cpuu'; did you mean 'cpu'?",
        ),
        (&["ps", "--sort", ""], "there is no field ''"),
        (
            &["ps", "--filter", "pid > 1 && rss > 5X"],
            "    pid > 1 && rss > 5X\n                     ^",
        ),
        (&["ps", "--filter", ""], "expected a field, ! or ("),
        (&["ps", "--source", "bfp"], "bpf"),
        (&["ps", "--format", "xml"], "ndjson"),
        (
            &["ps", "--top", "x"],
            "--top needs a number, such as 10; 'x' is not a number",
        ),
        (&["exits", "--count", "-1"], "'-1' is a negative number"),
        (&["ps", "-o"], "-o needs a value: -o <COLUMN,…>"),
        (&["ps", "-LT"], "leave out one of them"),
        (&["ps", "-y"], "-y needs -l"),
        (&["ps", "--exited"], "--exited needs --interval"),
        (&["cgroups", "--count", "1"], "--count needs --interval"),
        (&["top", "--json"], "--json needs --once"),
        (&["serve", "--json"], "--json needs --status"),
        (&["ps", "--version"], "type fastproc --version"),
        (&["version"], "type fastproc --version"),
        (
            &["ps", "--filter", "pid > 1", "--filter", "pid < 9"],
            "--filter is given twice; join the two expressions with &&",
        ),
        (&["cgroups", "foo"], "'foo' is not expected here"),
        (&["top", "foo", "bar"], "'bar' is not expected here"),
        (&["ps", "nginx"], "type --search nginx"),
        (&["ps", "top"], "type --search top"),
        (
            &["exits", "--interval", "1"],
            "as they exit; type fastproc ps",
        ),
        (&["serve", "--listen", "9256"], "type :9256"),
        (
            &["cgroups", "--pid", "4194304"],
            "process 4194304 does not exist",
        ),
        (
            &["ps", "aux", "--search", "x"],
            "--search chooses fastproc's",
        ),
        (&["run", "ps", "aux"], "type fastproc run -- ps"),
        (&["run", "--json", "--", "ps"], "needs --system status"),
        (
            &["run", "--library", "/nowhere", "--", "ps"],
            "in /nowhere, which --library names",
        ),
        (&["cat", ""], "PATH must not be empty"),
        (
            &["ps", "-q", "1", "--sort", "pid"],
            "-q shows processes in the order of its list",
        ),
        (&["ps", "-q", "1", "-e"], "or type -p"),
        (
            &["exits", "--filter", "pid > 1 && rss > 1"],
            "rss is not known of an exited process",
        ),
        (&["cgroups", "--filter", "path =~ '('"], "unclosed group"),
        (
            &["cgroups", "--filter", "(memory > 1M || cpu > 5)"],
            "give one, as in --interval 1\n\n    (memory > 1M || cpu > 5)\n                    ^",
        ),
        (
            &["cgroups", "--sort", "-memroy"],
            "there is no field 'memroy'; did you mean 'memory'?",
        ),
        (
            &["verify", "--rounds", "0"],
            "--rounds needs a number of at least 1",
        ),
        (&["exits", "--format", "xml"], "json, ndjson"),
        (
            &["cat", "--stat-irqs-latency", "1e300", "stat"],
            "the duration is too long",
        ),
        (
            &["serve", "--status", "--socket", "/etc/passwd"],
            "/etc/passwd is not a socket",
        ),
        (&["ps", "--interval", "0"], "0.01"),
        (&["ps", "--interval", "x"], "as in 500ms"),
        (&["ps", "--count", "3"], "--count needs --interval"),
        (&["ps", "--interval", "1", "--count", "0"], "--count"),
        (&["ps", "extra"], "type aux, ax"),
        (&["ps", "-f", "extra"], "type aux, ax"),
        (&["ps", "auxz"], "type aux, ax"),
        (&["ps", "--filter", "pid > 0 && read/s > 1"], "--interval 1"),
        (&["ps", "--sort", "pid,-minflt/s"], "--interval 1"),
        (
            &["ps", "--exited", "--threads", "--interval", "1"],
            "--threads",
        ),
        (&["ps", "-eLf", "--exited", "--interval", "1"], "--threads"),
        (
            &["exits", "--filter", "no_such_field == 1"],
            "no_such_field",
        ),
        (&["verify", "--source", "kmem"], "kmem"),
        (&["cat", "--all", "maps"], "maps"),
        (&["doctor", "--yaml"], "--yaml"),
        (&["sp"], "'sp'"),
    ] {
        let (code, message) = refused(arguments);
        assert_eq!(code, 2, "{arguments:?}: {message}");
        assert!(message.contains(says), "{arguments:?}: {message}");
    }
}

#[test]
fn only_what_is_near_is_suggested() {
    for arguments in [
        &["ps", "--reverse"][..],
        &["exits", "--interval"],
        &["nothing"],
    ] {
        let (_, message) = refused(arguments);
        assert!(message.contains("there is no "), "{message}");
        assert!(!message.contains("did you mean"), "{message}");
    }
}

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

#[test]
fn nothing_is_an_answer() {
    let (code, message) = refused(&["ps", "--filter", "pid == 0"]);
    assert_eq!((code, message.as_str()), (1, ""));
    let (code, _) = refused(&[
        "ps",
        "--filter",
        "pid == 0",
        "--interval",
        "0.02",
        "--count",
        "2",
    ]);
    assert_eq!(code, 1);
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
