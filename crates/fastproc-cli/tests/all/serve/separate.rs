//! Two processes: one collects, and one talks to the network.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use fastproc_testbed::{gate, needs, wait_until};
use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{Pid, Signal, kill_process},
};

use crate::serve::{
    FASTPROC,
    folder::Folder,
    security::{code, curl, web_config},
    server::{Server, refused, status},
};

/// The targets of a process's descriptors.
#[track_caller]
fn descriptors(pid: u32) -> Vec<String> {
    let folder = fs::read_dir(format!("/proc/{pid}/fd")).expect("/proc shows the process");
    let links = folder.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links.map(|link| link.display().to_string()).collect()
}

/// The socket that listens at this port.
#[track_caller]
fn listens_at(port: &str) -> String {
    let port: u16 = port.parse().expect("a port");
    let table = fs::read_to_string("/proc/net/tcp").expect("/proc is mounted");
    let mut rows = table.lines().map(|line| line.split_ascii_whitespace());
    let inode = rows.find_map(|mut row| {
        let local = row.nth(1)?;
        let listens = row.nth(1)? == "0A";
        let inode = row.nth(5)?;
        (listens && local.ends_with(&format!(":{port:04X}"))).then(|| inode.to_owned())
    });
    format!("socket:[{}]", inode.expect("the socket is bound"))
}

pub fn is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

#[track_caller]
pub fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid as i32).expect("a process");
    kill_process(pid, signal).expect("the signal is sent");
}

#[test]
fn the_exporter_process_holds_no_privileges_and_opens_nothing() {
    needs!(gate::root(), gate::programs(&["curl", "openssl"]));
    let folder = Folder::new();
    let web = web_config(&folder);
    // Whoever starts it leaves a descriptor open.
    let left = File::open(&web).expect("it was written");
    fcntl_setfd(&left, FdFlags::empty()).expect("it is open");
    let server = Server::start(&["--web.config.file", &web]);
    drop(left);
    let trust = folder.path().join("server.pem");
    let trust = trust.to_str().expect("UTF-8");
    let answered = curl(
        &folder,
        &server,
        &["--cacert", trust, "--user", "reader:s3cret"],
    );
    assert_eq!(code(&answered), 200);

    let exporter = server.exporter();
    let tasks = fs::read_dir(format!("/proc/{exporter}/task")).expect("/proc shows the process");
    for task in tasks {
        let path = task.expect("/proc shows the process").path().join("status");
        // A thread that checked a password exits when it has been idle for a while.
        if !path.exists() {
            continue;
        }
        let of = |name: &str| status(path.to_str().expect("UTF-8"), name);
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(of(set), "0000000000000000", "{set}");
        }
        assert!(!of("Uid").split_ascii_whitespace().any(|uid| uid == "0"));
        assert_eq!(of("Groups"), "");
        assert_eq!(
            (of("NoNewPrivs").as_str(), of("Seccomp").as_str()),
            ("1", "2")
        );
    }
    // It has no terminal to type into.
    let session =
        rustix::process::getsid(Pid::from_raw(exporter as i32)).expect("the process has a session");
    assert_eq!(session.as_raw_nonzero().get(), exporter as i32);
    // The key and the passwords were read by the other process.
    let open = descriptors(exporter);
    let files: Vec<_> = open.iter().filter(|link| link.starts_with('/')).collect();
    let own = format!("/proc/{exporter}/statm");
    // Its log is that of the other process.
    let log = fs::read_link(format!("/proc/{exporter}/fd/2")).expect("it has one");
    let log = log.display().to_string();
    let allowed = |link: &String| {
        link == "/dev/null" || *link == own || *link == log || link.starts_with("/memfd:")
    };
    assert!(files.iter().all(|link| allowed(link)), "{files:?}");

    // No network traffic reaches the process with privileges, and the exporter executes nothing.
    let (_, port) = server.address.rsplit_once(':').expect("a port");
    let listener = listens_at(port);
    assert!(open.contains(&listener), "{listener}: {open:?}");
    assert!(!descriptors(server.pid()).contains(&listener));
    let collecting = format!("/proc/{}/status", server.pid());
    assert_eq!(status(&collecting, "Seccomp"), "2");
}

#[test]
fn neither_process_is_left_without_the_other() {
    let server = Server::start(&["--source=procfs"]);
    let exporter = server.exporter();
    send(server.pid(), Signal::KILL);
    wait_until("the exporter ends as well", || is_gone(exporter));

    let server = Server::start(&["--source=procfs"]);
    send(server.exporter(), Signal::KILL);
    let (status, stderr) = server.wait();
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("fastproc-exporter has failed"), "{stderr}");
}

/// Starts `fastproc serve` with a script in place of the exporter, which ignores SIGTERM, reports that it is
/// configured, and then continues with these words.
fn serve_with(exporter: &str, patience: &str) -> Server {
    let folder = Folder::new();
    let program = folder.copy(FASTPROC, "fastproc");
    let configured = if cfg!(target_endian = "big") {
        "\\0\\0\\0\\0\\0\\0\\0\\4"
    } else {
        "\\4\\0\\0\\0\\0\\0\\0\\0"
    };
    let zeros = "\\0".repeat(24);
    let script = format!("#!/bin/sh\ntrap '' TERM\nprintf '{configured}{zeros}' >&0\n{exporter}\n");
    let script = folder.write("script", &script);
    folder.copy(&script, "fastproc-exporter");
    let arguments = ["--source=procfs", "--end-within", patience];
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        // The same user for both, as the exporter becomes it: no other user may end it.
        command.uid(4321).gid(4321);
    }
    Server::start_only(&mut command, &arguments).0
}

#[test]
fn an_exporter_that_ignores_sigterm_is_killed_and_both_end() {
    needs!(gate::programs(&["setpriv"]));
    // It reads nothing, so its link stays open as well.
    let server = serve_with("exec setpriv --pdeathsig KILL sleep infinity", "1s");
    let exporter = server.exporter();
    let (status, stderr) = server.end(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{stderr}");
    wait_until("the exporter has ended", || is_gone(exporter));
}

#[test]
fn an_exporter_that_closes_its_link_and_lives_on_is_killed() {
    // It learns that there is a link, but does not take its descriptor.
    let server = serve_with("exec cat <&0 >/dev/null", "1s");
    let (status, stderr) = server.wait();
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("has failed: signal: 9"), "{stderr}");
}

#[test]
fn the_status_and_doctor_tell_both_processes() {
    let folder = Folder::new();
    let socket = folder.path().join("socket");
    let socket = socket.to_str().expect("UTF-8");
    let server = Server::start(&["--source=procfs", "--socket", socket]);
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(FASTPROC);
        command.args(arguments).env("FASTPROC_SOCKET", socket);
        // A CPU may stall for longer than the command waits.
        command.env("FASTPROC_SERVICE_TIMEOUT_MS", "120000");
        let output = command.output().expect("it can be started");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it prints text")
    };
    let status = ask(&["serve", "--status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).expect("it is JSON");
    assert_eq!(status["pid"], server.pid());
    assert_eq!(status["exporter"], server.exporter());
    let both = format!(
        "process {}, and {} serves metrics",
        server.pid(),
        server.exporter()
    );
    let told = ask(&["doctor"]);
    assert!(told.contains(&both), "{told}");
}

#[test]
fn without_the_program_that_serves_it_says_what_to_install() {
    let folder = Folder::new();
    let program = folder.copy(FASTPROC, "fastproc");
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--source=procfs"]);
    let stderr = refused(command.env("PATH", folder.path()));
    assert!(
        stderr.contains("fastproc-exporter is not installed") && stderr.lines().count() == 1,
        "{stderr}"
    );
}

#[test]
fn started_by_hand_the_exporter_is_fastproc_serve() {
    let exporter: PathBuf = Path::new(FASTPROC).with_file_name("fastproc-exporter");
    let by = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        let output = output.expect("it can be started");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it prints text")
    };
    let text = by(
        &exporter,
        &[
            "-procnames",
            "no-such-name",
            "--source=procfs",
            "--once-to-stdout-delay=1ms",
        ],
    );
    assert!(text.contains("\nfastproc_build_info{"), "{text}");
    assert!(!text.contains("node_"), "its flags were Go's: {text}");
    assert_eq!(
        by(&exporter, &["--help"]),
        by(Path::new(FASTPROC), &["serve", "--help"])
    );
}
