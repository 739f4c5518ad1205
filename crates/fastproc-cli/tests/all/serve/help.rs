//! The help of the command.

use std::process::Command;

use fastproc_testbed::wait_until;

use crate::serve::{FASTPROC, client::Client, exposition::Metrics, server::Server};

#[track_caller]
fn help(flag: &str) -> String {
    let output = Command::new(FASTPROC)
        .args(["serve", flag])
        .output()
        .expect("it can be started");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

#[test]
fn examples_begin_with_the_command_and_have_only_flags_that_there_are() {
    let text = help("--help");
    let (_, examples) = text.split_once("Examples").expect("there are examples");
    let mut commands = 0;
    for line in examples
        .lines()
        .filter(|line| line.contains("fastproc serve"))
    {
        commands += 1;
        for flag in line
            .split_whitespace()
            .filter(|word| word.starts_with("--"))
        {
            let flag = flag.split('=').next().expect("a flag");
            assert!(
                text.contains(&format!("{flag} ")) || text.contains(&format!("{flag}[")),
                "{flag} in {line}"
            );
        }
    }
    assert!(commands >= 4, "{examples}");
    for word in [
        "openssl req",
        "cert_file",
        "basic_auth_users",
        "scrape_configs",
    ] {
        assert!(examples.contains(word), "no {word}");
    }
}

/// Flags of process-exporter under their names, with a single dash as in its documentation.
#[test]
fn its_flags_are_known_here() {
    let arguments = [
        "-web.listen-address=127.0.0.1:0",
        "-web.telemetry-path=/other",
        "-procnames=a,b",
        "-namemapping",
        "c,-x(y)",
        "-children=0",
        "-threads=F",
        "-gather-smaps=false",
        "-recheck=1",
        "-recheck-with-time-limit=10s",
        "-remove-empty-groups=f",
        "-procfs=/proc",
        "-debug",
        "--source=procfs",
    ];
    let server = Server::start(&arguments);
    assert_eq!(server.get("/metrics", &[]).status, 404);
    assert_eq!(server.get("/other", &[]).status, 200);
    assert!(server.get("/", &[]).text().contains("<a href=\"/other\">"));
    assert!(server.stderr().contains("processes are grouped by"));
    assert!(help("-version").starts_with("fastproc"));
}

/// A command line as in the units of `node_exporter`.
#[test]
fn flags_of_node_exporter_are_accepted_and_those_without_effect_named_in_one_line() {
    let server = Server::start(&[
        "--web.listen-address=127.0.0.1:0",
        "--web.listen-address=127.0.0.1:0",
        "--path.procfs=/proc",
        "--path.sysfs=/sys",
        "--path.rootfs=/",
        "--path.udev.data=/run/udev/data",
        "--collector.disable-defaults",
        "--collector.loadavg",
        "--collector.mdadm",
        "--no-collector.wifi",
        "--collector.filesystem.ignored-mount-points=^/x",
        "--web.max-requests=40",
        "--log.level=info",
        "--log.format=logfmt",
        "--source=procfs",
    ]);
    let text = server.stderr();
    let remarks: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("no effect"))
        .collect();
    assert_eq!(
        remarks,
        [
            "fastproc: these flags of other exporters have no effect here: --collector.mdadm, --log.format, --log.level, \
             --path.udev.data, --web.max-requests"
        ]
    );
    // Both addresses are served.
    wait_until("it has named both addresses", || {
        server.stderr().matches("serving http://").count() == 2
    });
    let text = server.stderr();
    let addresses = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("serving http://")?;
        Some(rest.split_once('/')?.0)
    });
    for address in addresses {
        let metrics = Client::connect(address).get("/metrics", &[]);
        let metrics = Metrics::parse(metrics.text());
        assert!(metrics.get("node_load1", &[]).is_some(), "{address}");
        assert_eq!(metrics.get("node_boot_time_seconds", &[]), None);
    }
}

#[test]
fn metrics_can_be_had_once_without_a_server() {
    let output = Command::new(FASTPROC)
        .args([
            "serve",
            "-once-to-stdout-delay=10ms",
            "-procnames=serve",
            "--source=procfs",
        ])
        .output()
        .expect("it can be started");
    assert!(output.status.success(), "{output:?}");
    let metrics = Metrics::parse(std::str::from_utf8(&output.stdout).expect("it is UTF-8"));
    assert_eq!(metrics.get("fastproc_snapshots_total", &[]), Some(2.0));
}

/// The message names the option.
#[test]
fn wrong_values_are_refused() {
    for (option, value, reason) in [
        ("--web.telemetry-path", "metrics", "begins with /"),
        (
            "--collector.netdev.device-exclude",
            "(",
            "not a regular expression",
        ),
        ("--collector.vmstat.fields", "(", "not a regular expression"),
    ] {
        let output = Command::new(FASTPROC)
            .args(["serve", option, value])
            .output()
            .expect("it can be started");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            message.contains(option) && message.contains(reason),
            "{message}"
        );
    }
}
