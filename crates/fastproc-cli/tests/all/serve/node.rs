//! The metrics of the frozen machine of `fixtures/`, compared with those of a real `node_exporter`.

use std::{collections::BTreeSet, fs, process::Command};

use fastproc_testbed::{Frozen, gate, needs};

use crate::serve::{FASTPROC, exposition::Metrics, node_exporter::NodeExporter};

/// The supported collectors, among them all that the dashboard "Node Exporter Full" queries.
const COLLECTORS: &str = "arp conntrack cpu cpufreq diskstats entropy filefd filesystem loadavg meminfo netclass netdev \
    netstat pressure processes schedstat sockstat softnet stat thermal_zone time timex uname vmstat \
    interrupts";
/// Its metrics of itself, and metrics of its collectors that only some machines have and that are not supported here.
const NOT_HERE: &[&str] = &[
    "node_cpu_core_throttles_total",
    "node_cpu_package_throttles_total",
    "node_disk_ata_",
    "node_disk_device_mapper_info",
    "node_disk_filesystem_info",
    "node_exporter_build_info",
    // These do not come from files, so they are those of the running machine.
    "node_filesystem_",
    "node_scrape_collector_duration_seconds",
    "node_time_seconds",
    "node_time_zone_offset_seconds",
    "node_timex_",
    "node_uname_info",
];

const TOOK: &str = "node_scrape_collector_duration_seconds";

/// A series in a test's notation.
type Series = (String, Vec<(String, String)>);

fn is_told(name: &str) -> bool {
    name.starts_with("node_") && !NOT_HERE.iter().any(|prefix| name.starts_with(prefix))
}

fn told(metrics: &Metrics) -> impl Iterator<Item = (Series, f64)> {
    let told = metrics.series().filter(|(name, ..)| is_told(name));
    told.map(|(name, labels, value)| {
        // An empty value is as good as none.
        let labels = labels.clone().into_iter();
        let labels = labels.filter(|(_, value)| !value.is_empty());
        ((name.to_owned(), labels.collect()), value)
    })
}

/// Each series of these collectors exists here, with the same type and value.
#[test]
fn metrics_of_node_exporter_have_the_same_values() {
    needs!(gate::programs(&[NodeExporter::PROGRAM]));
    let machine = Frozen::unpack();
    // It stands still.
    fs::remove_dir_all(machine.folder().join("next")).expect("it was unpacked");
    let paths = [
        ("procfs", "proc"),
        ("sysfs", "sys"),
        ("udev.data", "run/udev/data"),
    ];
    let paths = paths
        .map(|(flag, folder)| format!("--path.{flag}={}", machine.folder().join(folder).display()));
    let collectors = COLLECTORS
        .split(' ')
        .map(|name| format!("--collector.{name}"));
    let other = NodeExporter::start(
        Command::new(NodeExporter::PROGRAM)
            .args(collectors)
            .args(paths)
            .args([
                // Properties that a device does not know are omitted here, and devices are those of the files.
                "--collector.netclass.ignore-invalid-speed",
                "--no-collector.netdev.netlink",
            ]),
    );
    let arguments = [
        "serve",
        "--source=procfs",
        "--user=root",
        "--once-to-stdout-delay=1ms",
        "--procnames=none",
    ];
    let output = machine
        .command(FASTPROC)
        .args(arguments)
        .args(["--host", "--collector.interrupts"])
        .output();
    let output = String::from_utf8(output.expect("it starts").stdout).expect("metrics are UTF-8");
    let (here, there) = (Metrics::parse(&output), other.scrape());
    let is_close = |one: f64, two: f64| (one - two).abs() <= one.abs().max(two.abs()) * 1e-12;
    let ours: Vec<(Series, f64)> = told(&here).collect();
    let wrong = told(&there).filter(|(series, value)| {
        !ours
            .iter()
            .any(|(own, here)| own == series && is_close(*value, *here))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(told(&there).count() > 450, "{}", told(&there).count());
    for (family, kind) in &there.families {
        let known = here.families.iter().find(|(name, _)| name == family);
        assert!(
            !is_told(family) || known.is_none_or(|(_, here)| here == kind),
            "{family}"
        );
    }
    // Both report times for the same collectors.
    let took = |metrics: &Metrics| -> BTreeSet<String> {
        let took = metrics.series().filter(|(name, ..)| *name == TOOK);
        took.map(|(_, labels, _)| labels["collector"].clone())
            .collect()
    };
    let of_other: BTreeSet<_> = took(&there);
    assert!(of_other.is_subset(&took(&here)), "{of_other:?}");
    assert_eq!(
        here.labels("node_exporter_build_info")["goarch"],
        there.labels("node_exporter_build_info")["goarch"]
    );
}
