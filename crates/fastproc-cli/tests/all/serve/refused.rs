//! Metrics of the service of snapshots that runs in the same process.

use std::{os::unix::process::CommandExt, path::Path, process::Command};

use fastproc::{Collector, SourceKind};
use fastproc_testbed::{gate, needs, wait_until};

use crate::serve::{FASTPROC, folder::Folder, server::Server};

const USER: u32 = 54_321;
const REFUSED: &str = "fastproc_service_refused_total";
const CONNECTIONS: &str = "fastproc_service_connections";
const LENT: &str = "fastproc_service_lent_bytes";

/// The count in the status of the service.
#[track_caller]
fn over_budget(socket: &Path) -> u64 {
    let output = Command::new(FASTPROC)
        .args(["serve", "--status", "--json"])
        .env("FASTPROC_SOCKET", socket)
        .output()
        .expect("it can be started");
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let count = status.pointer(&format!("/users/{USER}/over_budget_total"));
    count.and_then(serde_json::Value::as_u64).unwrap_or(0)
}

#[test]
fn a_user_that_the_service_refuses_is_named_by_the_metrics() {
    needs!(gate::root());
    let folder = Folder::new();
    let program = folder.programs();
    let socket = folder.path().join("socket");
    let path = socket.to_str().expect("UTF-8");
    let server = Server::start(&["--source=procfs", "--cpu-of-user=0.001", "--socket", path]);
    let user = USER.to_string();
    let of_user = [("user", &*user), ("reason", "over_budget")];
    let before = server.scrape();
    assert_eq!(before.get(REFUSED, &of_user), None);
    let of_others = [("user", "other"), ("reason", "over_budget")];
    assert_eq!(before.get(REFUSED, &of_others), Some(0.0));
    wait_until("it is refused", || {
        Command::new(&program)
            .args(["ps", "--source=service"])
            .env("FASTPROC_SOCKET", &socket)
            .uid(USER)
            .gid(USER)
            .current_dir("/")
            .output()
            .expect("it can be started");
        over_budget(&socket) > 0
    });
    // No more requests come.
    let told = server.scrape();
    assert_eq!(
        told.get(REFUSED, &of_user),
        Some(over_budget(&socket) as f64)
    );
    let blocked = [("user", &*user), ("reason", "blocked")];
    assert_eq!(told.get(REFUSED, &blocked), Some(0.0));
}

#[test]
fn the_metrics_tell_who_is_connected_and_what_is_lent() {
    let folder = Folder::new();
    let socket = folder.path().join("socket");
    let path = socket.to_str().expect("UTF-8");
    let server = Server::start(&["--source=procfs", "--socket", path]);
    let gauges = || {
        let metrics = server.scrape();
        let [connections, lent] = [CONNECTIONS, LENT].map(|name| metrics.get(name, &[]));
        (connections.expect("a gauge"), lent.expect("a gauge"))
    };
    assert_eq!(gauges(), (0.0, 0.0));
    let mut reader = Collector::builder()
        .source(Some(SourceKind::Service))
        .service_socket(Some(socket.clone()))
        .open()
        .expect("the server listens");
    let records = reader.snapshot().expect("an answer").iter().count();
    wait_until("its snapshot is lent", || {
        let (connections, lent) = gauges();
        (connections - 1.0).abs() < 0.5 && lent >= records as f64
    });
    drop(reader);
    wait_until("it has gone", || gauges() == (0.0, 0.0));
}
