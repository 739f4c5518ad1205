//! The command in its own pid namespace, as in a container.

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Output, Stdio},
};

use crate::common::{Lines, output, pids_of_testbed, rows};
use fastproc_testbed::{Folder, assert_passed, gate, name_of, needs};
use serde_json::Value;

const FASTPROC: &str = env!("CARGO_BIN_EXE_fastproc");
const UNSHARE: [&str; 3] = ["unshare", "--pid", "--fork"];
const OWN_PROC: [&str; 1] = ["--mount-proc"];

#[track_caller]
fn run(words: &[&str]) -> Output {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .output()
        .unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

#[track_caller]
fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The report of `doctor` in these namespaces.
fn doctor(namespaces: &[&str]) -> Value {
    json(&run(&[namespaces, &[FASTPROC, "doctor", "--json"]].concat()))
}

/// Every field of unusual processes is that of the namespace's own `/proc`, and no other process is shown.
#[test]
#[ignore = "values_are_right_in_a_pid_namespace and values_are_right_in_a_pid_namespace_within_another run it"]
fn inside() {
    let pids = pids_of_testbed();
    let report = output(&["verify", "--json", "--rounds", "3", "--pids", &pids]);
    let report: Value = serde_json::from_str(&report).expect("a report");
    assert_eq!(report["source"], "bpf-iter");
    assert_eq!(report["wrong"], 0, "{report}");
    assert_eq!(report["missing"], 0, "{report}");

    // Between the two, only the command itself starts and exits.
    let listed = |folder: &str| -> BTreeSet<u64> {
        let entries = fs::read_dir(folder).expect("a folder of numbers");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        names.collect()
    };
    let shown = rows(&[
        "--source",
        "bpf-iter",
        "--fields",
        "pid,ppid,pgrp,session,comm",
    ]);
    let others: Vec<&Value> = shown
        .iter()
        .filter(|row| row["comm"] != "fastproc")
        .collect();
    let column = |name: &str| -> BTreeSet<u64> {
        let numbers = others
            .iter()
            .map(|row| row[name].as_u64().expect("a number"));
        numbers.filter(|&number| number != 0).collect()
    };
    assert_eq!(column("pid"), listed("/proc"));
    let parents = column("ppid");
    assert!(parents.is_subset(&column("pid")), "{parents:?}");

    let threads = rows(&[
        "--source",
        "bpf-iter",
        "--threads",
        "--fields",
        "pid,tid,comm",
    ]);
    let of_many: Vec<&Value> = threads
        .iter()
        .filter(|row| row["pid"] != row["tid"])
        .collect();
    assert!(of_many.len() > 7, "a test process has eight: {threads:?}");
    for row in of_many {
        let (pid, tid) = (row["pid"].as_u64(), row["tid"].as_u64());
        let (Some(pid), Some(tid)) = (pid, tid) else {
            panic!("{row}");
        };
        if row["comm"] != "fastproc" {
            assert!(listed(&format!("/proc/{pid}/task")).contains(&tid), "{row}");
        }
    }
}

/// Runs `inside` in this many nested pid namespaces.
#[track_caller]
fn nested(times: usize) {
    needs!(gate::bpf(), gate::programs(&["unshare"]));
    let test = std::env::current_exe().expect("/proc shows this program");
    let test = test.to_str().expect("a path of UTF-8");
    let one = [&UNSHARE[..], &OWN_PROC, &["--"]].concat();
    let output = run(&[
        &one.repeat(times)[..],
        &[test, "--exact", name_of(inside), "--ignored", "--nocapture"],
    ]
    .concat());
    assert_passed(&output);
}

#[test]
fn values_are_right_in_a_pid_namespace() {
    nested(1);
}

#[test]
fn values_are_right_in_a_pid_namespace_within_another() {
    nested(2);
}

/// With the machine's `/proc`, as in some containers, the machine's processes are shown with its pids.
#[test]
fn with_the_machines_proc_nothing_is_translated() {
    needs!(gate::bpf(), gate::programs(&["unshare"]));
    let report = doctor(&UNSHARE);
    assert_eq!(report["source"], "bpf");
    let error = report["sources"][1]["error"].as_str();
    let expected = "processes of this pid namespace, but /proc shows those of the whole machine";
    assert!(
        error.is_some_and(|error| error.contains(expected)),
        "{report}"
    );
    let own = std::process::id().to_string();
    let shows_this = [
        "ps", "--source", "bpf", "--pid", &own, "--format", "ndjson", "-o", "pid",
    ];
    let output = run(&[&UNSHARE[..], &[FASTPROC], &shows_this].concat());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{{\"pid\":{own}}}\n")
    );
}

/// The `/proc` of a namespace between the machine's and the reader's has pids of its own.
#[test]
fn with_the_proc_of_a_third_namespace_it_reads_the_text() {
    needs!(gate::bpf(), gate::programs(&["unshare"]));
    let third = [&UNSHARE[..], &OWN_PROC, &["--"], &UNSHARE].concat();
    let report = doctor(&third);
    assert_eq!(report["source"], "procfs");
    for source in [0, 1] {
        let error = report["sources"][source]["error"].as_str();
        assert!(
            error.is_some_and(|error| error.contains("pid namespace")),
            "{report}"
        );
    }
}

/// A container with the machine's `/proc` in a folder, which may mount nothing.
struct Container {
    folder: Folder,
}

impl Container {
    /// `None`: not possible on this machine.
    fn new() -> Option<Self> {
        let programs = ["unshare", "setpriv", "mount"];
        (gate::bpf() && gate::programs(&programs)).then(|| Self {
            folder: Folder::new("procfs"),
        })
    }

    /// The path of the machine's `/proc` in the container.
    fn procfs(&self) -> &str {
        self.folder.to_str().expect("a path of UTF-8")
    }

    fn command(&self, words: &[&str]) -> Command {
        const START: &str = "mount --bind /proc \"$0\" && mount -t proc proc /proc && \
             exec setpriv --bounding-set=-sys_admin -- \"$@\"";
        let mut command = Command::new(UNSHARE[0]);
        command
            .args(&UNSHARE[1..])
            .args(["--kill-child", "--mount", "sh", "-c", START, self.procfs()])
            .args(words);
        command
    }

    /// The output of the command, which reads the machine's `/proc`.
    #[track_caller]
    fn output(&self, arguments: &[&str]) -> String {
        let words = [&[FASTPROC], arguments, &["--procfs", self.procfs()]].concat();
        let output = self.command(&words).output().expect("it starts");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("the output is UTF-8")
    }
}

/// BPF shows the machine's processes with the machine's pids, and every value is that of that `/proc`.
#[test]
fn procfs_may_be_elsewhere() {
    let Some(container) = Container::new() else {
        return;
    };
    let report: Value =
        serde_json::from_str(&container.output(&["doctor", "--json"])).expect("a report");
    assert_eq!(report["source"], "bpf", "{report}");

    let pids = pids_of_testbed();
    for source in ["bpf", "procfs"] {
        let of_testbed = ["verify", "--json", "--rounds", "2", "--pids", &pids];
        let report = container.output(&[&of_testbed[..], &["--source", source]].concat());
        let report: Value = serde_json::from_str(&report).expect("a report");
        assert_eq!(report["source"], source);
        assert_eq!(report["wrong"], 0, "{report}");
        assert_eq!(report["missing"], 0, "{report}");
    }

    let this = std::process::id().to_string();
    let shown = container.output(&["ps", "--pid", &this, "-o", "pid,comm", "--format", "csv"]);
    let name = fs::read_to_string("/proc/self/comm").expect("/proc is mounted");
    assert!(shown.contains(&format!("\n{this},{name}")), "{shown}");
    let screen = container.output(&["top", "-b", "-n", "1"]);
    let is_shown = |line: &str| line.split_whitespace().next() == Some(&this);
    assert!(screen.lines().any(is_shown), "{screen}");

    // Paths may be those of the machine, or those in the container.
    let inside = format!("{}/{this}/statm", container.procfs());
    let outside = format!("/proc/{this}/statm");
    for kernel in [&[][..], &["--proc"]] {
        let texts = container.output(&[&["cat", &inside, &outside], kernel].concat());
        assert_eq!(texts.lines().count(), 2, "{texts}");
    }
}

/// Exits are those of the machine, with its pids.
#[test]
fn exits_are_those_of_the_proc_elsewhere() {
    let Some(container) = Container::new() else {
        return;
    };
    let words = ["exits", "--quiet", "--format", "csv", "-o", "pid,status"];
    let words = [&[FASTPROC, "--procfs", container.procfs()], &words[..]].concat();
    let mut recording = container.command(&words);
    let mut recording = recording.stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = Lines::new(recording.stdout.take().expect("a pipe"));
    lines.line("a heading");
    let (pid, [line]) = lines.of_one(0, || {
        let mut ends = Command::new("sh");
        let mut ends = ends.args(["-c", "exit 73"]).spawn().expect("it starts");
        ends.wait().expect("it is a child");
        ends.id()
    });
    recording.kill().expect("the child is killed");
    recording.wait().expect("it is a child");
    assert_eq!(line, format!("{pid},73"));
}

/// The variable that other monitors read has the same effect, and a folder without processes is refused.
#[test]
fn the_environment_tells_where_proc_is() {
    let Some(container) = Container::new() else {
        return;
    };
    let this = std::process::id().to_string();
    let mut command = container.command(&[FASTPROC, "ps", "--pid", &this, "-o", "comm"]);
    let output = command.env("HOST_PROC", container.procfs()).output();
    let output = output.expect("it starts");
    let name = fs::read_to_string("/proc/self/comm").expect("/proc is mounted");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with(&name), "{output:?}");

    for wrong in ["/sys", "/no/such"] {
        let mut command = Command::new(FASTPROC);
        let output = command.arg("ps").env("HOST_PROC", wrong).output();
        let errors = output.expect("it starts").stderr;
        assert!(String::from_utf8_lossy(&errors).contains(wrong));
    }
}
