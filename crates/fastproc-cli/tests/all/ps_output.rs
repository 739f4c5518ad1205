//! Output formats of `fastproc ps`: each can be parsed again, whatever names processes have.

use std::{collections::BTreeMap, fs, process::Command};

use crate::common::{bytes, fastproc, output, rows, unescape};
use fastproc_testbed::{Options, Testbed, gate};
use serde_json::Value;

/// All processes with unusual names.
const NAMES: [&str; 12] = [
    "name-empty",
    "name-spaces",
    "name-parentheses",
    "name-closing",
    "name-newline",
    "name-backslash",
    "name-tab",
    "name-not-utf8",
    "name-utf8-cut",
    "name-terminal",
    "name-quotes",
    "name-digits",
];

/// The fields that the help lists.
fn all_fields() -> Vec<String> {
    let help = output(&["ps", "--help"]);
    let (_, fields) = help
        .split_once("Fields:\n")
        .expect("the help lists the fields");
    fields
        .lines()
        .take_while(|line| !line.contains("fields marked"))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().expect("a name").to_owned())
        .collect()
}

/// A filter for these processes, and their names by pid from the kernel.
fn named(testbed: &Testbed) -> (String, BTreeMap<u64, Vec<u8>>) {
    let names: BTreeMap<u64, Vec<u8>> = testbed
        .processes()
        .iter()
        .map(|process| {
            let mut comm =
                fs::read(format!("/proc/{}/comm", process.pid)).expect("/proc shows the process");
            comm.pop();
            (process.pid.into(), comm)
        })
        .collect();
    let filter: Vec<_> = names.keys().map(|pid| format!("pid == {pid}")).collect();
    (filter.join(" || "), names)
}

/// Fields that may be unknown for a running process.
const MAY_BE_UNKNOWN: [&str; 19] = [
    "cgroup_memory_max_bytes",
    "cgroup_memory_used",
    "cgroup_cpu_max",
    "cgroup_tasks_max",
    "cgroup_tasks_used",
    "unit",
    "container",
    "container_name",
    "pod",
    "pod_uid",
    "namespace",
    "image",
    "runtime",
    "machine",
    "label",
    "event",
    "ended",
    "status",
    "final",
];

#[test]
fn every_field_can_be_shown_in_every_form() {
    let fields = all_fields();
    assert!(fields.len() > 100, "{fields:?}");
    let own = format!("pid == {}", std::process::id());
    let columns = fields.join(",");
    let rows = rows(&["--fields", &columns, "--filter", &own]);
    let object = rows[0].as_object().expect("an object");
    assert_eq!(rows.len(), 1);
    assert_eq!(object.len(), fields.len());
    // Nothing of one's own process is hidden. But rates need an interval, the process has not exited, and not every
    // process has a systemd unit, a container, limits of its cgroup or a label of a security module.
    let unknown: Vec<_> = object
        .iter()
        .filter(|(_, value)| value.is_null())
        .map(|(key, _)| key)
        .collect();
    assert!(
        unknown
            .iter()
            .all(|key| key.ends_with("_per_second") || MAY_BE_UNKNOWN.contains(&key.as_str())),
        "{unknown:?}"
    );

    let text = output(&[
        "ps", "--format", "csv", "--fields", &columns, "--filter", &own,
    ]);
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let header = csv.headers().expect("a header").clone();
    assert_eq!(header.len(), fields.len());
    for (field, key) in fields.iter().zip(&header) {
        assert!(key.starts_with(field.as_str()), "{field} is not {key}");
        assert!(object.contains_key(key), "{key}");
    }
    assert_eq!(csv.records().count(), 1);

    let table = output(&["ps", "--fields", &columns, "--filter", &own]);
    assert_eq!(table.lines().count(), 2);
}

#[test]
fn json_says_how_the_snapshot_was_made() {
    let text = output(&["ps", "--format", "json", "--top", "3"]);
    assert_eq!(text.lines().count(), 1);
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["processes"].as_array().map(Vec::len), Some(3));
    assert!(document["read"].as_u64() > Some(3));
    assert!(document["took_ns"].as_u64() > Some(0));
    assert!(["bpf", "bpf-iter", "procfs"].contains(&document["source"].as_str().expect("a name")));
}

#[test]
fn an_object_of_json_has_a_key_once() {
    for format in ["json", "ndjson"] {
        let text = output(&[
            "ps",
            "--format",
            format,
            "--top",
            "1",
            "--fields",
            "pid,euid,pid,uid",
        ]);
        for key in ["\"pid\":", "\"euid\":"] {
            assert_eq!(text.matches(key).count(), 1, "{text}");
        }
    }
}

#[test]
fn odd_names_survive_in_json() {
    let testbed = Testbed::open(&Options::only(NAMES)).expect("the testbed opens");
    let (filter, names) = named(&testbed);
    let rows = rows(&["--fields", "pid,comm", "--filter", &filter]);
    let shown: BTreeMap<u64, Vec<u8>> = rows
        .iter()
        .map(|row| (row["pid"].as_u64().expect("a pid"), bytes(&row["comm"])))
        .collect();
    assert_eq!(shown, names);
    assert!(
        rows.iter().any(|row| row["comm"].is_object()),
        "no name was not UTF-8"
    );
}

#[test]
fn odd_names_survive_in_csv() {
    let testbed = Testbed::open(&Options::only(NAMES)).expect("the testbed opens");
    let (filter, names) = named(&testbed);
    let text = output(&[
        "ps", "--format", "csv", "--fields", "comm,pid", "--filter", &filter,
    ]);
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let shown: BTreeMap<u64, Vec<u8>> = csv
        .records()
        .map(|record| {
            let record = record.expect("a record");
            (record[1].parse().expect("a pid"), unescape(&record[0]))
        })
        .collect();
    assert_eq!(shown, names);
}

#[test]
fn odd_names_do_nothing_to_a_terminal() {
    let testbed = Testbed::open(&Options::only(NAMES)).expect("the testbed opens");
    let (filter, names) = named(&testbed);
    let text = output(&["ps", "--fields", "pid,comm", "--filter", &filter]);
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n'),
        "{text:?}"
    );
    assert_eq!(text.lines().count(), names.len() + 1);
    for line in text.lines().skip(1) {
        let line = line.trim_start();
        let (pid, name) = line.split_once(' ').unwrap_or((line, ""));
        let name = name.strip_prefix(' ').unwrap_or(name);
        assert_eq!(unescape(name), names[&pid.parse().expect("a pid")]);
    }
}

#[test]
fn odd_arguments_survive() {
    let labels = ["long-cmdline", "empty-arguments", "own-title", "zombie"];
    let testbed = Testbed::open(&Options::only(labels)).expect("the testbed opens");
    assert!(testbed.absent().is_empty(), "{:?}", testbed.absent());
    let (filter, names) = named(&testbed);
    let columns = ["--fields", "pid,cmdline,comm", "--filter", &filter];
    let rows = rows(&columns);
    let text = output(&[&["ps", "--format", "csv"], &columns[..]].concat());
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let records: BTreeMap<u64, Vec<Vec<u8>>> = csv
        .records()
        .map(|record| {
            let record = record.expect("a record");
            let arguments = record[1].split(' ').map(unescape).collect();
            (record[0].parse().expect("a pid"), arguments)
        })
        .collect();
    assert_eq!(rows.len(), names.len());
    for row in &rows {
        let pid = row["pid"].as_u64().expect("a pid");
        let line = fs::read(format!("/proc/{pid}/cmdline")).expect("/proc shows the process");
        let arguments: Vec<_> = row["cmdline"]
            .as_array()
            .expect("arguments")
            .iter()
            .map(bytes)
            .collect();
        if line.is_empty() {
            assert!(arguments.is_empty());
            assert_eq!(records[&pid], [b""]);
        } else {
            let line = line.strip_suffix(b"\0").unwrap_or(&line);
            assert_eq!(arguments.join(&0), line);
            assert_eq!(records[&pid], arguments);
        }
    }
    // A zombie has a name but no arguments.
    let table = output(&["ps", "--fields", "cmdline", "--filter", "state == Z"]);
    assert!(
        table
            .lines()
            .any(|line| line.starts_with('[') && line.ends_with("] <defunct>")),
        "{table}"
    );
}

#[test]
fn a_line_is_no_wider_than_the_terminal() {
    let testbed = Testbed::open(&Options::only(["long-cmdline", "name-terminal"]))
        .expect("the testbed opens");
    let (filter, _) = named(&testbed);
    let narrow = |columns: &str, width: &str| {
        let mut command = fastproc(&["ps", "--fields", columns, "--filter", &filter]);
        let output = command
            .env("COLUMNS", width)
            .output()
            .expect("the program starts");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = narrow("pid,comm,cmdline", "60");
    let widths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
    assert!(widths.iter().all(|&width| width <= 60), "{text}");
    assert!(widths.contains(&60) && text.contains('…'), "{text}");
    // Only the last column is cut.
    let text = narrow("cmdline,pid", "60");
    assert!(text.lines().any(|line| line.len() > 100_000));
}

#[test]
fn colour_is_for_terminals_and_those_who_want_it() {
    if !gate::programs(&["script"]) {
        return;
    }
    let command = format!("{} ps --top 1", env!("CARGO_BIN_EXE_fastproc"));
    let on_terminal = |no_colour: Option<&str>| {
        let mut script = Command::new("script");
        script
            .args(["-qec", &command, "/dev/null"])
            .env("TERM", "xterm")
            .env_remove("NO_COLOR");
        if let Some(value) = no_colour {
            script.env("NO_COLOR", value);
        }
        let output = script.output().expect("script is installed");
        String::from_utf8_lossy(&output.stdout).contains('\x1b')
    };
    assert!(on_terminal(None));
    assert!(!on_terminal(Some("1")));
    assert!(on_terminal(Some("")));
    assert!(!output(&["ps", "--top", "1"]).contains('\x1b'));
}

#[test]
fn with_an_interval_rows_say_when() {
    let repeated = [
        "--interval",
        "0.05",
        "--count",
        "3",
        "--top",
        "2",
        "--fields",
        "pid,pcpu,minflt/s,pcpu_user,read/s",
    ];
    let rows = rows(&repeated);
    assert_eq!(rows.len(), 6);
    let times: Vec<_> = rows
        .iter()
        .map(|row| row["boottime_ns"].as_u64().expect("a time"))
        .collect();
    assert!(times[1] < times[2] && times[3] < times[4], "{times:?}");
    assert!(
        rows.iter()
            .all(|row| row["pcpu"].is_f64() && row["minflt_per_second"].is_f64())
    );

    let text = output(&[&["ps", "--format", "csv"], &repeated[..]].concat());
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("boottime_ns,pid"))
            .count(),
        1
    );
    assert_eq!(text.lines().count(), 7);

    let text = output(&[&["ps", "--format", "json"], &repeated[..]].concat());
    let documents: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(documents.len(), 3);

    let text = output(&[&["ps"], &repeated[..]].concat());
    assert_eq!(text.lines().filter(|line| line.contains("%CPU")).count(), 3);
}

#[test]
fn threads_have_rows_of_their_own() {
    let testbed = Testbed::open(&Options::only([
        "threads-8",
        "threads-mixed",
        "dead-leader",
    ]))
    .expect("the testbed opens");
    for process in testbed.processes() {
        let filter = format!("pid == {}", process.pid);
        let rows = rows(&[
            "--threads",
            "--sort",
            "tid",
            "--fields",
            "pid,tid,comm,pcpu,policy,rss",
            "--filter",
            &filter,
        ]);
        let mut threads: Vec<u64> = fs::read_dir(format!("/proc/{}/task", process.pid))
            .expect("/proc shows the process")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .parse()
                    .expect("a tid")
            })
            .collect();
        threads.sort_unstable();
        let shown: Vec<_> = rows
            .iter()
            .map(|row| row["tid"].as_u64().expect("a tid"))
            .collect();
        assert_eq!(shown, threads, "{}", process.label);
        for row in &rows {
            let mut comm = fs::read(format!("/proc/{}/task/{}/comm", process.pid, row["tid"]))
                .expect("/proc shows the process");
            comm.pop();
            assert_eq!(bytes(&row["comm"]), comm, "{}", process.label);
        }
    }
    let rates = rows(&[
        "--threads",
        "--interval",
        "0.05",
        "--count",
        "1",
        "--fields",
        "tid,pcpu,minflt/s",
    ]);
    assert!(rates.iter().all(|row| row["pcpu"].is_f64()));
}

/// After being stopped, a command continues with the next interval, without those that it missed.
#[test]
fn missed_intervals_are_skipped() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::{
        io::{BufRead, BufReader},
        process::Stdio,
        thread::sleep,
        time::Duration,
    };

    let own = format!("pid == {}", std::process::id());
    let mut child = fastproc(&[
        "ps",
        "--interval",
        "0.2",
        "--count",
        "8",
        "--format",
        "ndjson",
        "--fields",
        "pid",
        "--filter",
        &own,
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .expect("it can be started");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let time = |line: std::io::Result<String>| {
        let row: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        row["boottime_ns"].as_u64().expect("a time")
    };
    let mut times = vec![time(lines.next().expect("a row"))];
    let pid = Pid::from_child(&child);
    for _ in 0..3 {
        times.push(time(lines.next().expect("a row")));
        kill_process(pid, Signal::STOP).expect("the signal is sent");
        sleep(Duration::from_millis(330));
        kill_process(pid, Signal::CONT).expect("the signal is sent");
    }
    times.extend(lines.map(time));
    assert!(child.wait().expect("it ends").success());
    let gaps: Vec<_> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / 1_000_000)
        .collect();
    // However late a snapshot is, the next one comes at least half an interval later.
    assert!(gaps.iter().all(|&gap| gap >= 100), "{gaps:?} ms");
}
