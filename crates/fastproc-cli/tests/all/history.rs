//! What `fastproc record` has kept, as its readers see it.

use std::{fs, process::Command};

use fastproc_testbed::Folder;
use serde_json::Value;

use crate::common::{output, run};

/// A history of two seconds, from files of `/proc`, which every user may read.
struct Recorded(Folder);

impl Recorded {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(more: &[&str]) -> Self {
        let history = Self(Folder::new("history"));
        let path = history.0.to_str().expect("UTF-8");
        // On a busy machine a walk may be late.
        let arguments = "record --for 5s --host here --source procfs --leave 0".split(' ');
        let arguments = arguments.chain(more.iter().copied()).chain([path]);
        output(&arguments.collect::<Vec<_>>());
        history
    }

    fn looking<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let folder = self.0.to_str().expect("UTF-8");
        [arguments, &["--history", folder]].concat()
    }

    /// The last time without a gap.
    fn span(&self) -> Option<Value> {
        let report = run(&self.looking(&["history", "--json"])).stdout;
        let report: Value = serde_json::from_slice(&report).ok()?;
        report["hosts"][0]["recorded"].as_array()?.last().cloned()
    }

    /// The last second of it.
    fn last(&self) -> String {
        let span = self.span().expect("it has one");
        span["to"].as_str().expect("a time").into()
    }
}

/// Status and standard error.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(arguments);
    let errors = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), errors)
}

#[test]
fn the_processes_of_a_time_are_shown_in_each_format() {
    let history = Recorded::new();
    let last = history.last();
    let at = |more: &[&str]| output(&history.looking(&[&["ps", "--at", &last], more].concat()));
    let own = std::process::id().to_string();
    let json: Value = serde_json::from_str(&at(&["--json", "--pid", &own])).expect("JSON");
    assert_eq!(
        (&json["source"], &json["time"]),
        (&"history".into(), &last.as_str().into())
    );
    assert_eq!(json["processes"][0]["pid"].to_string(), own);
    let csv = at(&[
        "--format",
        "csv",
        "--fields",
        "pid,comm,cmdline,user",
        "--pid",
        &own,
    ]);
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "pid,comm,cmdline,user");
    assert!(
        lines[1].starts_with(&format!("{own},")) && lines.len() == 2,
        "{csv}"
    );
    assert!(at(&["aux"]).starts_with("USER       PID %CPU"));
    assert!(at(&["--tree", "-e"]).lines().count() > 2);
    let none = run(&history.looking(&["ps", "--at", &last, "--filter", "comm == nothing"]));
    assert_eq!(none.status.code(), Some(1));
}

#[test]
fn a_window_has_rates_and_sums_that_are_less_than_those_of_the_whole_life() {
    let history = Recorded::new();
    let (own, last) = (std::process::id().to_string(), history.last());
    let rows = |time: &[&str], fields: &str| {
        let arguments = [&["ps", "--json", "--pid", &own, "--fields", fields], time].concat();
        let json: Value =
            serde_json::from_str(&output(&history.looking(&arguments))).expect("JSON");
        json["processes"][0].clone()
    };
    let window = rows(&["--from", "2000-01-01", "--quiet"], "time,pcpu,read/s");
    let life = rows(&["--at", &last], "time");
    assert!(window["pcpu"].is_number());
    assert!(window["time_ns"].as_u64() <= life["time_ns"].as_u64());
}

#[test]
fn cgroups_of_a_time_have_totals_and_those_of_a_window_shares() {
    let history = Recorded::new();
    let last = history.last();
    let cgroups = |arguments: &[&str]| -> Value {
        let arguments = [&["cgroups", "--json"], arguments].concat();
        serde_json::from_str(&output(&history.looking(&arguments))).expect("JSON")
    };
    let moment = cgroups(&["--at", &last]);
    assert_eq!(moment["time"], last.as_str());
    let window = cgroups(&["--from", "2000-01-01", "--quiet"]);
    for (of, key) in [(&moment, "cpu_time_ns"), (&window, "cpu")] {
        let rows = of["cgroups"].as_array().expect("a list");
        let root = rows.iter().find(|row| row["path"] == "/");
        assert!(root.expect("the root has a row")[key].is_number(), "{of}");
    }
    let table = output(&history.looking(&["cgroups", "--at", &last, "--tree", "--top", "3"]));
    assert!(table.trim_start().starts_with("TIME "), "{table}");
    let csv = ["--fields", "path,processes", "--format", "csv"];
    let csv = output(&history.looking(&[&["cgroups", "--at", &last], &csv[..]].concat()));
    assert!(csv.starts_with("path,processes\n/"), "{csv}");
}

#[test]
fn waits_are_counted_and_events_are_told() {
    let mut busy = Command::new("sh");
    let mut busy = busy
        .args(["-c", "while :; do :; done"])
        .spawn()
        .expect("sh is there");
    let history = Recorded::with(&["--waits"]);
    busy.kill()
        .and_then(|()| busy.wait())
        .expect("it can be killed");
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&output(&history.looking(arguments))).expect("JSON")
    };
    let waits = json(&["history", "waits", "--from", "-1h", "--json"]);
    let rows = waits["waits"].as_array().expect("a list");
    let runs = |row: &&Value| row["state"] == "R" && row["comm"] == "sh";
    let row = rows.iter().find(runs).expect("the shell runs");
    assert!(row["times"].as_u64() > Some(0), "{row}");
    let table = output(&history.looking(&["history", "waits"]));
    assert!(
        table.trim_start().starts_with("TIMES STATE SYSCALL WCHAN"),
        "{table}"
    );
    let none = run(&history.looking(&["history", "waits", "--to", "2000-01-01"]));
    assert_eq!(none.status.code(), Some(1));
    let events = &json(&["history", "--json"])["hosts"][0]["events"];
    let events = events.as_array().expect("a list");
    let kinds: Vec<_> = events.iter().map(|event| &event["event"]).collect();
    assert_eq!(
        (kinds[0], kinds[kinds.len() - 1]),
        (&"started".into(), &"stopped".into())
    );
    let text = output(&history.looking(&["history"]));
    // On a busy machine it also says that exits are missing.
    assert!(text.contains(" stopped: it was told to end"), "{text}");
}

#[test]
fn the_command_refuses_fields_and_times_that_a_history_lacks() {
    let history = Recorded::new();
    // A tilde is a blank within a word.
    for (line, expected) in [
        (
            "ps --at 2001-01-01",
            "nothing was recorded at 2001-01-01 00:00:00; the next is of 2",
        ),
        (
            "ps --at -1s --fields pid,exe",
            "the history does not keep exe; it has these fields:",
        ),
        (
            "ps --at -1s --filter oom_score~>~1",
            "the history does not keep oom_score",
        ),
        ("ps --at -1s -eLf", "a history has no threads; leave out"),
        (
            "ps --at -1s --fields pid,read/s --sort read/s",
            "cannot sort by the rate",
        ),
        ("ps --at 25:00", "--at '25:00': give a time of day"),
        ("ps", "--history needs a time; give --at"),
        (
            "ps --at -1s --exited",
            "--at <TIME> and --exited cannot be combined",
        ),
        (
            "cgroups --at -1s --count 2",
            "--at <TIME> and --count <N> cannot be combined",
        ),
        (
            "ps --from -1h --interval 1",
            "a history cannot be shown again and again",
        ),
        (
            "ps --from -1s --to -2s",
            "the time of --to is not later than that of --from",
        ),
        (
            "history waits --from -1s --to -2s",
            "the time of --to is not later than that of --from",
        ),
        (
            "history save --from -1s --to -2s hours",
            "the time of --to is not later than that of --from",
        ),
        ("exits", "--history needs a time; give --from"),
        (
            "cgroups --at -1s --fields path,anon",
            "the history does not keep anon; it has these fields:",
        ),
        (
            "cgroups --at -1s --sort -cpu",
            "cpu is known only over an interval: give --from instead of --at",
        ),
        (
            "top --once -o pid,exe",
            "the history does not keep exe; it has these fields:",
        ),
        (
            "top --once --sort -oom_score",
            "the history does not keep oom_score",
        ),
        (
            "top --once --filter fds~>~3",
            "the history does not keep fds",
        ),
        (
            "exits --from 2001-01-01 --to 2001-01-02",
            "nothing was recorded at 2001-01-01 00:00:00; the next is of 2",
        ),
        (
            "exits --from -1h --fields rss",
            "the history does not keep rss",
        ),
        (
            "ps --at -1s --host other",
            "the history has no host other; it has here",
        ),
    ] {
        let words: Vec<_> = line.split(' ').map(|word| word.replace('~', " ")).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let (status, errors) = refused(&history.looking(&words));
        assert_eq!(status, Some(2), "{line}: {errors}");
        let begins = format!("fastproc: {expected}");
        assert!(errors.starts_with(&begins), "{line}: {errors}");
    }
    let mut nowhere = Command::new(env!("CARGO_BIN_EXE_fastproc"));
    let nowhere = nowhere.args(history.looking(&["ps", "--at", "03:12"]));
    let nowhere = nowhere.env("TZ", "Nonsense").output().expect("it starts");
    let errors = String::from_utf8_lossy(&nowhere.stderr);
    let expected = "fastproc: --at '03:12': TZ is 'Nonsense', which is no time zone";
    assert!(errors.starts_with(expected), "{errors}");
    let (status, errors) = refused(&["history", "--history", "/nowhere"]);
    assert_eq!(status, Some(2));
    assert!(
        errors.starts_with("fastproc: /nowhere holds no history; fastproc record writes one"),
        "{errors}"
    );
}

#[test]
fn check_names_the_file_that_is_damaged() {
    let history = Recorded::new();
    let folder = Folder::new("damaged");
    let open = folder.join("open");
    fs::create_dir(&open).expect("a folder");
    for file in fs::read_dir(history.0.join("open")).expect("a folder") {
        let file = file.expect("a file");
        fs::copy(file.path(), open.join(file.file_name())).expect("a copy");
    }
    let path = folder.to_str().expect("UTF-8");
    assert!(output(&["history", "check", "--history", path]).ends_with(" 0 of them damaged\n"));
    let files = fs::read_dir(&open)
        .expect("a folder")
        .map(|file| file.expect("a file").path());
    let is_of_processes = |path: &std::path::PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("processes-"))
    };
    let file = files
        .filter(|path| is_of_processes(path))
        .max()
        .expect("there is one");
    let mut bytes = fs::read(&file).expect("a file");
    bytes[20] ^= 0x10;
    fs::write(&file, bytes).expect("a file");
    let checked = run(&["history", "check", "--history", path]);
    assert_eq!(checked.status.code(), Some(1));
    let text = String::from_utf8(checked.stdout).expect("text");
    let name = file.file_name().expect("a name").to_string_lossy();
    assert!(
        text.starts_with(&format!("open/{name}: row group 0 is damaged")),
        "{text}"
    );
    let last = history.last();
    let (status, errors) = refused(&["ps", "--at", &last, "--history", path]);
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("what was recorded at that time is damaged"),
        "{errors}"
    );
    // Only processes are.
    let (status, errors) = refused(&["cgroups", "--at", &last, "--history", path]);
    assert_eq!(status, Some(0), "{errors}");
    assert!(
        errors.starts_with("fastproc: processes are not counted: open/processes-"),
        "{errors}"
    );
    let save = "history save --from 2000-01-01 --to now kept --history".split(' ');
    let save: Vec<_> = save.chain([path]).collect();
    let text = output(&save);
    assert!(text.ends_with(" 1 of them damaged\n"), "{text}");
}

#[test]
fn a_window_is_saved_and_is_a_history() {
    let history = Recorded::new();
    let saved = history.looking(&[
        "history",
        "save",
        "--from",
        "2000-01-01",
        "--to",
        "now",
        "kept",
    ]);
    let text = output(&saved);
    let path = history.0.join("saved/kept");
    assert!(text.starts_with(&format!("{}: ", path.display())), "{text}");
    let path = path.to_str().expect("UTF-8");
    assert!(
        output(&["ps", "--at", &history.last(), "--history", path, "-e"])
            .lines()
            .count()
            > 1
    );
    let (status, errors) = refused(&saved);
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("kept exists: give another name"),
        "{errors}"
    );
}
