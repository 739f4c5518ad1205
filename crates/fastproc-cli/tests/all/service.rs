//! Readers of a service see what the kernel shows them. Needs root.

use crate::common;

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Stdio},
};

use crate::served::{Looks, NOBODY, Odd, Served};
use fastproc_testbed::{Cgroup, Folder, gate, needs, wait_until};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

/// A user with a few processes.
const OWNER: u32 = 12350;

#[test]
fn every_field_is_the_one_that_proc_gives_the_same_reader() {
    needs!(gate::root());
    let served = Served::start("fields");
    let odd = Odd::start(&served, &[OWNER]);
    // Root, a user without processes, and every user by whom one of the processes runs.
    let mut readers: BTreeSet<u32> = odd.pids().into_iter().flat_map(users).collect();
    readers.extend([0, NOBODY]);
    assert!(readers.len() > 4, "processes of other users are missing");
    for uid in readers {
        let looks = Looks::take(&mut served.within(uid, &served.three_looks("service")));
        let compared = looks.compare(&odd, &format!("as {uid}"));
        assert!(looks.told.contains("from service"), "{}", looks.told);
        println!("as {uid}: {compared} values compared");
    }
}

/// The real, effective, saved and file system user of a process.
fn users(pid: u32) -> Vec<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).expect("it lives as long as the test");
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let ids = line.expect("a line").split_ascii_whitespace();
    ids.map(|id| id.parse().expect("a number")).collect()
}

/// A command that confined itself before its first request would be refused.
#[test]
fn a_users_command_is_shown_cgroups() {
    needs!(gate::root());
    let Some(cgroup) = Cgroup::new("inner") else {
        return;
    };
    let served = Served::start("cgroups");
    let arguments = [
        "cgroups", "--source", "service", "--json", "--fields", "path",
    ];
    let shown = served.output(NOBODY, &arguments);
    let shown: serde_json::Value = serde_json::from_slice(&shown).expect("JSON");
    assert_eq!(shown["source"], "service");
    let rows = shown["cgroups"].as_array().expect("rows");
    assert!(
        rows.iter().any(|row| row["path"] == cgroup.path()),
        "{shown}"
    );
}

/// The service keeps the command line of an idle process and does not read it again. The path of its program changes
/// meanwhile, when it is renamed or removed.
#[test]
fn ps_shows_where_a_program_lies_now() {
    needs!(gate::root());
    let served = Served::start("lies");
    let folder = Folder::new("lies-now");
    let [first, second] = ["first", "second"].map(|name| folder.join(name));
    common::install("/bin/sleep", &first);
    // It must not keep a pipe open that the test's caller waits for, in case this fails.
    let mut command = Command::new(&first);
    command
        .arg("1000")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("it can be started");
    let pid = child.id().to_string();
    let shows = |path: String| {
        let arguments = ["ps", "--source", "service", "--format", "csv", "--quiet"];
        for (more, all) in [
            (&["-eo", "pid,exe,cmdline"][..], true),
            (&["-p", &pid, "--fields", "pid,exe,cmdline"], false),
        ] {
            let output = served.output(0, &[&arguments, more].concat());
            let expected = format!("{pid},{path},{} 1000", first.display());
            let output = String::from_utf8_lossy(&output);
            let line = output
                .lines()
                .find(|line| line.starts_with(&format!("{pid},")));
            assert_eq!(line, Some(&*expected), "of all: {all}");
        }
    };
    // spawn() may return before the process shows its own command line.
    let line = format!("/proc/{pid}/cmdline");
    wait_until("its command line", || {
        fs::read(&line).is_ok_and(|line| line.ends_with(b"1000\0"))
    });
    shows(first.display().to_string());
    fs::rename(&first, &second).expect("the file is renamed");
    shows(second.display().to_string());
    fs::remove_file(&second).expect("the file is removed");
    shows(format!("{} (deleted)", second.display()));
    child.kill().expect("the child is killed");
    child.wait().expect("the child ends");
}

/// As systemd starts it for fastproc.socket: the socket exists before the service starts, and after it has ended.
#[test]
fn a_socket_that_is_passed_is_served_and_outlives_the_service() {
    needs!(gate::root());
    let folder = Folder::new("passed");
    let path = folder.join("socket");
    let listener = fastproc_service::bind(&path).expect("nobody listens there");
    for _ in 0..2 {
        // A reader connects first, and waits.
        let arguments = [
            "ps",
            "--verbose",
            "--source=service",
            "--fields=pid",
            "--format=csv",
        ];
        let reader = common::fastproc(&arguments)
            .env("FASTPROC_SOCKET", &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        // Otherwise the service might end before it.
        wait_until("a reader has connected", || {
            let mut listening = [PollFd::new(&listener, PollFlags::IN)];
            match poll(&mut listening, Some(&Timespec::default())) {
                Ok(ready) => ready == 1,
                Err(Errno::INTR) => false,
                Err(error) => panic!("the socket: {error}"),
            }
        });
        let passed = Stdio::from(listener.try_clone().expect("a descriptor"));
        let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" serve --no-metrics --idle-exit 500ms";
        let service = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_fastproc")])
            .stdin(passed)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let shown = reader.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&shown.stderr);
        assert!(
            shown.status.success() && text.contains("from service"),
            "{text}"
        );
        assert!(String::from_utf8_lossy(&shown.stdout).contains("\n1\n"));
        // No reader is connected any more.
        let ended = service.wait_with_output().expect("it ends by itself");
        let text = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{text}");
        let says = "serving snapshots at the socket of systemd, from";
        assert!(text.contains(says), "{text}");
    }
    // Another descriptor is refused.
    let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" serve --no-metrics";
    let refused = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_fastproc")])
        .stdin(Stdio::null())
        .output()
        .expect("it can be started");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("systemd"));
}

#[test]
fn doctor_tells_of_the_service() {
    needs!(gate::root());
    let served = Served::start("doctor");
    for (uid, shares) in [(0, "everything"), (NOBODY, "what /proc shows everybody")] {
        let mut report = serde_json::Value::Null;
        // On a busy machine the walks for one user may already have used half of a second.
        wait_until("the service answers", || {
            let output = served.output(uid, &["doctor", "--json"]);
            report = serde_json::from_slice(&output).expect("JSON");
            report["source"] == "service"
        });
        let service = &report["service"];
        assert_eq!(service["pid"], served.child.id(), "{service}");
        assert_eq!(service["version"], env!("CARGO_PKG_VERSION"));
        let told = service["shares"].as_str().expect("it serves");
        assert!(told.starts_with(shares), "{uid}: {told}");
        assert_eq!(report["one_shot"]["source"], "service");
        assert!(report["processes"].as_u64() > Some(0), "{report}");
        if service["source"] != "procfs" {
            let exits = &report["exits"];
            assert_eq!(exits["recorded"], true, "{exits}");
            assert_eq!(exits["by_service"], uid != 0, "{exits}");
        }
    }
    let output = common::fastproc(&["doctor", "--json"])
        .env("FASTPROC_SOCKET", "/nowhere/socket")
        .output()
        .expect("it can be started");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["service"]["version"].is_null() && report["service"]["shares"].is_null());
    let error = report["service"]["error"].as_str().expect("why not");
    assert!(error.contains("no service at /nowhere/socket"), "{error}");
}

#[test]
fn without_a_service_there_is_a_typed_error_or_the_next_source() {
    let output = common::fastproc(&["ps", "--source", "service"])
        .env("FASTPROC_SOCKET", "/nowhere/socket")
        .output()
        .expect("it can be started");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("no service at /nowhere/socket"), "{text}");
    for command in ["ps", "cgroups"] {
        let output = common::fastproc(&[command, "--source", "service"])
            .env("FASTPROC_SOCKET", "")
            .output()
            .expect("it can be started");
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8_lossy(&output.stderr);
        let says_why = text.contains("FASTPROC_SOCKET is empty");
        assert!(says_why || text.contains("is not mounted"), "{text}");
    }
    let output = common::fastproc(&["ps", "--top", "1"])
        .env("FASTPROC_SOCKET", "/nowhere/socket")
        .output()
        .expect("it can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !text.contains("service"),
        "{text}"
    );
}
