//! The machine's counters, compared with `/proc`.

use std::fs;

use fastproc_testbed::wait_for;

use crate::serve::{exposition::Metrics, server::Server};

/// The numbers of a line of `/proc/stat`, by its first word.
fn proc_stat(line: &str) -> Vec<u64> {
    let text = fs::read_to_string("/proc/stat").expect("/proc is there");
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, numbers) = lines.find(|(word, _)| *word == line).expect("a line");
    numbers
        .split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect()
}

fn vmstat(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/vmstat").expect("/proc is there");
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(name, _)| *name == field).expect("a field");
    value.parse().expect("a number")
}

/// A counter is between the values of `/proc` before and after.
#[track_caller]
fn assert_between(metrics: &Metrics, name: &str, before: u64, after: u64) {
    let value = metrics
        .get(name, &[])
        .unwrap_or_else(|| panic!("no {name}"));
    assert!(
        (before as f64..=after as f64).contains(&value),
        "{name} is {value}, and not between {before} and {after}"
    );
}

#[test]
fn counters_are_what_proc_says() {
    let server = Server::start(&["--collector.interrupts"]);
    let ask = || {
        (
            proc_stat("ctxt")[0],
            proc_stat("processes")[0],
            vmstat("pgfault"),
            proc_stat("cpu"),
        )
    };
    let before = ask();
    // The kernel counts a fork a little before the event that is counted here.
    let metrics = wait_for("every fork that the kernel counted", || {
        let metrics = server.scrape();
        (metrics.get("node_forks_total", &[]) >= Some(before.1 as f64)).then_some(metrics)
    });
    let after = ask();
    assert_between(&metrics, "node_context_switches_total", before.0, after.0);
    assert_between(&metrics, "node_forks_total", before.1, after.1);
    assert_between(&metrics, "node_vmstat_pgfault", before.2, after.2);
    let boot = metrics
        .get("node_boot_time_seconds", &[])
        .expect("it is known");
    assert!((boot - proc_stat("btime")[0] as f64).abs() < 1.5, "{boot}");
    for (at, mode) in ["user", "nice", "system"].into_iter().enumerate() {
        let seconds: f64 = metrics
            .all("node_cpu_seconds_total", &[("mode", mode)])
            .sum();
        // In the text's sum each CPU is rounded down to a tick.
        let cpus = metrics
            .all("node_cpu_seconds_total", &[("mode", mode)])
            .count() as f64;
        let (low, high) = (before.3[at] as f64 / 100.0, after.3[at] as f64 / 100.0);
        assert!(
            seconds >= low - 0.01 * cpus && seconds <= high + 0.01 * (cpus + 1.0),
            "{mode}: {seconds}, and not from {low} to {high}"
        );
    }
    assert!(metrics.all("node_softirqs_total", &[]).count() >= 10);
    assert!(metrics.all("node_interrupts_total", &[]).count() > 0);
    assert!(metrics.get("node_procs_running", &[]).is_some());
    assert!(
        metrics
            .get("node_processes_pids", &[])
            .expect("it is known")
            >= 2.0
    );
    let max = fs::read_to_string("/proc/sys/kernel/pid_max").expect("/proc is there");
    assert_eq!(
        metrics.get("node_processes_max_processes", &[]),
        Some(max.trim().parse().expect("a number"))
    );
}

#[test]
fn each_part_is_switched_by_its_flag() {
    for (flag, prefix) in [
        ("--no-collector.cpu", "node_cpu_"),
        ("--no-collector.stat", "node_forks_"),
        ("--no-collector.stat.softirq", "node_softirqs_"),
        ("--no-collector.vmstat", "node_vmstat_"),
        ("--no-collector.processes", "node_processes_"),
    ] {
        let metrics = Server::start(&[flag, "--source", "procfs"]).scrape();
        let has = |prefix: &str| {
            metrics
                .families
                .iter()
                .any(|(name, _)| name.starts_with(prefix))
        };
        assert!(!has(prefix), "{flag}");
        let others = [
            "node_cpu_",
            "node_forks_",
            "node_softirqs_",
            "node_vmstat_",
            "node_processes_",
        ];
        for other in others.into_iter().filter(|other| *other != prefix) {
            assert!(has(other), "{flag} takes {other} away");
        }
        assert!(!has("node_interrupts_"));
    }
    let server = Server::start(&[
        "--collector.vmstat.fields",
        "^nr_free_pages$",
        "--source",
        "procfs",
    ]);
    let metrics = server.scrape();
    let fields = metrics
        .families
        .iter()
        .filter(|(name, _)| name.starts_with("node_vmstat_"));
    assert_eq!(fields.count(), 1);
    assert!(metrics.get("node_vmstat_nr_free_pages", &[]).is_some());
}
