//! Little memory and few descriptors, at opening and when the arrays grow: they suffice, or the error names the limit.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::Stdio,
};

use fastproc::{Collector, Error, Fields, SourceKind};
use fastproc_testbed::{Sleepers, again, alone, gate, is_case, is_rerun, needs, rerun};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_growth_without_descriptors_is_named_and_undone() {
    const CASE_NAME: &str = "no descriptor left when the arrays grow";
    if !is_case(CASE_NAME) {
        if !is_rerun() && gate::bpf() {
            let _alone = alone();
            rerun(a_growth_without_descriptors_is_named_and_undone, CASE_NAME);
        }
        return;
    }
    let before = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(1),
        ..before
    };
    for kind in [SourceKind::Bpf, SourceKind::BpfIter] {
        let opened = Collector::builder().source(Some(kind)).open();
        let mut collector = opened.expect("there are descriptors enough");
        collector.snapshot().expect("a snapshot");
        let room = collector
            .arrays()
            .expect("a BPF source has arrays")
            .processes;
        let burst = Sleepers::start(room as usize + 10);
        // Open descriptors stay open.
        setrlimit(Resource::Nofile, none).expect("it can be lowered");
        for _ in 0..3 {
            let refused = collector.snapshot().expect_err("it cannot grow");
            assert!(
                matches!(refused, Error::Descriptors { limit: 1 }),
                "{kind}: {refused:?}"
            );
        }
        setrlimit(Resource::Nofile, before).expect("it can be raised again");
        let snapshot = collector.snapshot().expect("it can grow");
        assert!(snapshot.stats().grown > 0);
        assert!(burst.pids().iter().all(|&pid| snapshot.get(pid).is_some()));
    }
}

/// A control group, removed when this is dropped.
struct Group {
    folder: PathBuf,
    limit: &'static str,
}

impl Group {
    /// `None`: this kernel does not control memory, or not here. The test is then skipped.
    fn new(name: &str) -> Option<Self> {
        let mounted = Path::new("/sys/fs/cgroup");
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let controls = |list: &str| list.split_whitespace().any(|name| name == "memory");
        let (root, limit) = if mounted.join("memory/memory.limit_in_bytes").exists() {
            (mounted.join("memory"), "memory.limit_in_bytes")
        } else if controls(&read("/sys/fs/cgroup/cgroup.subtree_control")) {
            (mounted.to_owned(), "memory.max")
        } else {
            gate::skipped("no control group can limit memory here");
            return None;
        };
        let folder = root.join(format!("fastproc-{}-{name}", std::process::id()));
        // A killed test left one of this name behind.
        let _ = fs::remove_dir(&folder);
        fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Some(Self { folder, limit })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

const GROUP: &str = "FASTPROC_GROWTH_GROUP";
const LIMIT: &str = "FASTPROC_GROWTH_LIMIT";

/// With little memory every source works, or its error names the limit, and nothing is killed. Returns how many fail.
fn little_memory() -> String {
    let (group, limit) = (env::var(GROUP), env::var(LIMIT));
    let (group, limit) = (group.expect("it is set"), limit.expect("it is set"));
    let group = Path::new(&group);
    fs::write(group.join("cgroup.procs"), "0").expect("this process may join it");
    // The kernel's memory for each open file counts too, so limit their number if there are many processes.
    let few = Rlimit {
        current: Some(128),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, few).expect("it can be lowered");
    let mut refused = 0;
    for fields in [Fields::TOP, Fields::all()] {
        for kind in SourceKind::LOCAL {
            let opened = Collector::builder()
                .source(Some(kind))
                .fields(fields)
                .open();
            match opened {
                Ok(mut collector) => {
                    collector.snapshot().expect("a snapshot");
                    collector.snapshot().expect("another");
                }
                Err(Error::MemoryLimit {
                    file,
                    limit_bytes,
                    left_bytes,
                    needed_bytes,
                }) => {
                    assert_ne!(kind, SourceKind::Procfs);
                    assert!(file.starts_with(group), "{}", file.display());
                    assert_eq!(limit_bytes.to_string(), limit);
                    assert!(left_bytes < needed_bytes && left_bytes <= limit_bytes);
                    refused += 1;
                }
                Err(error) => panic!("{kind}: {error:?}"),
            }
        }
    }
    let mut collector = Collector::builder().open().expect("one of them serves");
    collector.snapshot().expect("one of them serves");
    format!("{refused} refused, {} serves", collector.source())
}

#[test]
fn little_memory_suffices_or_is_named() {
    if env::var_os(GROUP).is_some() {
        println!("{}", little_memory());
        return;
    }
    needs!(gate::bpf());
    let _alone = alone();
    for (mib, expected) in [
        (4, Some("4 refused, procfs serves")),
        (8, Some("4 refused, procfs serves")),
        (10, None),
        (12, None),
        // Memory for each CPU needs more if there are many.
        (512, Some("0 refused, bpf")),
    ] {
        let Some(group) = Group::new(&format!("{mib}")) else {
            return;
        };
        let limit = (mib << 20).to_string();
        fs::write(group.folder.join(group.limit), &limit).expect("a limit can be set");
        let output = again(little_memory_suffices_or_is_named)
            .env(GROUP, &group.folder)
            .env(LIMIT, &limit)
            .output()
            .expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{mib} MiB: {}\n{text}\n{errors}",
            output.status
        );
        if let Some(expected) = expected {
            assert!(text.contains(expected), "{mib} MiB: {text}");
        }
    }
}

/// Takes a snapshot for each line of standard input, and prints the result. Opens the collectors before the first.
fn grow_when_told(group: &Path) {
    fs::write(group.join("cgroup.procs"), "0").expect("this process may join it");
    let mut collectors = [SourceKind::Bpf, SourceKind::BpfIter].map(|kind| {
        let opened = Collector::builder().source(Some(kind)).open();
        opened.expect("there is memory enough")
    });
    for collector in &mut collectors {
        collector.snapshot().expect("a snapshot");
    }
    let room = collectors.each_ref().map(|collector| {
        let arrays = collector.arrays().expect("a BPF source has arrays");
        arrays.processes
    });
    println!("{TOLD}{}", room.into_iter().max().unwrap_or(0));
    for pids in std::io::stdin().lines() {
        let pids = pids.expect("a line of text");
        let pids: Vec<u32> = pids.split(' ').filter_map(|pid| pid.parse().ok()).collect();
        let looks = collectors.each_mut().map(|collector| {
            let snapshot = match collector.snapshot() {
                Err(Error::MemoryLimit {
                    file,
                    left_bytes,
                    needed_bytes,
                    ..
                }) => {
                    assert!(file.starts_with(group), "{}", file.display());
                    assert!(left_bytes < needed_bytes);
                    return "refused";
                }
                snapshot => snapshot.expect("a snapshot, or the limit"),
            };
            let own = snapshot
                .get(std::process::id())
                .expect("the process is shown");
            assert!(own.memory().is_some_and(|memory| memory.rss() > 0));
            assert!(pids.iter().all(|&pid| snapshot.get(pid).is_some()));
            if snapshot.stats().grown > 0 {
                "grown"
            } else {
                "right"
            }
        });
        println!("{TOLD}{}", looks.join(" "));
    }
}

/// The prefix of lines that [`grow_when_told`] prints: the test harness prints its own lines.
const TOLD: &str = "told: ";

/// If the arrays may not grow, the error names the limit each time; when there is room again, the same collector
/// continues.
#[test]
fn a_growth_that_is_refused_is_named_and_undone() {
    if let Some(group) = env::var_os(GROUP) {
        grow_when_told(Path::new(&group));
        return;
    }
    needs!(gate::bpf());
    let _alone = alone();
    let Some(group) = Group::new("growth") else {
        return;
    };
    let limit = |bytes: u64| {
        fs::write(group.folder.join(group.limit), bytes.to_string()).expect("a limit can be set");
    };
    limit(256 << 20);
    let mut looking = again(a_growth_that_is_refused_is_named_and_undone)
        .env(GROUP, &group.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut orders = looking.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(looking.stdout.take().expect("a pipe")).lines();
    let mut told = || loop {
        let line = lines.next().expect("it goes on").expect("a line of text");
        // The harness does not end its own line.
        if let Some((_, told)) = line.split_once(TOLD) {
            return told.to_owned();
        }
    };
    let room: usize = told().parse().expect("a number of processes");
    let mut look = |pids: &[u32]| {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        writeln!(orders, "{}", pids.join(" ")).expect("it reads");
        told()
    };
    let burst = Sleepers::start(room + 10);
    let pids: Vec<u32> = burst.pids().into_iter().collect();
    let usage = group.limit.replace("limit_in_bytes", "usage_in_bytes");
    let usage = group.folder.join(usage.replace("max", "current"));
    let used = fs::read_to_string(usage).expect("it can be read");
    // Enough for a snapshot, but not for loading the programs again.
    limit(used.trim().parse::<u64>().expect("a number") + (2 << 20));
    for _ in 0..3 {
        assert_eq!(look(&pids), "refused refused");
    }
    limit(256 << 20);
    assert_eq!(look(&pids), "grown grown");
    assert_eq!(look(&pids), "right right");
    drop(burst);
    assert_eq!(look(&[]), "right right");
    drop(orders);
    assert!(looking.wait().expect("the child ends").success());
}
