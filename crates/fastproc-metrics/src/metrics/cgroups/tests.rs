//! Metrics of a hierarchy in a folder, with files as Linux 6.12 writes them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use super::*;
use crate::exposition::Format;

const ID: &str = "3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e3f5c9a1e";
const POD: &str = "kubepods.slice/kubepods-pod34dd2e8f_b2b3_4d51_a2c6_5e5d1a2d4f11.slice";

/// The files of a container that has a quota, with bursts, which the frozen machine lacks.
const FILES: [(&str, &str); 6] = [
    (
        "cpu.stat",
        "usage_usec 1500001\nuser_usec 1000000\nsystem_usec 500001\nnice_usec 0\nnr_periods 40\nnr_throttled 30\n\
         throttled_usec 2500000\nnr_bursts 2\nburst_usec 7\n",
    ),
    ("cpu.max", "2000 10000\n"),
    ("cpu.weight", "100\n"),
    ("memory.current", "1000000\n"),
    (
        "memory.stat",
        "anon 600000\nfile 300000\ninactive_file 200000\nactive_file 100000\n",
    ),
    ("memory.swap.max", "max\n"),
];

const SERIES: [(&str, &str, &str); 4] = [
    ("container_cpu_cfs_burst_periods_total", "", "2"),
    ("container_cpu_cfs_burst_seconds_total", "", "0.000007"),
    ("container_spec_cpu_shares", "", "2597"),
    ("container_spec_memory_swap_limit_bytes", "", "0"),
];

/// A folder with a hierarchy, and the files of a runtime beside it.
struct Host(PathBuf);

impl Host {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fastproc-cgroup-metrics-{}-{next}", std::process::id());
        let host = Self(std::env::temp_dir().join(name));
        host.write("tree/cgroup.controllers", "cpu io memory pids\n");
        host
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn make(&self, cgroup: &str) {
        for (file, text) in FILES {
            self.write(&format!("tree/{cgroup}/{file}"), text);
        }
    }

    fn metrics(&self, most: usize) -> CgroupMetrics {
        let cgroups = Cgroups::builder()
            .fields(Fields::all())
            .open_recorded(&self.0.join("tree"))
            .expect("a folder");
        let mut names = Names::from_root(&*self.0);
        names.check_every(Duration::ZERO);
        let names = Arc::new(Mutex::new(names));
        let settings = CgroupSettings {
            source: None,
            most,
            networks: true,
            files: true,
        };
        let machine = Machine::find(None).expect("there is a root");
        CgroupMetrics::new(cgroups, settings, names, machine)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(metrics: &mut CgroupMetrics) -> String {
    metrics.collect().expect("a hierarchy");
    let mut text = Exposition::new(Format::Prometheus, Vec::new());
    metrics.write(&mut text);
    String::from_utf8(text.finish()).expect("a text")
}

/// The labels of the cgroup with this path.
fn labels<'t>(text: &'t str, path: &str) -> &'t str {
    let start = format!("container_last_seen{{id=\"/{path}\"");
    let line = text.lines().find(|line| line.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("{path} is missing: {text}"));
    let (labels, _) = line.rsplit_once('}').expect("the braces end");
    &labels["container_last_seen{".len()..]
}

#[test]
fn a_container_that_gets_another_name_has_other_labels() {
    let host = Host::new();
    let container = format!("{POD}/cri-containerd-{ID}.scope");
    host.make(&container);
    let file = format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json");
    let mut metrics = host.metrics(100);
    metrics.labels.check_every = Duration::ZERO;
    for name in ["", "web", "another"] {
        if !name.is_empty() {
            let names =
                format!(r#"{{"annotations": {{"io.kubernetes.cri.sandbox-name": "{name}"}}}}"#);
            host.write(&file, &names);
        }
        let text = text(&mut metrics);
        for path in [&container, POD] {
            let found = labels(&text, path);
            let has = found.contains(&format!(",pod=\"{name}\""));
            assert_eq!(has, !name.is_empty(), "{path}: {found}");
        }
    }
}

#[test]
fn values_of_a_container_are_told_under_its_names() {
    let host = Host::new();
    let container = format!("{POD}/cri-containerd-{ID}.scope");
    let unit = "system.slice/ssh.service";
    host.make(&container);
    host.make(&format!("{container}/init"));
    host.make(unit);
    host.write(
        &format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json"),
        r#"{"annotations": {"io.kubernetes.cri.container-name": "web", "io.kubernetes.cri.sandbox-name": "web-0",
            "io.kubernetes.cri.sandbox-namespace": "shop", "io.kubernetes.cri.image-name": "nginx:\"1\""}}"#,
    );
    let text = text(&mut host.metrics(100));
    let names = format!(
        "id=\"/{container}\",container=\"web\",name=\"{ID}\",image=\"nginx:\\\"1\\\"\",namespace=\"shop\",pod=\"web-0\""
    );
    assert_eq!(labels(&text, &container), names);
    for (name, more, value) in SERIES {
        let line = format!("\n{name}{{{names}{more}}} {value}\n");
        assert!(text.contains(&line), "{line}");
    }
    // A container and its pod have their names as labels. The cgroups below do not repeat them.
    for (path, more) in [
        (POD, ",namespace=\"shop\",pod=\"web-0\""),
        (&*format!("{container}/init"), ""),
        ("kubepods.slice", ",slice=\"kubepods.slice\""),
        (unit, ",unit=\"ssh.service\",slice=\"system.slice\""),
        ("", ""),
    ] {
        assert_eq!(labels(&text, path), format!("id=\"/{path}\"{more}"));
    }
}

#[test]
fn the_root_has_what_its_files_have() {
    let host = Host::new();
    for file in ["cpu.stat", "memory.stat"] {
        let (_, text) = FILES
            .iter()
            .find(|(name, _)| *name == file)
            .expect("the file is one of FILES");
        host.write(&format!("tree/{file}"), text);
    }
    let text = text(&mut host.metrics(100));
    for (name, value) in [
        ("container_memory_usage_bytes", "900000"),
        ("container_memory_working_set_bytes", "700000"),
        ("container_memory_rss", "600000"),
    ] {
        assert!(
            text.contains(&format!("\n{name}{{id=\"/\"}} {value}\n")),
            "{name}: {text}"
        );
    }
    // What it has no file of is absent, family and all.
    for name in [
        "container_memory_swap",
        "container_threads",
        "container_fs_reads_total",
        "container_cpu_cfs_periods_total",
        "container_processes",
        "container_file_descriptors",
    ] {
        assert!(!text.contains(name), "{name}: {text}");
    }
}

#[test]
fn a_bound_leaves_out_what_comes_last_and_says_so() {
    let host = Host::new();
    for at in 0..5 {
        host.make(&format!("c{at}"));
    }
    let mut metrics = host.metrics(4);
    let first = text(&mut metrics);
    assert!(first.contains("\nfastproc_cgroups_shown 4\n"), "{first}");
    assert!(first.contains("\nfastproc_cgroups_left_out 2\n"), "{first}");
    let count = |text: &str| text.matches("\ncontainer_last_seen{").count();
    assert_eq!(count(&first), 4);
    fs::remove_dir_all(host.0.join("tree/c1")).expect("the folder is removed");
    let second = text(&mut metrics);
    assert!(!second.contains("id=\"/c1\""), "{second}");
    assert_eq!(count(&second), 4);
}

#[test]
fn devices_are_named_as_their_nodes() {
    let mut disks = fs::read_dir("/sys/dev/block").into_iter().flatten();
    let disk = disks.find_map(|entry| entry.ok()?.file_name().into_string().ok());
    let Some((disk, numbers)) = disk
        .as_deref()
        .and_then(|disk| Some((disk, disk.split_once(':')?)))
    else {
        return;
    };
    let mut device = Device::default();
    device.major = numbers.0.parse().expect("a number");
    device.minor = numbers.1.parse().expect("a number");
    let link = fs::canonicalize(Path::new("/sys/dev/block").join(disk)).expect("a device");
    let name = link.file_name().expect("a name").to_string_lossy();
    let label = device_label(&device);
    assert_eq!(
        label,
        format!(",device=\"/dev/{}\"", name.replace('!', "/"))
    );
}

#[test]
fn counts_stay_when_cgroups_cannot_be_read() {
    let host = Host::new();
    host.make("a");
    let mut metrics = host.metrics(100);
    let mut collector = fastproc::Collector::builder()
        .source(Some(fastproc::SourceKind::Procfs))
        .service_socket(None)
        .open()
        .expect("/proc is mounted");
    let processes = collector.snapshot().expect("/proc is mounted");
    metrics.collect().expect("a hierarchy");
    metrics.count(&processes, 0);
    let snapshot = metrics.cgroups.last();
    let id = snapshot.iter().find(|cgroup| cgroup.path() == b"/a");
    let id = id.expect("it is made").id();
    metrics.scheduled.gone.insert(id, [5; 3]);
    // The list has no cgroup then.
    fs::remove_dir_all(host.0.join("tree/a")).expect("the folder is removed");
    metrics.collect().expect("a hierarchy");
    metrics.seen = None;
    metrics.count(&processes, 0);
    assert_eq!(metrics.scheduled.gone.get(&id), Some(&[5; 3]));
}
