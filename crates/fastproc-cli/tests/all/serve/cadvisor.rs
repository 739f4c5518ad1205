//! Queries of Kubernetes's dashboards and rules over metrics of cgroups, by a real Prometheus: those of a tree of pods that is
//! made on the frozen machine of `fixtures/`.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use fastproc_testbed::{Frozen, gate, needs, wait_until};

use crate::serve::{FASTPROC, folder::Folder, prometheus::Prometheus, server::Server};

const QUERIES: &str = include_str!("cadvisor.promql");
const BURSTABLE: &str = "kubepods.slice/kubepods-burstable.slice";
/// A container of `fixtures/`, and a process with one thread: what is made is copied from them.
const CONTAINER: &str = "kubepods-burstable-pod34dd2e8f_b2b3_4d51_a2c6_5e5d1a2d4f11.slice/cri-containerd-0f1e2d3c0f1e2d3c0f1e2d3c0f1e2d3c0f1e2d3c0f1e2d3c0f1e2d3c0f1e2d3c.scope";
const PROCESS: u32 = 1001;

/// A pod: its name, the beginning of its UID, its network namespace, and the bytes that it received. The last is in the network
/// of the machine.
const PODS: [(&str, &str, u32, u64); 3] = [
    ("made-0", "11111111", 4_026_540_001, 1_000_001),
    ("made-1", "22222222", 4_026_540_002, 2_000_002),
    ("host-0", "33333333", 4_026_531_840, 3_000_003),
];
/// The containers of each. The first is the sandbox.
const CONTAINERS: [&str; 3] = ["", "web", "proxy"];

#[track_caller]
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("it is a folder") {
        let (from, to) = entry
            .map(|entry| (entry.path(), to.join(entry.file_name())))
            .expect("it can be listed");
        let kind = fs::symlink_metadata(&from).expect("the file exists");
        if kind.is_dir() {
            copy(&from, &to);
        } else if let Ok(target) = fs::read_link(&from) {
            symlink(target, &to).expect("it is new");
        } else {
            fs::copy(&from, &to).expect("it is new");
        }
    }
}

/// Makes a container with one process, and returns the folder of its cgroup.
#[track_caller]
fn make(root: &Path, pid: u32, at: usize, pod: (&str, &str, u32, u64)) -> PathBuf {
    let (pod, uid, network, received) = pod;
    let id = format!("{pid:04}{uid}{at:04}").repeat(4);
    let slice =
        format!("{BURSTABLE}/kubepods-burstable-pod{uid}_b2b3_4d51_a2c6_5e5d1a2d4f11.slice");
    let cgroup = format!("{slice}/cri-containerd-{id}.scope");
    let hierarchy = root.join("sys/fs/cgroup");
    let folder = hierarchy.join(&cgroup);
    let pattern = hierarchy.join(BURSTABLE).join(CONTAINER);
    for to in [hierarchy.join(slice), folder.clone()] {
        if !to.exists() {
            copy(&pattern, &to);
        }
    }
    let name = match CONTAINERS[at] {
        "" => r#""io.kubernetes.cri.podsandbox.image-name": "pause:3.10""#.into(),
        name => format!(
            r#""io.kubernetes.cri.container-name": "{name}", "io.kubernetes.cri.image-name": "{name}:1""#
        ),
    };
    let bundle = root.join(format!(
        "run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}"
    ));
    fs::create_dir_all(&bundle).expect("a folder");
    let annotations = format!(
        r#"{{"annotations": {{{name}, "io.kubernetes.cri.sandbox-name": "{pod}",
            "io.kubernetes.cri.sandbox-namespace": "shop"}}}}"#
    );
    fs::write(bundle.join("config.json"), annotations).expect("a file");
    let process = root.join(format!("proc/{pid}"));
    copy(&root.join(format!("proc/{PROCESS}")), &process);
    let threads = process.join("task");
    fs::rename(
        threads.join(PROCESS.to_string()),
        threads.join(pid.to_string()),
    )
    .expect("it has a thread");
    for file in ["stat", "status"].map(|file| process.join(file)) {
        let text = fs::read_to_string(&file).expect("a text");
        let text = text.replace(&PROCESS.to_string(), &pid.to_string());
        fs::write(file, text).expect("a file");
    }
    fs::write(process.join("cgroup"), format!("0::/{cgroup}\n")).expect("a file");
    fs::create_dir_all(process.join("ns")).expect("a folder");
    let link = process.join("ns/net");
    let _ = fs::remove_file(&link);
    symlink(format!("net:[{network}]"), link).expect("a link");
    fs::create_dir_all(process.join("net")).expect("a folder");
    let devices = format!(
        "Inter-|\n face |\n    lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n  eth0: {received} 9 0 0 0 0 0 0 7 3 0 0 0 0 0 0\n"
    );
    fs::write(process.join("net/dev"), devices).expect("a file");
    folder
}

/// The jobs of the first configuration of `docs/cadvisor.md`.
#[track_caller]
fn documented() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cadvisor.md");
    let page = fs::read_to_string(page).expect("the page exists");
    let jobs = page.split_once("### Prometheus\n\n```yaml\nscrape_configs:\n");
    let jobs = jobs.and_then(|(_, rest)| rest.split_once("```"));
    let (jobs, _) = jobs.expect("it has a configuration for Prometheus");
    jobs.to_owned()
}

#[test]
fn queries_of_dashboards_and_rules_have_data() {
    needs!(gate::programs(&["prometheus"]));
    let machine = Frozen::unpack();
    let mut folders = Vec::new();
    for (number, pod) in PODS.into_iter().enumerate() {
        for at in 0..CONTAINERS.len() {
            let pid = 3000 + 10 * number + at;
            folders.push(make(machine.folder(), pid as u32, at, pod));
        }
    }
    let server = Server::start_by(
        &mut machine.command(FASTPROC),
        &["--source=procfs", "--user=root", "--cgroups", "--no-host"],
    );
    let folder = Folder::new();
    let jobs = documented().replace("NODE:9256", &server.address);
    let prometheus = Prometheus::start(&folder, &jobs);
    prometheus.wait_for("up", |up| up > 0.5);
    // From now on the containers have run, and were throttled in a fifth of the periods.
    for folder in &folders {
        let file = folder.join("cpu.stat");
        let text = fs::read_to_string(&file).expect("a text");
        let lines = text.lines().map(|line| match line.split_once(' ') {
            Some(("nr_periods", _)) => "nr_periods 900000\n".to_owned(),
            Some(("nr_throttled", _)) => "nr_throttled 180000\n".to_owned(),
            _ => format!("{line}\n"),
        });
        fs::write(file, lines.collect::<String>()).expect("a file");
    }
    let queries = QUERIES.lines().filter(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let mut count = 0;
    for query in queries {
        // The number of series is a short answer.
        let counted = format!("count({query})");
        wait_until(query, || !prometheus.query(&counted).is_empty());
        count += 1;
    }
    assert!(count > 25);
    // Every container has all labels of a container, and a sandbox all but its name.
    let labels = ["namespace", "pod", "container", "image", "id", "name"];
    for (left_out, expected) in [(None, 6.0 + 1.0), (Some("container"), 9.0 + 1.0)] {
        let wanted = labels.iter().filter(|&&label| Some(label) != left_out);
        let wanted: Vec<_> = wanted.map(|label| format!("{label}!=\"\"")).collect();
        let query = format!("count(container_memory_rss{{{}}})", wanted.join(","));
        assert_eq!(prometheus.query(&query), [expected], "{query}");
    }
    // A pod has its network once, at its sandbox.
    for (pod, _, _, received) in &PODS[..2] {
        let bytes = format!("container_network_receive_bytes_total{{pod=\"{pod}\"");
        for query in [
            format!("sum({bytes}}})"),
            format!("{bytes},container=\"\",image=\"pause:3.10\",interface=\"eth0\"}}"),
        ] {
            assert_eq!(prometheus.query(&query), [*received as f64], "{query}");
        }
    }
    let of_host = "container_network_receive_bytes_total{pod=\"host-0\"}";
    assert!(prometheus.query(of_host).is_empty());
}
