//! Costly values: what `/proc` says, with an age, and only if they are asked for.

use std::fs;

use fastproc_zoo::gate;

use crate::{
    TMP,
    actor::Actor,
    exposition::Metrics,
    folder::Folder,
    server::{Server, status},
    wait::until,
};

const AGE: &str = "fastproc_namegroup_value_age_seconds";
const UNKNOWN: &str = "fastproc_namegroup_value_unknown_processes";
const WCHAN: &str = "namedprocess_namegroup_threads_wchan";

/// A group of this name alone, with all values that are costly.
fn start(folder: &Folder, name: &str, share: &str) -> Server {
    let config = folder.write(
        "groups.yml",
        &format!("process_names: [{{comm: [{name}], name: it}}]"),
    );
    Server::start(&[
        "--config",
        &config,
        "--children=false",
        "--gather-smaps",
        "--gather-fds",
        "--gather-wchan",
        "--costly-share",
        share,
    ])
}

fn known(metrics: &Metrics) -> bool {
    metrics.all(UNKNOWN, &[]).sum::<f64>() < 0.5
}

#[test]
fn values_are_what_proc_says_and_have_an_age() {
    const TEST: &str = "values_are_what_proc_says_and_have_an_age";
    let (folder, name) = (Folder::new(), format!("fpcost{}", std::process::id()));
    let mut actor = Actor::start(&folder, &name);
    actor.tell("exec 7</dev/null 8</dev/null; ulimit -Sn 50");
    let server = start(&folder, &name, "1");
    let proc = |file: &str| format!("/proc/{}/{file}", actor.pid());
    let open = fs::read_dir(proc("fd")).expect("it is ours").count() as f64;
    assert!(open >= 5.0);
    let kib = |line: &str| {
        let value = status(&proc("smaps_rollup"), line);
        value
            .trim_end_matches(" kB")
            .parse::<f64>()
            .expect("a number")
            * 1024.0
    };
    // It waits for orders; what is told of it becomes what /proc says.
    let metrics = until("all values are known and current", || {
        let metrics = server.scrape();
        let memory = |kind| {
            let labels = [("groupname", "it"), ("memtype", kind)];
            metrics.get("namedprocess_namegroup_memory_bytes", &labels)
        };
        let place = fs::read_to_string(proc("wchan")).expect("it is ours");
        let current = known(&metrics)
            && memory("proportionalResident") == Some(kib("Pss"))
            && memory("proportionalSwapped") == Some(kib("SwapPss"))
            && metrics.get(WCHAN, &[("groupname", "it"), ("wchan", &place)]) == Some(1.0);
        current.then_some(metrics)
    });
    assert_eq!(
        metrics.get("namedprocess_namegroup_open_filedesc", &[]),
        Some(open)
    );
    let ratio = metrics
        .get("namedprocess_namegroup_worst_fd_ratio", &[])
        .expect("it is known");
    assert!((ratio - open / 50.0).abs() < 1e-6, "{ratio}");
    for value in ["smaps", "fds", "wchan"] {
        let age = metrics
            .get(AGE, &[("value", value)])
            .expect("it has an age");
        assert!(age > 0.0, "{value}");
    }
    assert!(metrics.get("fastproc_costly_cpu_seconds_total", &[]) > Some(0.0));
    gate::ran(TEST, TMP);
}

#[test]
fn without_a_share_nothing_is_read_and_that_is_told() {
    let (folder, name) = (Folder::new(), format!("fpnone{}", std::process::id()));
    let _actor = Actor::start(&folder, &name);
    let server = start(&folder, &name, "0");
    server.scrape();
    let metrics = server.scrape();
    assert_eq!(metrics.all(UNKNOWN, &[]).collect::<Vec<_>>(), [1.0; 3]);
    assert_eq!(
        metrics.get("fastproc_costly_cpu_seconds_total", &[]),
        Some(0.0)
    );
    assert_eq!(metrics.all(WCHAN, &[]).count(), 0);
}

#[test]
fn nothing_costly_is_told_unless_it_is_asked_for() {
    let metrics = Server::start(&[]).scrape();
    for family in [
        AGE,
        UNKNOWN,
        WCHAN,
        "namedprocess_namegroup_open_filedesc",
        "fastproc_costly_cpu_seconds_total",
    ] {
        assert_eq!(metrics.all(family, &[]).count(), 0, "{family}");
    }
    let labels = [("memtype", "proportionalResident")];
    assert_eq!(
        metrics
            .all("namedprocess_namegroup_memory_bytes", &labels)
            .count(),
        0
    );
}
