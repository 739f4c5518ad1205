//! `fastproc ps` with and without privileges.

use crate::common;

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::common::{Lines, for_everyone};
use fastproc_testbed::{
    Change, Changing, Folder, READS_BY_BPF, alone, as_user_with, ended_shell, gate, needs,
    wait_until,
};
use serde_json::Value;

const NOBODY: u32 = 65534;

/// Fields that the kernel shows only to a user who could trace the process.
const GUARDED: &str = "startcode,startstack,exit_code,wchan,rchar,read_bytes,exe";

fn row(output: &Output) -> Value {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.lines().next().expect("a row")).expect("JSON")
}

/// Arguments that show this process, which belongs to root, to another user.
fn arguments(more: &str) -> Vec<String> {
    let filter = format!("pid == {}", std::process::id());
    let columns = format!("pid,utime,rss,sigcgt,user,cmdline,{GUARDED}{more}");
    [
        "ps", "--format", "ndjson", "--fields", &columns, "--filter", &filter,
    ]
    .map(String::from)
    .into()
}

fn assert_guarded(row: &Value) {
    for field in GUARDED.split(',') {
        let key = if field == "rchar" {
            "rchar_bytes"
        } else {
            field
        };
        assert!(
            row.get(key).expect("it was asked for").is_null(),
            "{field} is shown: {row}"
        );
    }
    for open in ["utime_ns", "rss_bytes", "sigcgt", "cmdline"] {
        assert!(!row[open].is_null(), "{open} is not known: {row}");
    }
}

#[test]
fn without_privileges_it_reads_proc_and_says_why() {
    // A single snapshot of few processes does not try to load programs.
    let arguments = || {
        let mut arguments = arguments("");
        arguments.extend(["--verbose", "--interval", "0.1", "--count", "1"].map(String::from));
        arguments
    };
    let output = if gate::root() {
        let copy = for_everyone();
        let mut command = Command::new(copy.join("fastproc"));
        let output = command
            .args(arguments())
            .uid(NOBODY)
            .gid(NOBODY)
            .current_dir("/")
            .output();
        let output = output.expect("nobody can execute it");
        assert_guarded(&row(&output));
        output
    } else {
        let arguments = arguments();
        common::run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let line = String::from_utf8_lossy(&output.stderr);
    assert!(line.contains("from procfs"), "{line}");
    assert!(line.contains("bpf was refused: CAP_BPF"), "{line}");
}

/// Whether kernel threads are in this pid namespace, which they are not in a container. If not, the test is skipped.
#[track_caller]
fn has_kernel_threads() -> bool {
    let is_there = fs::read("/proc/2/comm").is_ok_and(|comm| comm == b"kthreadd\n");
    if !is_there {
        gate::skipped("it needs kernel threads");
    }
    is_there
}

/// Root of a user namespace has all capabilities in it, but none over a kernel thread.
#[test]
fn root_of_a_user_namespace_sees_nothing_more() {
    needs!(
        gate::root(),
        gate::programs(&["unshare"]),
        has_kernel_threads()
    );
    let output = Command::new("unshare")
        .args(["-U", "-r", env!("CARGO_BIN_EXE_fastproc")])
        .args(["ps", "--source", "procfs", "--format", "ndjson"])
        .args([
            "--fields",
            "pid,startcode,exit_code",
            "--filter",
            "ppid == 2",
        ])
        .output()
        .expect("unshare is installed");
    let rows = String::from_utf8_lossy(&output.stdout);
    assert!(rows.lines().count() > 10, "{output:?}");
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).expect("JSON");
        assert!(row["startcode"].is_null(), "{row}");
        assert!(row["exit_code"].is_null(), "{row}");
    }
}

/// The line of a running kernel thread reads the same with and without the right to trace it.
#[test]
fn a_kernel_thread_that_runs_hides_as_much_as_one_that_sleeps() {
    needs!(gate::root(), has_kernel_threads());
    let copy = for_everyone();
    let _alone = alone();
    // Keeps kernel threads busy; those of one CPU wait for it, and count as running meanwhile.
    let _changing = Changing::start(Change::Groups).expect("groups can be set");
    let storm = fastproc_testbed::Storm::start().expect("a storm");
    wait_until("a kernel thread runs", || {
        let mut running = false;
        let output = Command::new(copy.join("fastproc"))
            .args(["ps", "--source", "procfs", "--format", "ndjson"])
            .args(["--fields", "pid,comm,state,startcode,exit_code"])
            .args(["--filter", "ppid == 2"])
            .uid(NOBODY)
            .gid(NOBODY)
            .current_dir("/")
            .output()
            .expect("nobody can execute it");
        for row in String::from_utf8_lossy(&output.stdout).lines() {
            let row: Value = serde_json::from_str(row).expect("JSON");
            assert!(row["startcode"].is_null(), "{row}");
            assert!(row["exit_code"].is_null(), "{row}");
            running |= row["state"] == "R";
        }
        running
    });
    storm.stop().expect("it ends");
}

/// With the right to record, but not to trace others, as by setcap(8).
#[test]
fn exits_show_nobody_the_arguments_of_others() {
    needs!(gate::bpf(), gate::programs(&["setpriv"]));
    let copy = for_everyone();
    for execs in [&["--execs"][..], &[]] {
        let mut recording = as_user_with(NOBODY, READS_BY_BPF, copy.join("fastproc"))
            .args(["exits", "--quiet", "--format", "csv"])
            .args(["-o", "event,pid,status,rchar,cmdline", "--filter"])
            .arg(format!("ppid == {} && comm == sh", std::process::id()))
            .args(execs)
            .stdout(Stdio::piped())
            .spawn()
            .expect("setpriv is installed");
        let lines = Lines::new(recording.stdout.take().expect("a pipe"));
        lines.line("a heading");
        let others = ended_shell(0, "secret");
        let own = ended_shell(65534, "known");
        let mut told = Vec::new();
        while !told
            .iter()
            .any(|line: &String| line.starts_with(&format!("exit,{own},")))
        {
            told.push(lines.line("what exits and executes"));
        }
        recording.kill().expect("the child is killed");
        recording.wait().expect("the child ends");
        let of = |pid: u32| {
            told.iter()
                .filter(move |line| line.contains(&format!(",{pid},")))
        };
        // Before the shell executes, it is a fork of this test, whose name is another.
        assert!(of(others).count() >= 1, "{told:?}");
        assert!(of(others).all(|line| line.ends_with(",,,")), "{told:?}");
        assert!(
            of(own).any(|line| line.starts_with("exit") && line.contains("known")),
            "{told:?}"
        );
    }
}

/// Newer kernels show it with `CAP_PERFMON`, and no other guarded field.
#[test]
fn proportional_sizes_are_shown_to_whom_the_kernel_shows_them() {
    needs!(gate::bpf(), gate::programs(&["setpriv"]));
    let copy = for_everyone();
    for (source, capabilities) in [("procfs", "-all"), ("bpf", READS_BY_BPF)] {
        let as_nobody = |program: &Path, arguments: &[String]| {
            let mut command = as_user_with(NOBODY, capabilities, program);
            command
                .args(arguments)
                .output()
                .expect("setpriv is installed")
        };
        let file = format!("/proc/{}/smaps_rollup", std::process::id());
        let shows = as_nobody(Path::new("cat"), &[file]).status.success();
        let mut arguments = arguments(",pss,uss");
        arguments.extend(["--source".into(), source.into()]);
        let row = row(&as_nobody(&copy.join("fastproc"), &arguments));
        for field in ["pss_bytes", "uss_bytes"] {
            assert!(row.get(field).is_some(), "{row}");
            assert_eq!(row[field].is_u64(), shows, "{source}: {row}");
        }
        assert_guarded(&row);
    }
}

#[test]
fn ps_drops_capabilities_that_it_does_not_need() {
    needs!(gate::bpf());
    // A shell becomes the command, and so knows its pid.
    let script = r#"exec "$0" ps --format ndjson --filter "pid == $$" --fields capprm,capeff,capinh,capamb,nonewprivs --interval 0.05 --count 1"#;
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_fastproc")])
        .output();
    let row = row(&output.expect("sh can be started"));
    // CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_PERFMON, CAP_BPF
    let kept: u64 = 1 << 2 | 1 << 19 | 1 << 38 | 1 << 39;
    for set in ["capprm", "capeff", "capinh", "capamb"] {
        let held = u64::from_str_radix(row[set].as_str().expect("digits"), 16).expect("digits");
        assert_eq!(held & !kept, 0, "{row}");
    }
    assert_eq!(row["nonewprivs"], true);
}

/// Root owns the file of the I/O counters of a non-dumpable process: the process itself cannot read it.
#[test]
fn an_undumpable_process_does_not_see_its_own_io() {
    needs!(gate::bpf(), gate::programs(&["setpriv"]));
    let folder = Folder::new("undumpable");
    let copy = folder.join("fastproc");
    common::install(env!("CARGO_BIN_EXE_fastproc"), &copy);
    // Others may execute it, but not read it.
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o111)).expect("its mode is set");
    for source in ["bpf", "procfs"] {
        // A shell becomes the command, and so knows its pid. It can no longer read files as root.
        let script = format!(
            "exec \"$0\" ps --format ndjson --source {source} --pid $$ --fields pid,rchar,startcode"
        );
        let output = as_user_with(NOBODY, READS_BY_BPF, "sh")
            .args(["-c", &script])
            .arg(&copy)
            .output();
        let row = row(&output.expect("setpriv is installed"));
        assert!(row["rchar_bytes"].is_null(), "{source}: {row}");
        assert!(!row["startcode"].is_null(), "{source}: {row}");
    }
}
