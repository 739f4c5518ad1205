//! Obstacles at the start: few descriptors, and an early signal.

use std::{
    fs,
    process::{Command, Stdio},
};

use fastproc_testbed::{gate, needs, wait_until};
use rustix::process::{Pid, Signal, kill_process};

use crate::serve::{
    FASTPROC,
    actor::Actor,
    folder::Folder,
    server::{Server, refused},
};

/// A shell that sets a limit of descriptors, and executes the program that follows.
fn limited(limit: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    command.args(["-c", &script]);
    command
}

/// The soft limit is raised. With a low hard limit, which only root may raise, less is kept open.
#[test]
fn few_descriptors_are_made_more_or_made_do_with() {
    needs!(gate::root());
    let (folder, name) = (Folder::new(), format!("fpfew{}", std::process::id()));
    let _actor = Actor::start(&folder, &name);
    for limit in ["-Sn 20", "-n 64"] {
        for source in ["auto", "procfs"] {
            let server = Server::start_by(limited(limit).arg(FASTPROC), &["--source", source]);
            let group = [("groupname", &*name)];
            // Files that stay open from the first scrape on leave some descriptors for connections.
            for _ in 0..4 {
                let procs = server
                    .scrape()
                    .get("namedprocess_namegroup_num_procs", &group);
                assert_eq!(procs, Some(1.0), "{limit} {source}: {}", server.stderr());
            }
        }
    }
}

#[test]
fn too_few_descriptors_are_named() {
    needs!(gate::root(), gate::programs(&["setpriv"]));
    let folder = Folder::new();
    let program = folder.programs();
    let mut command = limited("-n 20");
    command
        .args(["setpriv", "--bounding-set=-sys_resource"])
        .args(["--inh-caps=-sys_resource"])
        .arg(&program)
        .args(["serve", "--listen", "127.0.0.1:0"]);
    let stderr = refused(&mut command);
    assert!(
        stderr.contains("ulimit -n") && stderr.contains("20"),
        "{stderr}"
    );
}

#[test]
fn a_signal_while_it_starts_ends_it_well() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut child = Command::new(FASTPROC)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be started");
        let file = |name: &str| format!("/proc/{}/{name}", child.id());
        wait_until("it handles the signal", || {
            let status = fs::read_to_string(file("status")).expect("/proc shows the process");
            let caught = status
                .lines()
                .find_map(|line| line.strip_prefix("SigCgt:\t"));
            let caught = caught.and_then(|mask| u64::from_str_radix(mask, 16).ok());
            caught.expect("a mask") >> (signal.as_raw() - 1) & 1 == 1
        });
        kill_process(Pid::from_child(&child), signal).expect("the signal is sent");
        let ended = child.wait().expect("the child ends");
        assert_eq!(ended.code(), Some(0), "{ended:?}");
    }
}

/// As in its Docker command: the machine's /proc is mounted elsewhere. The exporter may not mount anything.
#[test]
fn proc_may_be_mounted_elsewhere() {
    needs!(gate::root(), gate::programs(&["unshare", "setpriv"]));
    let (folder, name) = (Folder::new(), format!("fphost{}", std::process::id()));
    let _actor = Actor::start(&folder, &name);
    let host = folder.path().join("proc");
    fs::create_dir(&host).expect("it can be made");
    let host = host.to_str().expect("UTF-8");
    let mut command = Command::new("unshare");
    // The shell stays: killing unshare kills it, and with it the whole namespace. The service has another user by then,
    // and would survive.
    let script = format!(
        "mount --bind /proc {host} && mount -t proc proc /proc && setpriv --bounding-set=-sys_admin -- \"$0\" \"$@\"; exit $?"
    );
    command.args([
        "--pid",
        "--fork",
        "--kill-child",
        "--mount",
        "sh",
        "-c",
        &script,
        FASTPROC,
    ]);
    let server = Server::start_by(&mut command, &["-procfs", host]);
    let group = [("groupname", &*name)];
    let procs = server
        .scrape()
        .get("namedprocess_namegroup_num_procs", &group);
    assert_eq!(procs, Some(1.0));
}

#[test]
fn a_taken_address_and_a_pipe_for_a_file_are_refused_with_a_reason() {
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a new folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    let pipe = pipe.to_str().expect("UTF-8");
    for (arguments, reason) in [
        (
            ["--listen", "127.0.0.1:0", "--web.config.file", pipe],
            "it is not a regular file",
        ),
        (["--source", "procfs", "--listen", &taken], "cannot listen"),
    ] {
        let stderr = refused(Command::new(FASTPROC).arg("serve").args(arguments));
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
    }
}
