//! The command on the running kernel: every field of a testbed of unusual processes, each source, each error.

use crate::common;

use std::process::{Command, Output};

use crate::common::{for_everyone, pids_of_testbed, testbed};
use fastproc_testbed::{Cgroup, READS_BY_BPF, as_user_with, gate, needs};
use serde_json::Value;

const FASTPROC: &str = env!("CARGO_BIN_EXE_fastproc");

fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Only the wrong values of a report.
fn wrong(report: &Value) -> Vec<&Value> {
    let rows = ["fields", "texts", "counters", "machine_texts"].map(|list| report[list].as_array());
    let rows = rows.into_iter().flatten().flatten();
    let examples = report["examples"].as_array().into_iter().flatten();
    rows.filter(|row| row["wrong"] != 0)
        .chain(examples)
        .collect()
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("not a number: {value}"))
}

/// The report of `fastproc verify` for these processes and this source.
#[track_caller]
fn verified(pids: &str, rounds: &str, source: &str) -> Value {
    let arguments = ["verify", "--json", "--pids", pids, "--rounds", rounds];
    let output = run(Command::new(FASTPROC)
        .args(arguments)
        .args(["--source", source]));
    let report = json(&output);
    assert_eq!(wrong(&report), Vec::<&Value>::new(), "{source}");
    assert_eq!(number(&report["wrong"]), 0, "{source}");
    assert_eq!(number(&report["missing"]), 0, "{source}");
    assert_eq!(report["source"], source);
    assert!(output.status.success(), "{source}");
    report
}

/// Every field of every test process, by every source. The testbed gives values to fields that are zero in idle
/// processes.
#[test]
fn the_testbed_is_right_by_every_source() {
    needs!(gate::bpf());
    let (testbed, pids) = (testbed(), pids_of_testbed());
    for absent in testbed.absent() {
        eprintln!("NOT IN THE TESTBED: {} ({})", absent.label, absent.reason);
    }
    assert!(testbed.processes().len() > 50, "hardly a process came");
    for source in ["bpf", "bpf-iter", "procfs"] {
        let report = verified(&pids, "3", source);
        let fields = report["fields"].as_array().expect("a list of fields");
        let field = |file: &str, name: &str| {
            let row = fields
                .iter()
                .find(|row| row["file"] == file && row["field"] == name);
            row.unwrap_or_else(|| panic!("{source}: no {file} {name}"))
        };
        assert!(
            number(&field("status", "Pid")["compared"]) >= 3 * testbed.processes().len() as u64
        );
        // Fields that need a certain process, which a machine may not allow.
        for (file, name, label) in [
            ("status", "TracerPid", "traced"),
            ("status", "Groups", "groups-300"),
            ("status", "SigPnd", "signals-pending"),
            ("status", "ShdPnd", "signals-pending"),
            ("status", "VmLck", "memory-locked"),
            ("status", "Seccomp", "seccomp-filter"),
            ("status", "NoNewPrivs", "no-new-privs"),
            ("status", "RssShmem", "memory-shared"),
            ("status", "CapAmb", "capabilities"),
            ("stat", "tty_nr", "terminal-leader"),
            ("stat", "rt_priority", "fifo"),
            ("stat", "policy", "sched-idle"),
            ("stat", "exit_code", "zombie"),
            ("stat", "sigcatch", "signals-caught"),
            ("stat", "cutime", "bereaved"),
        ] {
            assert!(
                testbed.process(label).is_none() || number(&field(file, name)["nonzero"]) > 0,
                "{source}: {name} was only ever zero"
            );
        }
    }
}

/// Cgroups that change are right by both sources, and each source compares something.
#[test]
fn verify_compares_cgroups() {
    needs!(gate::bpf());
    let Some(_cgroup) = Cgroup::new("verified") else {
        return;
    };
    for (source, expected) in [("bpf", "bpf"), ("procfs", "files")] {
        let arguments = ["verify", "--cgroups", "--json", "--rounds", "2", "--source"];
        let output = run(Command::new(FASTPROC).args(arguments).arg(source));
        let report = json(&output);
        assert_eq!(report["examples"], Value::Array(vec![]), "{source}");
        assert_eq!(number(&report["wrong"]), 0, "{source}");
        assert_eq!(report["source"], expected);
        assert!(number(&report["compared"]) >= 2, "{source}");
        assert!(output.status.success(), "{source}");
    }
    let output = run(Command::new(FASTPROC).args(["verify", "--cgroups", "--source", "bpf-iter"]));
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("choose auto, bpf or procfs"), "{error}");
}

/// Open files and sockets of this process are right by both sources.
#[test]
fn verify_compares_open_files() {
    needs!(gate::bpf());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let folder = fastproc_testbed::Folder::new("verified-files");
    let unix = std::os::unix::net::UnixListener::bind(folder.join("socket"));
    let pid = std::process::id().to_string();
    for source in ["bpf", "procfs"] {
        let arguments = [
            "verify", "--files", "--json", "--rounds", "2", "-p", &pid, "--source",
        ];
        let output = run(Command::new(FASTPROC).args(arguments).arg(source));
        let report = json(&output);
        assert_eq!(report["examples"], Value::Array(vec![]), "{source}");
        assert_eq!(number(&report["wrong"]), 0, "{source}");
        assert_eq!(report["source"], source);
        let rows = report["fields"].as_array().expect("rows");
        for field in ["descriptors", "name", "flags", "socket local", "unix name"] {
            let row = rows.iter().find(|row| row["field"] == field);
            let row = row.unwrap_or_else(|| panic!("{source}: {field} was not compared"));
            assert!(number(&row["equal"]) > 0, "{source}: {row}");
        }
        assert!(output.status.success(), "{source}");
    }
    drop((listener, unix));
    // Those of all processes, as far as they do not change meanwhile.
    let output = run(Command::new(FASTPROC).args(["verify", "--files", "--json", "--rounds", "3"]));
    let report = json(&output);
    assert!(output.status.success(), "{:#}", report["examples"]);
    assert!(number(&report["compared"]) > 1000, "{report}");
    let output = run(Command::new(FASTPROC).args(["verify", "--files", "--source", "bpf-iter"]));
    assert_eq!(output.status.code(), Some(2));
}

/// Every line of the machine's counters; and interrupt counts that may be a second old are right, kept, and read again.
#[test]
fn counters_are_the_kernels_and_interrupt_counts_may_be_a_little_old() {
    needs!(gate::bpf());
    let output =
        run(Command::new(FASTPROC)
            .args("verify --json --rounds 20 --stat-irqs-latency 1s".split(' ')));
    let report = json(&output);
    assert_eq!(wrong(&report), Vec::<&Value>::new());
    for text in report["machine_texts"].as_array().expect("a list of files") {
        assert!(number(&text["compared"]) > 0, "{text}");
    }
    let lines = report["counters"].as_array().expect("a list of lines");
    let proven = lines
        .iter()
        .filter(|line| line["from"] == "bpf" && number(&line["nonzero"]) > 0);
    assert!(proven.count() > 30, "{lines:#?}");
    let aged = &report["aged_interrupts"];
    if aged.is_null() {
        eprintln!("THE COUNTS COME FROM THE TEXT HERE");
        return;
    }
    assert_eq!(number(&aged["wrong"]), 0, "{aged}");
    for name in ["compared", "kept", "renewed"] {
        assert!(number(&aged[name]) > 0, "{aged}");
    }
}

#[test]
fn cat_fails_as_cat_does() {
    gate::ran();
    let path = "/proc/4194305/stat";
    let ours = run(Command::new(FASTPROC)
        .args(["cat", path])
        .env("LC_ALL", "C"));
    let theirs = run(Command::new("cat").arg(path).env("LC_ALL", "C"));
    assert_eq!(
        ours.stderr.escape_ascii().to_string(),
        theirs.stderr.escape_ascii().to_string()
    );
    assert_eq!(ours.status.code(), theirs.status.code());
    assert!(ours.stdout.is_empty());
    // One bad path does not prevent printing the others.
    let ours = run(Command::new(FASTPROC).args(["cat", path, "/proc/self/stat"]));
    assert_eq!(ours.status.code(), Some(1));
    assert!(ours.stdout.ends_with(b"\n"));
}

/// Without privileges the same values come from /proc.
#[test]
fn an_unprivileged_user_is_served_from_proc() {
    needs!(gate::root());
    let folder = for_everyone();
    let fastproc = folder.join("fastproc");
    let pids = pids_of_testbed();
    let nobody = |arguments: &[&str]| run(as_user_with(65534, "-all", &fastproc).args(arguments));
    let report = json(&nobody(&[
        "verify", "--json", "--rounds", "2", "--pids", &pids,
    ]));
    assert_eq!(report["source"], "procfs");
    assert_eq!(wrong(&report), Vec::<&Value>::new());
    assert_eq!(number(&report["wrong"]), 0);
    assert!(number(&report["compared"]) > 1000);
    let doctor = json(&nobody(&["doctor", "--json"]));
    assert_eq!(doctor["source"], "procfs");
    for source in doctor["sources"]
        .as_array()
        .expect("a list of sources")
        .iter()
        .take(2)
    {
        let error = source["error"].as_str().expect("it was refused");
        assert!(error.contains("CAP_BPF and CAP_PERFMON"), "{error}");
    }
    let forced = nobody(&["ps", "--source", "bpf"]);
    assert_eq!(forced.status.code(), Some(2), "{forced:?}");
    assert!(
        String::from_utf8_lossy(&forced.stderr).contains("setcap"),
        "{forced:?}"
    );
}

/// The reader's permissions apply to records: with only the two capabilities, what the kernel hides of other users'
/// processes is hidden here too.
#[test]
fn a_reader_without_ptrace_access_sees_what_the_kernel_shows_it() {
    needs!(gate::bpf());
    let folder = for_everyone();
    let fastproc = folder.join("fastproc");
    let pids = pids_of_testbed();
    let mut command = as_user_with(65534, READS_BY_BPF, &fastproc);
    command.args(["verify", "--json", "--rounds", "2", "--pids", &pids]);
    let output = run(&mut command);
    let report = json(&output);
    assert_eq!(report["source"], "bpf");
    assert_eq!(wrong(&report), Vec::<&Value>::new());
    assert_eq!(number(&report["wrong"]), 0);
    let fields = report["fields"].as_array().expect("a list of fields");
    let start = fields
        .iter()
        .find(|row| row["field"] == "startstack")
        .expect("stat has it");
    assert!(
        number(&start["nonzero"]) < number(&start["compared"]) / 2,
        "hardly anything was hidden: {start}"
    );
}

/// In a pid namespace with the `/proc` of an outer one, `self` has another pid than `getpid()` returns.
#[test]
fn self_is_who_proc_says() {
    needs!(gate::root(), gate::programs(&["unshare"]));
    for file in ["stat", "status"] {
        let output = run(Command::new("unshare")
            .args(["--pid", "--fork", FASTPROC, "cat"])
            .arg(format!("/proc/self/{file}")));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(text.contains("fastproc"), "{text}");
    }
}

/// Each error, caused for real.
#[test]
fn refusals_say_what_is_missing() {
    needs!(gate::root());
    let cases: &[(&[&str], &str)] = &[
        (
            &[
                "setpriv",
                "--bounding-set=-bpf,-perfmon,-sys_admin",
                "--inh-caps=-all",
            ],
            "CAP_BPF and CAP_PERFMON",
        ),
        (
            &[
                "setpriv",
                "--bounding-set=-bpf,-sys_admin",
                "--inh-caps=-all",
            ],
            "CAP_BPF is missing",
        ),
        (
            &[
                "setpriv",
                "--bounding-set=-perfmon,-sys_admin",
                "--inh-caps=-all",
            ],
            "CAP_PERFMON is missing",
        ),
        (
            &["unshare", "--user", "--map-root-user", "--"],
            "user namespace",
        ),
    ];
    for (wrapper, expected) in cases {
        for source in ["bpf", "bpf-iter"] {
            let output = run(Command::new(wrapper[0])
                .args(&wrapper[1..])
                .arg(FASTPROC)
                .args(["ps", "--source", source]));
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{wrapper:?}: {stderr}");
            assert!(stderr.contains(expected), "{wrapper:?} {source}: {stderr}");
        }
        // By default the command works nevertheless, and reports why it uses the text.
        let output = run(Command::new(wrapper[0])
            .args(&wrapper[1..])
            .arg(FASTPROC)
            .args(["doctor", "--json"]));
        let doctor = json(&output);
        assert_eq!(doctor["source"], "procfs", "{wrapper:?}");
        let error = doctor["sources"][0]["error"]
            .as_str()
            .expect("it was refused");
        assert!(error.contains(expected), "{wrapper:?}: {error}");
    }
}

/// The two capabilities are enough.
#[test]
fn two_capabilities_suffice() {
    needs!(gate::bpf());
    for source in ["bpf", "bpf-iter"] {
        let mut command = Command::new("setpriv");
        command
            .args(["--bounding-set=-all,+bpf,+perfmon", "--inh-caps=-all", "--"])
            .arg(FASTPROC);
        let output = run(command.args(["ps", "--top", "1", "--source", source]));
        assert!(output.status.success(), "{source}: {output:?}");
    }
}

/// The source in use, what is missing, and what to do; details only on request.
#[test]
fn doctor_tells_a_person_a_dozen_lines() {
    let text = common::output(&["doctor"]);
    assert!(text.lines().count() <= 12, "{text}");
    for name in ["kernel", "processes", "service", "counters", "exits"] {
        let is_told = text.lines().any(|line| line.starts_with(name));
        assert!(is_told, "{name} is missing: {text}");
    }
    assert!(text.starts_with("to do "), "{text}");
    assert!(!text.contains("one look"), "{text}");
    let report: Value = serde_json::from_str(&common::output(&["doctor", "--json"])).expect("JSON");
    assert_eq!(report["architecture"], std::env::consts::ARCH);
    let lines = report["counters"]["lines"].as_array().map_or(0, Vec::len);
    let counters = common::output(&["doctor", "--counters"]);
    assert!(counters.lines().count() > lines, "{counters}");
}

/// Checks no times, but that the parts add up to the whole.
#[test]
fn the_parts_of_opening_are_told_and_sum_up() {
    let doctor: Value =
        serde_json::from_str(&common::output(&["doctor", "--json", "--timing"])).expect("JSON");
    let timing = doctor["timing"].as_array().expect("a list");
    let opened: Vec<&str> = timing
        .iter()
        .map(|timing| timing["opened"].as_str().expect("a name"))
        .collect();
    let usable = doctor["sources"].as_array().expect("a list");
    for source in usable.iter().filter(|source| source["usable"] == true) {
        let name = source["source"].as_str().expect("a name");
        assert!(opened.contains(&name), "{name} is not in {opened:?}");
    }
    let counters = doctor["counters"]["available"] == true;
    assert_eq!(opened.contains(&"counters"), counters, "{opened:?}");
    for timing in timing {
        let parts = timing["parts"].as_array().expect("a list");
        let named: Vec<&str> = parts
            .iter()
            .filter_map(|part| part["part"].as_str())
            .collect();
        assert!(!parts.is_empty() && named.len() == parts.len(), "{timing}");
        for time in ["cpu_ms", "wall_ms"] {
            let ms = |of: &Value| of[time].as_f64().expect("a number");
            let sum: f64 = parts.iter().map(ms).sum();
            assert!((sum - ms(timing)).abs() < 1e-6, "{timing}");
            assert!(parts.iter().all(|part| ms(part) >= 0.0), "{timing}");
        }
        let wall = timing["wall_ms"].as_f64();
        assert!(wall.is_some_and(|ms| ms > 0.0), "{timing}");
    }
    // It is printed only on request.
    let timed = common::output(&["doctor", "--timing"]);
    assert!(timed.contains("first snapshot"), "{timed}");
    assert!(!common::output(&["doctor"]).contains("first snapshot"));
}
