//! Groups named by container and pod, and metrics of their cgroups.

use std::{
    fs,
    os::{fd::OwnedFd, unix::net::UnixStream},
};

use fastproc_testbed::{Cgroup, Running, gate, needs, wait_until, wait_until_asleep};

use crate::serve::{exposition::Metrics, folder::Folder, server::Server};

const ID: &str = "7d2b9a1e7d2b9a1e7d2b9a1e7d2b9a1e7d2b9a1e7d2b9a1e7d2b9a1e7d2b9a1e";

fn procs(metrics: &Metrics, group: &str) -> Option<f64> {
    metrics.get("namedprocess_namegroup_num_procs", &[("groupname", group)])
}

fn faults(metrics: &Metrics, group: &str) -> Option<f64> {
    let name = "namedprocess_namegroup_minor_page_faults_total";
    metrics.get(name, &[("groupname", group)])
}

/// The cgroup of a container in a pod, and a folder with the file of its names. `None`: not possible here.
fn pod() -> Option<(Cgroup, Folder)> {
    let path = format!(
        "served/kubepods.slice/kubepods-pod34dd2e8f_b2b3_4d51_a2c6_5e5d1a2d4f11.slice/cri-containerd-{ID}.scope"
    );
    let cgroup = Cgroup::new(&path)?;
    let folder = Folder::new();
    let bundle = format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}");
    let bundle = folder.path().join(bundle);
    fs::create_dir_all(&bundle).expect("a folder");
    let annotations = r#"{"annotations": {"io.kubernetes.cri.container-name": "web",
        "io.kubernetes.cri.sandbox-name": "web-0", "io.kubernetes.cri.sandbox-namespace": "shop"}}"#;
    fs::write(bundle.join("config.json"), annotations).expect("a file");
    Some((cgroup, folder))
}

/// A process that starts and exits between two scrapes is in the group of its pod too, although its exit has only the
/// id of the cgroup.
#[test]
fn a_pod_is_a_group() {
    needs!(gate::bpf());
    let Some((cgroup, folder)) = pod() else {
        return;
    };
    let config = folder.write(
        "groups.yml",
        "process_names:\n- name: '{{if .PodName}}{{.Namespace}}/{{.PodName}}/{{.ContainerName}} {{.Runtime}}{{else}}other{{end}}'\n  cmdline: ['.+']\n",
    );
    let root = folder.path().to_str().expect("UTF-8");
    let server = Server::start(&["--config", &config, "--host-root", root]);
    let sleeper = Running::start(&mut cgroup.command("exec sleep 600"));
    // A scrape must not meet it before it has its final name, nor while it still has page faults.
    wait_until_asleep(sleeper.id(), "sleep");
    let group = "shop/web-0/web containerd";
    wait_until("a group of the pod", || {
        procs(&server.scrape(), group) == Some(1.0)
    });
    let metrics = server.scrape();
    assert_eq!(
        faults(&metrics, "other").map(|faults| faults > 0.0),
        Some(true)
    );
    let before = faults(&metrics, group).expect("a counter");
    let status = cgroup.command("exec true").status().expect("sh runs");
    assert!(status.success());
    wait_until("the exited process in its group", || {
        faults(&server.scrape(), group) > Some(before)
    });
}

/// The collecting process has dropped root when it reads the cgroup and the names.
#[test]
fn a_container_has_metrics_with_its_names() {
    needs!(gate::bpf());
    let Some((cgroup, folder)) = pod() else {
        return;
    };
    let path = cgroup.path();
    let (pod, _) = path.rsplit_once('/').expect("a pod");
    let root = folder.path().to_str().expect("UTF-8");
    for source in ["auto", "procfs"] {
        let source = format!("--source={source}");
        let server = Server::start(&["--cgroups", "--host-root", root, &source]);
        let metrics = server.scrape();
        let value = |name, labels: &[_]| metrics.get(name, labels);
        let names = [
            ("id", &*path),
            ("container", "web"),
            ("name", ID),
            ("namespace", "shop"),
            ("pod", "web-0"),
            ("cpu", "total"),
        ];
        let usage = "container_cpu_usage_seconds_total";
        assert!(value(usage, &names).is_some(), "{source}");
        let of_pod = [("id", pod), ("namespace", "shop"), ("pod", "web-0")];
        assert!(value(usage, &of_pod).is_some(), "{source}");
        assert_eq!(value("container_processes", &names[..1]), Some(0.0));
        assert_eq!(value("container_scrape_error", &[]), Some(0.0));
        let (own, its) = UnixStream::pair().expect("a pair");
        let mut command = cgroup.command("exec sleep 600");
        let sleeper = Running::start(command.stdin(OwnedFd::from(its)));
        drop((command, own));
        wait_until("the process in its cgroup", || {
            let metrics = server.scrape();
            metrics.get("container_processes", &names[..1]) == Some(1.0)
        });
        wait_until("its open files", || {
            let metrics = server.scrape();
            let of = |name| metrics.get(name, &names[..1]);
            let links = open_files(sleeper.id());
            let sockets = links.iter().filter(|link| link.starts_with("socket:"));
            of("container_file_descriptors") == Some(links.len() as f64)
                && of("container_sockets") == Some(sockets.count() as f64)
                && links[0].starts_with("socket:")
        });
        assert!(server.scrape().get(usage, &names) > Some(0.0));
    }
}

/// What the descriptors of a process lead to.
fn open_files(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("the process exists");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let links = paths.iter().filter_map(|path| fs::read_link(path).ok());
    links
        .map(|link| link.to_string_lossy().into_owned())
        .collect()
}

/// Whether this process has a network of its own.
fn has_own_network(pid: u32) -> bool {
    let link = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let own = link(&pid.to_string());
    own.is_some() && own != link("self")
}

#[track_caller]
fn ip(arguments: &str) {
    let mut command = std::process::Command::new("ip");
    let output = command.args(arguments.split(' ')).output();
    let output = output.expect("ip is there");
    assert!(output.status.success(), "{arguments}: {output:?}");
}

/// Two containers that a pair of devices connects. As soon as the processes of one have gone, the kernel removes its network,
/// and the pair with it: then the other has no device any more, and so nobody keeps the network.
#[test]
fn a_container_has_its_network_until_its_processes_have_gone() {
    needs!(gate::root(), gate::programs(&["ip", "unshare"]));
    let ids = ["a", "b"].map(|digit| digit.repeat(64));
    let cgroups = ids
        .each_ref()
        .map(|id| Cgroup::new(&format!("net/docker-{id}.scope")));
    let [Some(one), Some(other)] = cgroups else {
        return;
    };
    for source in ["auto", "procfs"] {
        let [first, second] = [&one, &other].map(|cgroup| {
            let mut command = cgroup.command("exec unshare --net sleep 600");
            Running::start(&mut command)
        });
        for pid in [first.id(), second.id()] {
            wait_until("it has a network", || has_own_network(pid));
        }
        ip(&format!(
            "link add eth0 netns {} type veth peer name eth0 netns {}",
            first.id(),
            second.id()
        ));
        let source = format!("--source={source}");
        let server = Server::start(&["--cgroups", "--no-host", &source]);
        let found = |id: &str| {
            let metrics = server.scrape();
            let labels = [("name", id), ("interface", "eth0")];
            let numbers = metrics.all("container_network_receive_bytes_total", &labels);
            numbers.count()
        };
        assert_eq!(ids.each_ref().map(|id| found(id)), [1, 1], "{source}");
        drop(second);
        wait_until("the kernel removes the network", || found(&ids[0]) == 0);
        assert_eq!(found(&ids[1]), 0);
        // The first one lives, and has a limit, a state and a start.
        let metrics = server.scrape();
        let of = |name, labels: &[_]| {
            let labels = [&[("name", &*ids[0])], labels].concat();
            metrics.get(name, &labels)
        };
        let limit = of("container_ulimits_soft", &[("ulimit", "max_open_files")]);
        assert!(limit.is_some(), "{source}");
        let sleeping = of("container_tasks_state", &[("state", "sleeping")]);
        assert_eq!(sleeping, Some(1.0), "{source}");
        // Both are whole seconds, the boot too.
        let created = of("container_creation_time_seconds", &[]).expect("a time");
        let started = of("container_start_time_seconds", &[]).expect("a time");
        assert!(started + 2.0 >= created, "{started} and {created}");
    }
}

/// The numbers of schedstat of a process with one thread: seconds on a CPU, seconds of waiting for one, and how often it got one.
#[track_caller]
fn schedstat(pid: u32) -> [f64; 3] {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("the process lives");
    let numbers = text.split_whitespace().map(str::parse::<f64>);
    let numbers: Vec<_> = numbers.map(|number| number.expect("a number")).collect();
    [numbers[0] / 1e9, numbers[1] / 1e9, numbers[2]]
}

const SCHEDSTAT: [&str; 3] = [
    "container_cpu_schedstat_run_seconds_total",
    "container_cpu_schedstat_runqueue_seconds_total",
    "container_cpu_schedstat_run_periods_total",
];

#[test]
fn a_container_has_what_its_processes_ran_and_those_that_have_exited() {
    needs!(gate::bpf());
    let id = "c".repeat(64);
    let Some(cgroup) = Cgroup::new(&format!("ran/docker-{id}.scope")) else {
        return;
    };
    let server = Server::start(&["--cgroups", "--no-host"]);
    let numbers = || {
        let metrics = server.scrape();
        SCHEDSTAT.map(|name| metrics.get(name, &[("name", &id)]).expect("a number"))
    };
    assert!(numbers().iter().all(|number| *number < 1e-9));
    // It comes and goes between two scrapes.
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
    let status = cgroup.command(script).status().expect("sh runs");
    assert!(status.success());
    wait_until("what it ran", || numbers()[0] > 0.0);
    let exited = numbers();
    // It runs for longer than its exit takes.
    let sleeper = Running::start(&mut cgroup.command(&format!("{script}; exec sleep 600")));
    let pid = sleeper.id();
    wait_until_asleep(pid, "sleep");
    let before = schedstat(pid);
    let both = numbers();
    let after = schedstat(pid);
    for at in 0..3 {
        // Seconds have nine digits.
        let (least, most) = (
            exited[at] + before[at] - 2e-9,
            exited[at] + after[at] + 2e-9,
        );
        assert!(
            least <= both[at] && both[at] <= most,
            "{least} {both:?} {most}"
        );
    }
    drop(sleeper);
    // Of an exit that its parent waits for at once, only the run time is known.
    let least = |now: &[f64; 3]| (0..3).all(|at| now[at] >= both[at] - 2e-9);
    let gone = numbers();
    assert!(least(&gone), "{gone:?} {both:?}");
    // When the exit of another one has arrived, its own one has, too.
    let status = cgroup.command("exec true").status().expect("sh runs");
    assert!(status.success());
    wait_until("what another one ran", || numbers()[0] > gone[0]);
    let end = numbers();
    assert!(least(&end), "{end:?} {both:?}");
    // It counts once.
    assert!(end[0] < both[0] + before[0], "{end:?} {both:?} {before:?}");
}
