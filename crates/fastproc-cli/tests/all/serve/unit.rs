//! The systemd unit.

use std::{
    fs::Permissions,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use fastproc_testbed::{gate, needs, wait_until};

use crate::serve::{FASTPROC, folder::Folder};

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// Settings that give a unit its own mount namespace: the service would refuse all readers.
#[test]
fn the_service_is_in_the_mount_namespace_of_its_readers() {
    let unit = std::fs::read_to_string(packaging().join("fastproc-snapshots.service"));
    let unit = unit.expect("the unit can be read");
    let kinds = "DynamicUser Private ProtectSystem ProtectHome ProtectKernel ProtectControl ProtectHostname \
        ProtectProc ProcSubset ReadOnly ReadWrite Inaccessible NoExec Exec Bind Root Mount TemporaryFile \
        Log";
    let settings = unit.lines().filter(|line| !line.starts_with('#'));
    for line in settings.filter(|line| !line.starts_with("ExecStart=")) {
        assert!(
            !kinds.split(' ').any(|kind| line.starts_with(kind)),
            "{line}"
        );
    }
    // Each has its own user, so a taken-over exporter cannot send signals to the service.
    let users = std::fs::read_to_string(packaging().join("fastproc.sysusers"));
    let users = users.expect("the users can be read");
    for (name, user) in [
        ("fastproc.service", "fastproc-exporter"),
        ("fastproc-snapshots.service", "fastproc"),
        ("fastproc-history.service", "fastproc-history"),
    ] {
        let unit = std::fs::read_to_string(packaging().join(name)).expect("the file is read");
        assert!(unit.contains(&format!("\nUser={user}\n")), "{name}");
        assert!(users.contains(&format!("\nu {user} ")), "{user}");
    }
}

/// In tenths of the exposure level of `systemd-analyze security`. 2 of them are for `sched_setattr`, which the process forbids
/// itself after the time slice is set.
#[test]
fn the_units_expose_no_more_than_they_must() {
    needs!(gate::programs(&["systemd-analyze"]));
    for (name, most) in [
        ("fastproc-snapshots.service", 35),
        ("fastproc.service", 21),
        ("fastproc-history.service", 21),
    ] {
        let output = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager"])
            .arg(format!("--threshold={most}"))
            .arg(packaging().join(name))
            .output()
            .expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("Overall exposure level"), "{output:?}");
        assert!(output.status.success(), "{text}");
    }
}

/// As the unit starts it: with a socket that another process has made, as its own user, with ambient capabilities.
#[test]
fn a_service_that_never_was_root_serves_everybody() {
    let needed = ["systemd-socket-activate", "setpriv"];
    needs!(gate::bpf(), gate::programs(&needed));
    let folder = Folder::new();
    let socket = folder.path().join("socket");
    let program = folder.programs();
    let capabilities = "-all,+bpf,+perfmon,+sys_ptrace,+dac_read_search";
    let mut service = Command::new(needed[0])
        .args(["--seqpacket", "--listen"])
        .arg(&socket)
        .args([
            "setpriv",
            "--reuid",
            USER,
            "--regid",
            USER,
            "--clear-groups",
        ])
        .arg(format!("--bounding-set={capabilities}"))
        .arg(format!("--inh-caps={capabilities}"))
        .arg(format!("--ambient-caps={capabilities}"))
        .arg("--no-new-privs")
        .arg(&program)
        .args(["serve", "--no-metrics", "--cpu-of-user=1000"])
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    wait_until("the socket", || socket.exists());
    let all = Permissions::from_mode(0o666);
    std::fs::set_permissions(&socket, all).expect("its mode is set");
    let own = std::process::id().to_string();
    let reads = |uid: u32| {
        let mut command = Command::new(&program);
        command
            .args(["ps", "--source", "service", "-o", "pid,startstack", "-p"])
            .args([&own, "--format", "csv", "--no-headers"])
            .env("FASTPROC_SOCKET", &socket)
            .env("FASTPROC_SERVICE_TIMEOUT_MS", "120000")
            .stderr(Stdio::null())
            .uid(uid)
            .gid(uid);
        let output = command.output().expect("the program starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // The first client starts it, and is not served: unlike systemd's, this socket does not pass credentials yet.
    let mut root = String::new();
    wait_until("it serves", || {
        root = reads(0);
        !root.is_empty()
    });
    // On a busy machine one walk may have used up a user's budget.
    let mut nobody = String::new();
    wait_until("it serves a user", || {
        nobody = reads(65534);
        !nobody.is_empty()
    });
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id()));
    service.kill().expect("a child");
    service.wait().expect("a child");
    let nothing = format!("{own},\n");
    assert!(root.starts_with(&format!("{own},")) && root != nothing);
    assert_eq!(nobody, nothing);
    let status = status.expect("it served");
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let ids = [USER; 4].join("\t");
    assert_eq!(line("Uid:\t"), Some(ids.as_str()));
    for set in ["CapEff:\t", "CapPrm:\t"] {
        assert_eq!(line(set), Some("000000c000080004"), "{status}");
    }
    assert_eq!(line("CapAmb:\t"), Some("0000000000000000"));
    // It executes nothing and opens no file for writing.
    assert_eq!(line("Seccomp:\t"), Some("2"));
}

const USER: &str = "61234";

#[test]
fn systemd_understands_the_units() {
    needs!(gate::programs(&["systemd-analyze"]));
    let folder = Folder::new();
    let units = [
        "fastproc.service",
        "fastproc-snapshots.service",
        "fastproc-history.service",
        "fastproc.socket",
    ];
    let paths = units.map(|name| {
        let unit = std::fs::read_to_string(packaging().join(name)).expect("the file is read");
        // systemd checks that the program exists: this one does, wherever the package would install it.
        let starts =
            ["serve", "record"].map(|command| format!("\nExecStart=/usr/bin/fastproc {command}"));
        let starts = starts.iter().any(|start| unit.contains(start));
        assert!(starts || name.ends_with(".socket"));
        let reloads = unit.contains("\nExecReload=/bin/kill -HUP $MAINPID\n");
        assert!(reloads || name != "fastproc.service");
        folder.write(name, &unit.replace("/usr/bin/fastproc", FASTPROC))
    });
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .args(&paths)
        .env("SYSTEMD_LOG_LEVEL", "warning")
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}
