//! Reloading the configuration: by SIGHUP, and by a request if that is allowed.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
};

use fastproc_testbed::{Running, gate, needs, wait_until};
use rustix::process::{Pid, Signal, kill_process};

use crate::serve::{
    FASTPROC,
    actor::Actor,
    exposition::Metrics,
    folder::Folder,
    security::{certificate, code, curl, web_config},
    server::Server,
};

const SUCCESSFUL: &str = "fastproc_config_last_reload_successful";
const AT: &str = "fastproc_config_last_reload_success_timestamp_seconds";

#[track_caller]
fn hang_up(server: &Server) {
    let pid = Pid::from_raw(server.pid() as i32).expect("a process");
    kill_process(pid, Signal::HUP).expect("the signal is sent");
}

/// A configuration with a group of this name for the process.
fn group_of(name: &str, called: &str) -> String {
    format!("process_names:\n- comm: [{name}]\n  name: '{called}'\n")
}

fn procs(metrics: &Metrics, group: &str) -> Option<f64> {
    metrics.get("namedprocess_namegroup_num_procs", &[("groupname", group)])
}

fn cpu(metrics: &Metrics, group: &str) -> f64 {
    let labels = [("groupname", group)];
    let sum: f64 = metrics
        .all("namedprocess_namegroup_cpu_seconds_total", &labels)
        .sum();
    // In floating point the sum of 0.09 and 0.01 is less than 0.1.
    (sum * 1e9).round() / 1e9
}

#[track_caller]
fn own(metrics: &Metrics, name: &str) -> f64 {
    metrics
        .get(name, &[])
        .unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn groups_are_named_anew_and_connections_go_on() {
    let folder = Folder::new();
    let [moves, stays] = ["ma", "mb"].map(|tag| format!("fp{tag}{}", std::process::id()));
    let rules = |called: &str| {
        let rest = group_of(&stays, "stays").replace("process_names:\n", "");
        group_of(&moves, called) + &rest
    };
    let config = folder.write("groups.yml", &rules("before"));
    let server = Server::start(&["--config", &config, "--children=false", "--source=procfs"]);
    // They start after the server, so everything they do is counted.
    let mut moving = Actor::start(&folder, &moves);
    let mut staying = Actor::start(&folder, &stays);
    let mut client = server.connect();
    let mut scrape = || Metrics::parse(client.get("/metrics", &[]).text());
    let first = scrape();
    assert_eq!(procs(&first, "before"), Some(1.0));
    assert!((own(&first, SUCCESSFUL) - 1.0).abs() < 0.1);
    for actor in [&mut moving, &mut staying] {
        actor.spend(10);
    }
    let counted = scrape();
    assert!(cpu(&counted, "before") >= 0.1 && cpu(&counted, "stays") >= 0.1);

    folder.write("groups.yml", &rules("after"));
    hang_up(&server);
    let mut last = None;
    wait_until("the new group is told", || {
        let metrics = scrape();
        let told = procs(&metrics, "after") == Some(1.0);
        last = Some(metrics);
        told
    });
    let last = last.expect("it was scraped");
    assert_eq!(procs(&last, "before"), None);
    assert_eq!(procs(&last, "stays"), Some(1.0));
    assert!(own(&last, AT) > own(&first, AT));
    // Nothing is counted twice, and a remaining group continues to count.
    assert!(cpu(&last, "after") < 0.1);
    assert!(cpu(&last, "stays") >= cpu(&counted, "stays"));
    moving.spend(10);
    assert!(cpu(&scrape(), "after") >= 0.09);
    wait_until("it says so", || {
        server.stderr().contains("the configuration was read again")
    });
}

#[test]
fn a_wrong_file_changes_nothing_and_is_told() {
    let folder = Folder::new();
    let name = format!("fpmw{}", std::process::id());
    let _actor = Actor::start(&folder, &name);
    let config = folder.write("groups.yml", &group_of(&name, "right"));
    let server = Server::start(&["--config", &config, "--source=procfs"]);
    let first = server.scrape();
    for wrong in [
        Some("process_names:\n- comm: [a]\n  cmdline: ['(']\n"),
        Some("process_names: {\n"),
        // A file that is being written.
        Some(""),
        None,
    ] {
        match wrong {
            Some(text) => drop(folder.write("groups.yml", text)),
            None => fs::remove_file(&config).expect("the file is removed"),
        }
        let before = server.stderr().len();
        hang_up(&server);
        let stays = "the configuration stays as it was";
        wait_until("it says so", || server.stderr()[before..].contains(stays));
        assert!(server.stderr()[before..].contains("groups.yml"));
        let metrics = server.scrape();
        assert!(own(&metrics, SUCCESSFUL) < 0.1, "{wrong:?}");
        assert!((own(&metrics, AT) - own(&first, AT)).abs() < 1e-9);
        assert_eq!(procs(&metrics, "right"), Some(1.0));
    }
    folder.write("groups.yml", &group_of(&name, "right"));
    hang_up(&server);
    wait_until("the file is right again", || {
        own(&server.scrape(), SUCCESSFUL) > 0.9
    });
}

/// Only root may read the key, and the server is no longer root.
#[test]
fn users_and_certificates_are_read_again_and_never_taken_away() {
    needs!(gate::root(), gate::programs(&["curl", "openssl"]));
    let folder = Folder::new();
    let web = web_config(&folder);
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    // Without costly values, and with BPF, it keeps privileges only for the configuration.
    let server = Server::start(&[
        "--web.config.file",
        &web,
        "--gather-fds=false",
        "--gather-wchan=false",
    ]);
    fs::copy(path("server.pem"), path("old.pem")).expect("the file can be copied");
    let ask = |trust: &str, user: &str| {
        code(&curl(
            &folder,
            &server,
            &["--cacert", &path(trust), "--user", user],
        ))
    };
    assert_eq!(ask("old.pem", "reader:s3cret"), 200);
    certificate(&folder, "server", None);
    let hash = bcrypt::hash("other", 4).expect("it can be hashed");
    let text = fs::read_to_string(&web).expect("the file is read");
    let (tls, _) = text.split_once("basic_auth_users").expect("it has users");
    folder.write(
        "web.yml",
        &format!("{tls}basic_auth_users:\n  writer: {hash}\n"),
    );
    hang_up(&server);
    wait_until("the new certificate is used", || {
        ask("server.pem", "writer:other") == 200
    });
    assert_eq!(ask("old.pem", "writer:other"), 0);
    assert_eq!(ask("server.pem", "reader:s3cret"), 401);
    // A file that is empty for a moment removes no protection.
    for text in ["", tls] {
        let before = server.stderr().len();
        folder.write("web.yml", text);
        hang_up(&server);
        wait_until("it refuses", || {
            server.stderr()[before..].contains("restart")
        });
        assert_eq!(ask("server.pem", "writer:other"), 200);
        assert_eq!(ask("server.pem", "reader:s3cret"), 401);
    }
}

/// Of two pending signals the one with the lower number is delivered first, here SIGHUP.
#[test]
fn a_service_of_snapshots_survives_a_hangup() {
    let folder = Folder::new();
    let socket = folder.path().join("socket");
    let mut service = Command::new(FASTPROC);
    service
        .args(["serve", "--no-metrics", "--source=procfs", "--socket"])
        .arg(&socket)
        .stderr(Stdio::null());
    let mut service = Running::start(&mut service);
    wait_until("it listens", || socket.exists());
    let pid = Pid::from_child(&service);
    kill_process(pid, Signal::HUP).expect("the signal is sent");
    kill_process(pid, Signal::TERM).expect("the signal is sent");
    let status = service.wait().expect("the child ends");
    assert_ne!(status.signal(), Some(Signal::HUP.as_raw()));
    assert!(status.success() || status.signal() == Some(Signal::TERM.as_raw()));
}
