//! The server's privileges, and its messages if it lacks some.

use std::{fs, io::ErrorKind, os::unix::process::CommandExt, process::Command};

use fastproc_testbed::{READS_BY_BPF, as_user_with, gate, needs, wait_until};
use rustix::process::Signal;

use crate::serve::{
    FASTPROC,
    actor::Actor,
    exposition::Metrics,
    folder::Folder,
    server::{Server, refused, status},
};

const NOBODY: u32 = 65534;
const DAC_READ_SEARCH: u64 = 1 << 2;
const SYS_PTRACE: u64 = 1 << 19;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// The user that it becomes: the one that the package creates, otherwise nobody.
fn own_id(name: &str) -> u32 {
    let option = if name == "Uid" { "-u" } else { "-g" };
    let id = Command::new("id").args([option, "fastproc"]).output();
    let id = String::from_utf8(id.expect("the user exists").stdout).expect("a number");
    id.trim().parse().unwrap_or(NOBODY)
}

/// A status line that must be the same for every thread, but for the one that reads textfiles, which has no capabilities.
#[track_caller]
fn of_all_threads(server: &Server, name: &str) -> String {
    let tasks =
        fs::read_dir(format!("/proc/{}/task", server.pid())).expect("/proc shows the process");
    let mut lines = Vec::new();
    for task in tasks {
        let path = task.expect("/proc shows the process").path().join("status");
        let path = path.to_str().expect("UTF-8");
        let line = status(path, name);
        if name.starts_with("Cap") && status(path, "Name") == "textfiles" {
            assert_eq!(line, "0".repeat(16));
        } else {
            lines.push(line);
        }
    }
    assert!(lines.len() >= 2, "it serves with a thread of its own");
    lines.dedup();
    assert_eq!(lines.len(), 1, "its threads differ: {lines:?}");
    lines.remove(0)
}

#[track_caller]
fn capabilities(server: &Server, set: &str) -> u64 {
    u64::from_str_radix(&of_all_threads(server, set), 16).expect("a mask")
}

/// The kernel hid only those I/O counters that it also hides from root.
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
    needs!(gate::root());
    let reading = SYS_PTRACE | DAC_READ_SEARCH;
    for (arguments, needed, allowed) in [
        (&["--source", "procfs"][..], reading, reading),
        (&[], reading, reading | BPF | PERFMON),
        (
            &["--gather-fds=false", "--gather-wchan=false"],
            0,
            reading | BPF | PERFMON,
        ),
    ] {
        let server = Server::start(arguments);
        let metrics = server.scrape();
        for name in ["Uid", "Gid"] {
            let id = own_id(name).to_string();
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
        // It still sees what other users' processes do.
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

/// In a mount namespace where that user exists.
#[test]
fn root_becomes_the_user_that_the_package_makes() {
    needs!(gate::root(), gate::programs(&["unshare", "mount"]));
    let folder = Folder::new();
    let users = folder.write(
        "passwd",
        "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n\
         fastproc:x:61234:61235::/:/bin/false\n",
    );
    let serve = format!(
        "mount --bind {users} /etc/passwd && exec {FASTPROC} serve --source procfs --once-to-stdout-delay 600s"
    );
    let mut server = Command::new("unshare")
        .args(["--mount", "sh", "-c", &serve])
        .spawn()
        .expect("the program starts");
    let path = format!("/proc/{}/status", server.id());
    wait_until("it gives up root", || {
        status(&path, "Uid")
            .split_whitespace()
            .all(|id| id == "61234")
    });
    assert!(
        status(&path, "Gid")
            .split_whitespace()
            .all(|id| id == "61235")
    );
    server.kill().expect("a child");
    server.wait().expect("a child");
}

#[test]
fn an_unknown_user_is_replaced_by_nobody() {
    needs!(gate::root());
    for user in ["no-such-user", "4294967294"] {
        let mut command = Command::new(FASTPROC);
        command.args(["serve", "--listen", "127.0.0.1:0", "--source=procfs"]);
        let stderr = refused(command.args(["--user", user]));
        assert!(
            stderr.contains("no user") && stderr.contains("--user"),
            "{stderr}"
        );
    }
}

/// Root may stay root, but without its capabilities.
#[test]
fn root_can_be_kept_without_its_capabilities() {
    needs!(gate::root());
    let server = Server::start(&["--user", "root", "--source", "procfs"]);
    let uids = of_all_threads(&server, "Uid");
    assert!(uids.split_whitespace().all(|uid| uid == "0"), "{uids}");
    assert_eq!(
        capabilities(&server, "CapPrm"),
        SYS_PTRACE | DAC_READ_SEARCH
    );
    assert_eq!(
        server.scrape().labels("fastproc_source_info")["sees_all"],
        "true"
    );
}

/// A container may lack the capabilities to become another user.
#[test]
fn root_that_cannot_become_another_user_stays_root_and_gives_up_the_rest() {
    needs!(gate::root(), gate::programs(&["setpriv"]));
    let by_setpriv = || {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-setuid,-setgid", FASTPROC]);
        command
    };
    let server = Server::start_by(&mut by_setpriv(), &["--source", "procfs"]);
    server.scrape();
    let uids = of_all_threads(&server, "Uid");
    assert!(uids.split_whitespace().all(|uid| uid == "0"), "{uids}");
    assert_eq!(
        capabilities(&server, "CapPrm"),
        SYS_PTRACE | DAC_READ_SEARCH
    );
    let exporter = format!("/proc/{}/status", server.exporter());
    assert_eq!(status(&exporter, "CapPrm"), "0000000000000000");
    assert_eq!(status(&exporter, "Seccomp"), "2");
    // Staying root needs no capability, as in the container of packaging/kubernetes.
    let arguments = ["--source", "procfs", "--user=0"];
    Server::start_by(&mut by_setpriv(), &arguments).scrape();
    // A user that was named must be used.
    let arguments = ["serve", "--source=procfs", "--listen=127.0.0.1:0"];
    let stderr = refused(by_setpriv().args(arguments).arg("--user=daemon"));
    assert!(stderr.contains("cannot drop the groups"), "{stderr}");
}

/// With `hidepid`, root sees all processes and their names, and so does the server it starts.
#[test]
fn root_sees_processes_that_hidepid_hides() {
    const MOUNT: &str = "mount -t proc -o hidepid=4 proc /proc && exec \"$0\" \"$@\"";
    needs!(gate::root(), gate::programs(&["unshare"]));
    let (folder, name) = (Folder::new(), format!("fphide{}", std::process::id()));
    let _actor = Actor::start(&folder, &name);
    let group = [("groupname", &*name)];
    let program = folder.programs();
    // Without descriptors and waiting places, nothing else needs capabilities.
    let cheap = ["--gather-fds=false", "--gather-wchan=false"];
    for source in [&[][..], &["--source", "procfs"]] {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", MOUNT]).arg(&program);
        let server = Server::start_by(&mut command, &[&cheap[..], source].concat());
        let metrics = server.scrape();
        assert_eq!(
            metrics.get("namedprocess_namegroup_num_procs", &group),
            Some(1.0),
            "{source:?}"
        );
        assert_eq!(metrics.labels("fastproc_source_info")["sees_all"], "true");
    }
    // An unprivileged user gets a message.
    let id = NOBODY.to_string();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", MOUNT, "setpriv"])
        .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
        .arg(&program);
    let metrics = Server::start_by(&mut command, &cheap).scrape();
    assert_eq!(
        metrics.get("namedprocess_namegroup_num_procs", &group),
        None
    );
    assert_eq!(metrics.labels("fastproc_source_info")["sees_all"], "false");
}

/// Without privileges it serves what `/proc` shows, and reports that something is hidden.
#[test]
fn without_privileges_it_serves_what_proc_shows_and_says_so() {
    needs!(gate::root());
    let folder = Folder::new();
    let program = folder.programs();
    let server = Server::start_as(&program, NOBODY, &["--costly-share", "1"]);
    let stderr = server.stderr();
    assert!(
        stderr.contains("cannot be used"),
        "why BPF is not used is not stderr: {stderr}"
    );
    // What helps is said once.
    assert_eq!(stderr.matches("setcap").count(), 1, "{stderr}");
    let metrics = server.scrape();
    let source = metrics.labels("fastproc_source_info");
    assert_eq!(source["source"], "procfs");
    assert_eq!(source["sees_all"], "false");
    // This test runs as root: its I/O and its waiting places are hidden, everything else is shown.
    assert!(metrics.get("namedprocess_scrape_partial_errors", &[]) > Some(0.0));
    let unknown = metrics.all(
        "fastproc_namegroup_value_unknown_processes",
        &[("value", "wchan")],
    );
    assert!(unknown.sum::<f64>() > 0.0);
    let comm = fs::read_to_string("/proc/self/comm").expect("/proc is mounted");
    let group = [("groupname", comm.trim()), ("memtype", "resident")];
    assert!(metrics.get("namedprocess_namegroup_memory_bytes", &group) > Some(0.0));
    assert!(metrics.get("node_context_switches_total", &[]) > Some(0.0));
    let (status, stderr) = server.end(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// As a service manager starts it: never root, with the needed capabilities.
#[test]
fn capabilities_are_enough() {
    needs!(gate::bpf(), gate::programs(&["setpriv"]));
    let folder = Folder::new();
    let program = folder.programs();
    let ambient = "+bpf,+perfmon,+sys_ptrace,+dac_read_search";
    let mut command = as_user_with(NOBODY, ambient, "setpriv");
    command.arg("--no-new-privs").arg(program).process_group(0);
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

/// With the right to load BPF programs, but not to trace other users' processes, as by setcap(8).
#[test]
fn io_of_others_is_unknown_to_a_user_who_may_only_load_bpf_programs() {
    needs!(gate::bpf(), gate::programs(&["setpriv"]));
    let folder = Folder::new();
    let as_user = |uid: u32| {
        let output = as_user_with(uid, READS_BY_BPF, folder.programs())
            .args(["serve", "--source=bpf", "--once-to-stdout-delay=10ms"])
            .output()
            .expect("it can be started");
        assert!(output.status.success(), "{output:?}");
        Metrics::parse(std::str::from_utf8(&output.stdout).expect("it is UTF-8"))
    };
    for (metrics, sees_all) in [(as_user(NOBODY), false), (as_user(0), true)] {
        let labels = metrics.labels("fastproc_source_info");
        assert_eq!(labels["sees_all"], sees_all.to_string());
        let unknown = metrics.get("namedprocess_scrape_partial_errors", &[]);
        assert!(sees_all || unknown > Some(0.0), "{unknown:?}");
    }
}
