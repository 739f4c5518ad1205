//! The metrics of the machine, compared with those of a real `node_exporter`.

use std::{collections::BTreeSet, process::Command};

use fastproc_testbed::{alone, gate};

use crate::serve::{
    exposition::Metrics, folder::Folder, node_exporter::NodeExporter, server::Server,
};

/// The supported collectors, among them all that the dashboard "Node Exporter Full" queries.
const COLLECTORS: &[&str] = &[
    "arp",
    "conntrack",
    "cpu",
    "cpufreq",
    "diskstats",
    "entropy",
    "filefd",
    "filesystem",
    "loadavg",
    "meminfo",
    "netclass",
    "netdev",
    "netstat",
    "pressure",
    "processes",
    "schedstat",
    "sockstat",
    "softnet",
    "stat",
    "stat.softirq",
    "textfile",
    "thermal_zone",
    "time",
    "timex",
    "uname",
    "vmstat",
];
/// Its metrics of itself, and metrics of its collectors that only some machines have and that are not supported here.
const NOT_HERE: &[&str] = &[
    "node_cpu_core_throttles_total",
    "node_cpu_package_throttles_total",
    "node_disk_ata_",
    "node_disk_device_mapper_info",
    "node_disk_filesystem_info",
    "node_exporter_build_info",
    "node_filesystem_mount_info",
    "node_scrape_collector_duration_seconds",
];

/// `node_exporter`'s default, and all filesystems that ask another machine or a process, which may never answer.
const LOCAL: &str = "--collector.filesystem.fs-types-exclude=^(fuse.*|nfs.*|cifs|9p|ceph|autofs|binfmt_misc|bpf|cgroup2?|\
     configfs|debugfs|devpts|devtmpfs|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|\
     squashfs|erofs|sysfs|tracefs)$";

const TOOK: &str = "node_scrape_collector_duration_seconds";
const LEFT_BY_OTHERS: &str = "# HELP node_left_total Left.\n# TYPE node_left_total counter\nnode_left_total{b=\"x\\\\\",a=\"\"} 1e3\n\
     # TYPE node_left_seconds histogram\nnode_left_seconds_bucket{le=\"0.5\"} 1\nnode_left_seconds_bucket{le=\"+Inf\"} 2\n\
     node_left_seconds_sum 2.25\nnode_left_seconds_count 2\n# TYPE node_left_size summary\nnode_left_size{quantile=\"0.5\"} -7\n\
     node_left_size_sum 8\nnode_left_size_count 9\nnode_left 0.1\n";

/// Scores of a series that is right in a round, and of one that is wrong. A gauge may go up and down again between the
/// readings. But a random value is between two others in a third of the rounds, and a constant one in all of them. So
/// being between adds much, and being outside subtracts little: a series that is right in one of twenty rounds fails.
const BETWEEN: i32 = 5;
const OUTSIDE: i32 = -1;
const RIGHT: i32 = 20;
const WRONG: i32 = -40;

/// A series in a test's notation.
type Series = (String, Vec<(String, String)>);

fn is_told(name: &str) -> bool {
    name.starts_with("node_") && !NOT_HERE.iter().any(|prefix| name.starts_with(prefix))
}

fn told(metrics: &Metrics) -> BTreeSet<Series> {
    metrics
        .series()
        .filter(|(name, ..)| is_told(name))
        .map(|(name, labels, _)| {
            // An empty value is as good as none.
            let labels = labels.clone().into_iter();
            let labels = labels.filter(|(_, value)| !value.is_empty());
            (name.to_owned(), labels.collect())
        })
        .collect()
}

fn value(metrics: &Metrics, (name, labels): &Series) -> Option<f64> {
    let labels: Vec<(&str, &str)> = labels
        .iter()
        .map(|(key, value)| (&**key, &**value))
        .collect();
    metrics.get(name, &labels)
}

/// A series of `node_exporter` that is searched here.
struct Sought {
    series: Series,
    /// Whether it only grows, so that its value must be between the other two in every round.
    grows: bool,
    score: i32,
}

impl Sought {
    /// `None`: it was missing, like a slow filesystem.
    #[track_caller]
    fn look(&mut self, is_between: Option<bool>) {
        if self.grows && is_between == Some(false) {
            gate::repeated(&format!("{:?} was not between two readings", self.series));
            // Once a process may not have had the CPU for long; not twice.
            self.score += WRONG / 2 - RIGHT + 1;
        } else {
            self.score += if is_between == Some(true) {
                BETWEEN
            } else {
                OUTSIDE
            };
        }
        assert!(self.score > WRONG, "{:?} is wrong", self.series);
    }
}

/// Each series of these collectors exists here, has the same type, and is between two readings of the other.
#[test]
fn metrics_of_node_exporter_have_the_same_values() {
    // Processes that start all the time change these numbers from reading to reading.
    let _alone = alone();
    if !gate::programs(&[NodeExporter::PROGRAM]) {
        return;
    }
    let folder = Folder::new();
    folder.write("a.prom", LEFT_BY_OTHERS);
    let left = format!("--collector.textfile.directory={}", folder.path().display());
    let collectors = COLLECTORS.iter().map(|name| format!("--collector.{name}"));
    let other = NodeExporter::start(
        Command::new(NodeExporter::PROGRAM)
            .args(collectors)
            // Properties that a device does not know are omitted here.
            .args([&*left, LOCAL, "--collector.netclass.ignore-invalid-speed"]),
    );
    let server = Server::start(&["--gather-fds=false", "--gather-wchan=false", &left, LOCAL]);
    let first = other.scrape();
    // Both report times for the same collectors, and their own version.
    let took = |metrics: &Metrics| -> BTreeSet<String> {
        let took = metrics.series().filter(|(name, ..)| *name == TOOK);
        took.map(|(_, labels, _)| labels["collector"].clone())
            .collect()
    };
    let here = server.scrape();
    assert_eq!(took(&here), took(&first));
    assert_eq!(
        here.labels("node_exporter_build_info")["goarch"],
        first.labels("node_exporter_build_info")["goarch"]
    );
    let mut series = told(&first);
    // Other states come and go, and depend on the reader.
    series.retain(|(name, labels)| {
        let is_state = matches!(
            &**name,
            "node_processes_state" | "node_processes_threads_state"
        );
        !is_state || labels.iter().any(|(_, state)| state == "S")
    });
    // The kernel counts a fork a little before the event that is counted here.
    let grows = |name: &str| {
        let counter = (name.to_owned(), "counter".to_owned());
        name != "node_forks_total" && first.families.contains(&counter)
    };
    let sought = series.into_iter().map(|series| Sought {
        grows: grows(&series.0),
        series,
        score: 0,
    });
    let mut sought: Vec<Sought> = sought.collect();
    assert!(sought.iter().any(|sought| sought.grows));
    while !sought.is_empty() {
        let (before, between, after) = (other.scrape(), server.scrape(), other.scrape());
        sought.retain_mut(|sought| {
            let [before, between, after] =
                [&before, &between, &after].map(|metrics| value(metrics, &sought.series));
            // A series that has gone there, for example of a device, may be missing here.
            let (Some(before), Some(after)) = (before, after) else {
                return after.is_some();
            };
            let readings = between.map(|between| [before, between, after]);
            sought.look(readings.map(|readings| is_between(&sought.series, readings)));
            sought.score < RIGHT
        });
        for (family, kind) in &after.families {
            let here = between.families.iter().find(|(name, _)| name == family);
            if let (true, Some((_, here))) = (is_told(family), here) {
                assert_eq!(here, kind, "{family}");
            }
        }
    }
}

/// How far the two programs themselves change a gauge while they read: each has different files, threads and memory in
/// use at that time, so that one's values may always lie outside of the other's.
fn moved_by_the_readers(name: &str) -> f64 {
    // The kernel counts pages and files per CPU, and adds them to the total in batches of this size.
    const PAGES: f64 = 1024.0;
    match name {
        // Reading the frequency of a CPU makes it fast and warm.
        "node_cpu_frequency_hertz" | "node_cpu_scaling_frequency_hertz" => f64::INFINITY,
        "node_thermal_zone_temp" => 20.0,
        "node_filefd_allocated" => 1024.0,
        "node_nf_conntrack_entries" | "node_procs_running" | "node_procs_blocked" => 64.0,
        _ if name.ends_with("_mem_bytes") => PAGES * rustix::param::page_size() as f64,
        _ if name.ends_with("_mem") => PAGES,
        _ if name.starts_with("node_processes_") => 64.0,
        _ if name.starts_with("node_sockstat_") => 64.0,
        "node_netstat_Tcp_CurrEstab" => 64.0,
        _ if name.starts_with("node_memory_") => 32e6,
        _ => 0.0,
    }
}

fn is_between((name, labels): &Series, [before, between, after]: [f64; 3]) -> bool {
    let rounding = before.abs().max(after.abs()) * 1e-12;
    let (mut below, mut above) = (rounding + moved_by_the_readers(name), 0.0);
    if name.starts_with("node_cpu_") {
        // Both have CPU times in whole ticks, here in nanoseconds, and sums are in floating point.
        (below, above) = (below + 0.01, 0.01);
        // The kernel's counters of an idle CPU may decrease; each program reports the highest value that it has seen.
        if labels
            .iter()
            .any(|(_, mode)| matches!(&**mode, "idle" | "iowait"))
        {
            below += 0.1;
        }
    }
    let above = above + rounding + moved_by_the_readers(name);
    (before.min(after) - below..=before.max(after) + above).contains(&between)
}

fn has(metrics: &Metrics, prefix: &str) -> bool {
    let mut families = metrics.families.iter();
    families.any(|(name, _)| name.starts_with(prefix))
}

/// When it replaces process-exporter, a `node_exporter` probably runs beside it, and nothing should be counted twice.
#[test]
fn the_machine_is_not_told_in_place_of_process_exporter_unless_asked() {
    let source = "--source=procfs";
    for (arguments, told) in [
        (&[source][..], true),
        (&[source, "--no-host"], false),
        (&[source, "--no-host", "--collector.loadavg"], false),
        (&[source, "--procnames=a"], false),
        (&[source, "-children=false"], false),
        (&[source, "--procnames=a", "--host"], true),
        (&[source, "--procnames=a", "--collector.loadavg"], true),
    ] {
        let metrics = Server::start(arguments).scrape();
        assert_eq!(has(&metrics, "node_"), told, "{arguments:?}");
        assert!(has(&metrics, "process_resident_memory_bytes"));
    }
}

#[test]
fn collectors_are_chosen_by_their_flags() {
    let metrics = Server::start(&[
        "--source=procfs",
        "--no-collector.loadavg",
        "--collector.netdev.device-exclude=^lo$",
        "--collector.filesystem.mount-points-exclude=.*",
        "--collector.netstat.fields=^Tcp_InSegs$",
    ])
    .scrape();
    assert!(!has(&metrics, "node_load1"));
    let lo = metrics.all("node_network_receive_bytes_total", &[("device", "lo")]);
    assert_eq!(lo.count(), 0);
    assert!(!has(&metrics, "node_filesystem_"));
    let netstat = metrics.families.iter();
    let netstat: Vec<&str> = netstat
        .map(|(name, _)| name.as_str())
        .filter(|name| name.starts_with("node_netstat_"))
        .collect();
    assert_eq!(netstat, ["node_netstat_Tcp_InSegs"]);
    assert!(has(&metrics, "node_memory_MemTotal_bytes"));
}

#[test]
fn devices_and_file_systems_are_chosen_by_what_they_match() {
    let metrics = Server::start(&[
        "--source=procfs",
        "--collector.netdev.device-whitelist=^lo$",
        "--collector.arp.device-include=^none$",
        "--collector.diskstats.device-include=^none$",
        "--collector.filesystem.mount-points-include=^/proc$",
        "--collector.filesystem.fs-types-include=^proc$",
    ])
    .scrape();
    let received = metrics.all("node_network_receive_bytes_total", &[]);
    let lo = metrics.all("node_network_receive_bytes_total", &[("device", "lo")]);
    assert_eq!((received.count(), lo.count()), (1, 1));
    assert!(!has(&metrics, "node_arp_") && !has(&metrics, "node_disk_"));
    let mounts = metrics.all("node_filesystem_readonly", &[]).count();
    let proc = metrics.all("node_filesystem_readonly", &[("mountpoint", "/proc")]);
    assert_eq!((mounts, proc.count()), (1, 1));
}
