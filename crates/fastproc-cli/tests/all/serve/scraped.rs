//! Scraped by a real Prometheus.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use fastproc_testbed::{gate, needs, wait_until};

use crate::serve::{
    actor::Actor, folder::Folder, prometheus::Prometheus, security, server::Server,
};

/// The messages of `promtool check metrics` for a text.
#[track_caller]
fn promtool(text: &[u8]) -> Vec<String> {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(text).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    stderr.lines().map(str::to_owned).collect()
}

/// Names from process-exporter that dashboards use; promtool objects to them there, too.
const HISTORICAL: [&str; 4] = [
    "namedprocess_namegroup_thread_count non-histogram and non-summary metrics should not have \"_count\" suffix",
    "namedprocess_scrape_errors counter metrics should have \"_total\" suffix",
    "namedprocess_scrape_partial_errors counter metrics should have \"_total\" suffix",
    "namedprocess_scrape_procread_errors counter metrics should have \"_total\" suffix",
];

#[test]
fn promtool_finds_nothing_but_historical_names() {
    needs!(gate::programs(&["promtool"]));
    let folder = Folder::new();
    let socket = folder.path().join("socket");
    let server = Server::start(&[
        "--socket",
        socket.to_str().expect("UTF-8"),
        "--gather-smaps",
        "--gather-fds",
        "--gather-wchan",
        "--collector.interrupts",
    ]);
    // Costly values exist from the second scrape on.
    server.scrape();
    let text = server.get("/metrics", &[]).body;
    let mut stderr = promtool(&text);
    // The names are node_exporter's, which copies the kernel's, so they depend on the machine. Texts and types are
    // ours.
    let of_names = ["should", "use base unit"];
    stderr.retain(|line| {
        !(line.starts_with("node_") && of_names.iter().any(|word| line.contains(word)))
    });
    stderr.sort();
    assert_eq!(stderr, HISTORICAL);
}

#[test]
fn prometheus_scrapes_it_in_plain_text_and_by_tls() {
    needs!(gate::programs(&["prometheus", "openssl"]));
    let folder = Folder::new();
    let name = format!("fpprom{}", std::process::id());
    let plain = Server::start(&[]);
    let secured = Server::start(&[
        "--web.config.file",
        &security::web_config(&folder),
        "--source",
        "procfs",
    ]);
    let actors = [Actor::start(&folder, &name), Actor::start(&folder, &name)];
    let prometheus = Prometheus::start(
        &folder,
        &format!(
            "- job_name: plain\n  static_configs: [{{targets: ['{}']}}]\n\
             - job_name: secured\n  scheme: https\n  static_configs: [{{targets: ['{}']}}]\n  \
             basic_auth: {{username: reader, password: s3cret}}\n  tls_config: {{ca_file: '{}'}}\n",
            plain.address,
            secured.address,
            folder.path().join("server.pem").display(),
        ),
    );
    for job in ["plain", "secured"] {
        let job = format!("{{job=\"{job}\"");
        prometheus.wait_for(&format!("up{job}}}"), |up| up > 0.5);
        prometheus.wait_for(&format!("scrape_samples_scraped{job}}}"), |samples| {
            samples > 100.0
        });
        let group = format!("{job},groupname=\"{name}\"");
        let procs = format!("namedprocess_namegroup_num_procs{group}}}");
        prometheus.wait_for(&procs, |procs| (procs - 2.0).abs() < 0.5);
    }

    // One exits, and Prometheus has seen no counter decrease.
    let [first, _second] = actors;
    first.end();
    let procs = format!("namedprocess_namegroup_num_procs{{job=\"plain\",groupname=\"{name}\"}}");
    prometheus.wait_for(&procs, |procs| (procs - 1.0).abs() < 0.5);
    let group = format!("namedprocess_namegroup_%{{groupname=\"{name}\"}}");
    for counter in [
        &*group.replace('%', "cpu_seconds_total"),
        &group.replace('%', "minor_page_faults_total"),
        &group.replace('%', "context_switches_total"),
        "node_cpu_seconds_total",
        "node_softirqs_total",
    ] {
        assert_eq!(
            prometheus.query(&format!("sum(resets({counter}[1h]))")),
            [0.0],
            "{counter} went back"
        );
    }
    for (family, kind) in [
        // The name of a counter in OpenMetrics, which this Prometheus requests; otherwise it has the suffix.
        ("namedprocess_namegroup_cpu_seconds", "counter"),
        ("namedprocess_namegroup_num_procs", "gauge"),
        ("node_context_switches", "counter"),
        ("node_vmstat_pgfault", "unknown"),
    ] {
        assert_eq!(prometheus.type_of(family), kind, "{family}");
    }
    // On a busy machine one of its scrapes may time out.
    wait_until("its scrapes succeed", || {
        let errors = prometheus.errors();
        errors.is_empty()
    });
}
