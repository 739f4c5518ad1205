//! What the server may do, and what it says when it may not.

use std::{fs, io::ErrorKind, os::unix::process::CommandExt, process::Command};

use fastproc_zoo::gate;
use rustix::process::Signal;

use crate::{
    FASTPROC, TMP,
    exposition::Metrics,
    folder::Folder,
    server::{Server, status},
};

const NOBODY: u32 = 65534;
const DAC_READ_SEARCH: u64 = 1 << 2;
const SYS_PTRACE: u64 = 1 << 19;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// The same line of every thread's status.
#[track_caller]
fn of_all_threads(server: &Server, name: &str) -> String {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs");
    let paths = tasks.map(|task| task.expect("it runs").path().join("status"));
    let mut lines: Vec<String> = paths
        .map(|path| status(path.to_str().expect("UTF-8"), name))
        .collect();
    assert!(lines.len() >= 2, "it serves with a thread of its own");
    lines.dedup();
    assert_eq!(lines.len(), 1, "its threads differ: {lines:?}");
    lines.remove(0)
}

#[track_caller]
fn capabilities(server: &Server, set: &str) -> u64 {
    u64::from_str_radix(&of_all_threads(server, set), 16).expect("a mask")
}

/// The kernel hid nobody's I/O counters that it does not hide from root as well.
#[track_caller]
fn assert_nothing_is_hidden(metrics: &Metrics) {
    let processes = fs::read_dir("/proc").expect("/proc is there");
    let paths = processes.map(|entry| entry.expect("it can be listed").path());
    let hidden = paths
        .filter_map(|path| fs::read(path.join("io")).err())
        .filter(|error| error.kind() == ErrorKind::PermissionDenied);
    let most = hidden.count() as f64
        * metrics
            .get("fastproc_snapshots_total", &[])
            .expect("it is counted");
    let partial = metrics.get("namedprocess_scrape_partial_errors", &[]);
    assert!(partial <= Some(most), "{partial:?}, and not {most}");
}

#[test]
fn root_is_given_up_with_all_that_is_not_needed() {
    const TEST: &str = "root_is_given_up_with_all_that_is_not_needed";
    if !gate::root(TEST, TMP) {
        return;
    }
    let reading = SYS_PTRACE | DAC_READ_SEARCH;
    for (arguments, needed, allowed) in [
        (&["--source", "procfs"][..], reading, reading),
        (&["--gather-fds"], reading, reading | BPF | PERFMON),
        (&[], 0, reading | BPF | PERFMON),
    ] {
        let server = Server::start(arguments);
        let metrics = server.scrape();
        let id = NOBODY.to_string();
        for name in ["Uid", "Gid"] {
            let ids = of_all_threads(&server, name);
            assert!(ids.split_whitespace().all(|its| its == id), "{name}: {ids}");
        }
        assert_eq!(of_all_threads(&server, "Groups"), "");
        assert_eq!(of_all_threads(&server, "NoNewPrivs"), "1");
        for set in ["CapPrm", "CapEff"] {
            let held = capabilities(&server, set);
            assert_eq!(held & !allowed, 0, "{arguments:?}: {set} {held:#x}");
            assert_eq!(held & needed, needed, "{arguments:?}: {set} {held:#x}");
        }
        for set in ["CapInh", "CapAmb"] {
            assert_eq!(capabilities(&server, set), 0, "{set}");
        }
        let source = metrics.labels("fastproc_source_info");
        let by_bpf = source["source"] != "procfs";
        assert_eq!(
            capabilities(&server, "CapPrm") & BPF != 0,
            by_bpf,
            "{source:?}"
        );
        // It still sees what others' processes do.
        assert_eq!(source["sees_all"], "true");
        assert_nothing_is_hidden(&metrics);
    }
    let server = Server::start(&["--user", "daemon", "--source", "procfs"]);
    let uid = of_all_threads(&server, "Uid");
    assert!(
        !uid.split_whitespace()
            .any(|uid| uid == "0" || uid == "65534"),
        "{uid}"
    );
}

#[test]
fn nobody_is_found_for_a_user_who_does_not_exist() {
    const TEST: &str = "nobody_is_found_for_a_user_who_does_not_exist";
    if !gate::root(TEST, TMP) {
        return;
    }
    for user in ["no-such-user", "root", "0"] {
        let output = Command::new(FASTPROC)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--source",
                "procfs",
                "--user",
                user,
            ])
            .output()
            .expect("it can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("no user") && said.contains("--user"),
            "{said}"
        );
    }
}

/// Without privileges it serves what `/proc` shows, and says that this is not all.
#[test]
fn without_privileges_it_serves_what_proc_shows_and_says_so() {
    const TEST: &str = "without_privileges_it_serves_what_proc_shows_and_says_so";
    if !gate::root(TEST, TMP) {
        return;
    }
    let folder = Folder::new();
    let program = folder.copy(FASTPROC, "fastproc");
    let server = Server::start_as(&program, NOBODY, &["--gather-fds", "--costly-share", "1"]);
    let said = server.said();
    assert!(
        said.contains("cannot be used"),
        "why BPF is not used is not said: {said}"
    );
    let metrics = server.scrape();
    let source = metrics.labels("fastproc_source_info");
    assert_eq!(source["source"], "procfs");
    assert_eq!(source["sees_all"], "false");
    // This test is root's: its I/O and its descriptors are hidden, and the rest is not.
    assert!(metrics.get("namedprocess_scrape_partial_errors", &[]) > Some(0.0));
    let unknown = metrics.all(
        "fastproc_namegroup_value_unknown_processes",
        &[("value", "fds")],
    );
    assert!(unknown.sum::<f64>() > 0.0);
    let comm = fs::read_to_string("/proc/self/comm").expect("it is ours");
    let group = [("groupname", comm.trim()), ("memtype", "resident")];
    assert!(metrics.get("namedprocess_namegroup_memory_bytes", &group) > Some(0.0));
    assert!(metrics.get("node_context_switches_total", &[]) > Some(0.0));
    let (status, said) = server.end(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{said}");
}

/// As a service manager starts it: never root, with the capabilities that it needs.
#[test]
fn capabilities_are_enough() {
    const TEST: &str = "capabilities_are_enough";
    if !gate::root(TEST, TMP) || !gate::programs(TEST, TMP, &["setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let program = folder.copy(FASTPROC, "fastproc");
    let ambient = "+bpf,+perfmon,+sys_ptrace,+dac_read_search";
    let user = NOBODY.to_string();
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            &user,
            "--regid",
            &user,
            "--clear-groups",
            "--no-new-privs",
        ])
        .args([
            format!("--inh-caps={ambient}"),
            format!("--ambient-caps={ambient}"),
        ])
        .arg(program)
        .process_group(0);
    let server = Server::start_by(&mut command, &[]);
    let as_root = Server::start(&[]);
    let metrics = server.scrape();
    let source = metrics.labels("fastproc_source_info");
    assert_eq!(
        source["source"],
        as_root.scrape().labels("fastproc_source_info")["source"]
    );
    assert_eq!(source["sees_all"], "true");
    assert_nothing_is_hidden(&metrics);
    assert_eq!(capabilities(&server, "CapAmb"), 0);
}
