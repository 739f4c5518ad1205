//! Costly values: those of `/proc`, with an age, and only if enabled.

use std::fs;

use fastproc_testbed::{gate, wait_for, wait_until};

use crate::serve::{
    actor::Actor,
    exposition::Metrics,
    folder::Folder,
    server::{Server, status},
};

const AGE: &str = "fastproc_namegroup_value_age_seconds";
const UNKNOWN: &str = "fastproc_namegroup_value_unknown_processes";
const WCHAN: &str = "namedprocess_namegroup_threads_wchan";

/// A server with only a group of this name, and all costly values.
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
    let (folder, name) = (Folder::new(), format!("fpcost{}", std::process::id()));
    let mut actor = Actor::start(&folder, &name);
    actor.tell("exec 7</dev/null 8</dev/null; ulimit -Sn 50");
    let server = start(&folder, &name, "1");
    let proc = |file: &str| format!("/proc/{}/{file}", actor.pid());
    let open = fs::read_dir(proc("fd"))
        .expect("/proc shows the process")
        .count() as f64;
    assert!(open >= 5.0);
    let kib = |line: &str| {
        let value = status(&proc("smaps_rollup"), line);
        value
            .trim_end_matches(" kB")
            .parse::<f64>()
            .expect("a number")
            * 1024.0
    };
    // It waits for commands; its share of shared memory changes with other processes. Reported values were read after
    // the scrape before.
    let proportional = || [kib("Pss"), kib("SwapPss")];
    let mut before = proportional();
    let metrics = wait_for("all values are known and current", || {
        let start = proportional();
        let metrics = server.scrape();
        let end = proportional();
        let memory = |kind| {
            let labels = [("groupname", "it"), ("memtype", kind)];
            metrics.get("namedprocess_namegroup_memory_bytes", &labels)
        };
        let told = [
            memory("proportionalResident"),
            memory("proportionalSwapped"),
        ];
        let between = told
            .iter()
            .zip(before.iter().zip(end))
            .all(|(told, (&before, end))| {
                told.is_some_and(|told| (before.min(end)..=before.max(end)).contains(&told))
            });
        before = start;
        let place = fs::read_to_string(proc("wchan")).expect("/proc shows the process");
        let current = known(&metrics)
            && between
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
    let age = |value| metrics.get(AGE, &[("value", value)]);
    assert!(age("smaps") > Some(0.0));
    // If the process has not run since, they are unchanged.
    assert!(age("fds").is_some() && age("wchan").is_some());
    assert!(metrics.get("fastproc_costly_cpu_seconds_total", &[]) > Some(0.0));
    gate::ran();
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
    for absent in [
        WCHAN,
        "namedprocess_namegroup_open_filedesc",
        "namedprocess_namegroup_worst_fd_ratio",
    ] {
        assert_eq!(metrics.all(absent, &[]).count(), 0, "{absent}");
    }
    let proportional = [("memtype", "proportionalResident")];
    let memory = "namedprocess_namegroup_memory_bytes";
    assert_eq!(metrics.all(memory, &proportional).count(), 0);
}

/// Descriptors and waiting places are enabled by default, and known at the first scrape, for existing and for new
/// processes.
#[test]
fn descriptors_are_never_zero_because_nobody_has_looked() {
    const OPEN: &str = "namedprocess_namegroup_open_filedesc";
    let (folder, id) = (Folder::new(), std::process::id());
    let (old, new) = (format!("fpold{id}"), format!("fpnew{id}"));
    let many = "for fd in 100 101 102 103 104 105 106 107; do eval \"exec $fd</dev/null\"; done";
    let mut first = Actor::start_with(&folder, &old, "/bin/bash");
    first.tell(many);
    let server = Server::start(&[]);
    let open = |group: &str| server.scrape().get(OPEN, &[("groupname", group)]);
    let of = |actor: &Actor| {
        let fds =
            fs::read_dir(format!("/proc/{}/fd", actor.pid())).expect("/proc shows the process");
        fds.count() as f64
    };
    assert_eq!(open(&old), Some(of(&first)));
    let mut second = Actor::start_with(&folder, &new, "/bin/bash");
    second.tell(many);
    assert_eq!(open(&new), Some(of(&second)));
    let group = [("groupname", &*new)];
    let worst = server
        .scrape()
        .get("namedprocess_namegroup_worst_fd_ratio", &group);
    assert!(worst > Some(0.0));
    // It waits for its next command, once it had the CPU to get there.
    wait_until("it waits", || {
        let places: Vec<f64> = server.scrape().all(WCHAN, &group).collect();
        places == [1.0]
    });
    // A process that has run since is read again.
    second.tell("exec 120</dev/null 121</dev/null");
    wait_until("the new ones are counted", || {
        open(&new) == Some(of(&second))
    });
}

#[test]
fn nothing_costly_is_told_if_it_is_turned_off() {
    let metrics = Server::start(&["--gather-fds=false", "--gather-wchan=false"]).scrape();
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
