//! `fastproc bench cgroups`: the cost of reading every cgroup once, by their files and by a snapshot.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use fastproc::cgroups::{Cgroups, Fields, Source};
use serde_json::json;

use super::{
    idle::Idle,
    measure::{Case, Common, Failure, Plan, measure, named, raise_open_files},
    report::{Column, Report, column},
};

/// The files that kubelet reads of each cgroup, those of pressure last.
const FILES: [&str; 14] = [
    "memory.stat",
    "memory.current",
    "memory.max",
    "memory.peak",
    "memory.swap.current",
    "memory.swap.max",
    "memory.swap.peak",
    "cpu.stat",
    "io.stat",
    "pids.current",
    "pids.max",
    "cpu.pressure",
    "memory.pressure",
    "io.pressure",
];
const WITHOUT_PRESSURE: usize = FILES.len() - 3;
/// The case that the others are compared with.
const BASELINE: &str = "open-14";
/// The number of cgroups above the others.
const PARENTS: usize = 10;
const CONTROLLERS: [&str; 4] = ["cpu", "memory", "io", "pids"];

/// Arguments of `fastproc bench cgroups`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Create this many cgroups first, and remove them afterwards.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    cgroups: u32,
    /// Start this many processes, each in its own cgroup, and let all run before each snapshot.
    #[arg(long, value_name = "N", default_value_t = 400)]
    processes: u32,
    /// Stay on this CPU.
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
}

/// Why no cgroups can be created.
#[derive(Debug, thiserror::Error)]
#[error(
    "the controller {0} is not enabled on version 2 (cgroup.subtree_control of {1}): where it is on version 1, run this in an \
     emulator, make test-kernels KERNELS=6.12 SCENARIOS=cgroup_cost"
)]
struct NoController(&'static str, String);

const COLUMNS: [Column; 3] = [
    column("case", "case", 0, 0),
    column("cpu_us_per_cgroup", "CPU us/cgroup", 3, 0),
    // How many times cheaper than the baseline: its median CPU time divided by this one's.
    column("ratio_vs_open_14", "times cheaper", 2, 0),
];

/// Cgroups of this program, removed when this is dropped.
struct Tree(Vec<PathBuf>);

impl Tree {
    fn add(&mut self, folder: PathBuf) -> Result<(), Failure> {
        fs::create_dir(&folder).map_err(|error| {
            format!(
                "cannot make {}: {error}; run this as root",
                folder.display()
            )
        })?;
        self.0.push(folder);
        Ok(())
    }

    /// Those for processes.
    fn leaves(&self) -> &[PathBuf] {
        &self.0[1 + PARENTS..]
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // The kernel removes a process from its cgroup some time after its parent has waited for it.
            for _ in 0..100 {
                match fs::remove_dir(folder) {
                    Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                        thread::sleep(Duration::from_millis(10));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Creates cgroups with every controller.
fn tree(mount: &Path, wanted: usize) -> Result<Tree, Failure> {
    let enabled = fs::read_to_string(mount.join("cgroup.subtree_control"))?;
    let enabled: Vec<_> = enabled.split_ascii_whitespace().collect();
    let missing = CONTROLLERS.into_iter().find(|name| !enabled.contains(name));
    if let Some(missing) = missing {
        return Err(NoController(missing, mount.display().to_string()).into());
    }
    let top = mount.join(format!("fastproc-bench-{}", std::process::id()));
    let mut tree = Tree(Vec::new());
    tree.add(top.clone())?;
    enable(&top)?;
    for at in 0..PARENTS {
        let parent = top.join(format!("g{at}"));
        tree.add(parent.clone())?;
        enable(&parent)?;
    }
    for at in 0..wanted {
        tree.add(top.join(format!("g{}/c{at}", at % PARENTS)))?;
    }
    Ok(tree)
}

/// Enables the controllers for the children of this cgroup.
fn enable(cgroup: &Path) -> io::Result<()> {
    let all = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
    fs::write(cgroup.join("cgroup.subtree_control"), all)
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let wanted = args.cgroups as usize;
    let files = Cgroups::builder().source(Some(Source::Files)).open()?;
    let tree = tree(files.mount(), wanted)?;
    drop(files);
    // Dropped before the cgroups of these processes.
    let idle = Idle::start(args.processes.min(args.cgroups) as usize)?;
    for (pid, leaf) in idle.pids().zip(tree.leaves()) {
        fs::write(leaf.join("cgroup.procs"), pid.to_string())?;
    }
    raise_open_files();
    // The first files of each cgroup.
    let paths = |count: usize| -> Vec<PathBuf> {
        let leaves = tree.leaves().iter();
        leaves
            .flat_map(|leaf| FILES[..count].iter().map(|file| leaf.join(file)))
            .collect()
    };
    let old = Duration::from_secs(24 * 3600);
    let all = Fields::ALL_BUT_AVERAGES;
    let by_bpf = all - Fields::PRESSURE;
    let mut cases = Vec::new();
    for (name, count) in [(BASELINE, FILES.len()), ("open-11", WITHOUT_PRESSURE)] {
        let (paths, mut buffer) = (paths(count), vec![0; 8 << 10]);
        cases.push(Case::new(name, move || {
            for path in &paths {
                let _ = File::open(path)?.read_at(&mut buffer, 0)?;
            }
            Ok(wanted)
        }));
    }
    for (name, count) in [("kept-14", FILES.len()), ("kept-11", WITHOUT_PRESSURE)] {
        let files = paths(count)
            .into_iter()
            .map(File::open)
            .collect::<io::Result<Vec<_>>>()?;
        let mut buffer = vec![0; 8 << 10];
        cases.push(Case::new(name, move || {
            for file in &files {
                let _ = file.read_at(&mut buffer, 0)?;
            }
            Ok(wanted)
        }));
    }
    for (name, source, fields, age) in [
        ("files", Source::Files, all, old),
        ("bpf-identity", Source::Bpf, Fields::empty(), old),
        ("bpf-cpu", Source::Bpf, Fields::CPU, old),
        ("bpf-memory.stat", Source::Bpf, Fields::MEMORY_STAT, old),
        ("bpf", Source::Bpf, by_bpf, old),
        ("bpf-flush", Source::Bpf, by_bpf, Duration::ZERO),
        ("bpf-pressure", Source::Bpf, all, old),
        ("bpf-pressure-flush", Source::Bpf, all, Duration::ZERO),
    ] {
        let builder = Cgroups::builder().source(Some(source)).fields(fields);
        let mut cgroups = builder.max_age(age).open()?;
        cases.push(Case::new(name, move || {
            if cgroups.snapshot()?.len() < wanted {
                return Err("cgroups are missing".into());
            }
            Ok(wanted)
        }));
    }
    let plan = Plan {
        prime: 0,
        warm_up: 2,
        rounds: common.rounds(11),
        repeat: 1,
        cpu: args.cpu,
    };
    let measured = measure(&mut cases, plan, |_| Ok(idle.wake(Some(1))?))?;
    let mut report = Report::new("cgroups", "A snapshot of every cgroup", &COLUMNS);
    report.head(json!({"cgroups": wanted, "processes": args.processes}));
    let baseline = named(&measured, BASELINE)?.cpu_us().median;
    for case in &measured {
        let cpu = case.cpu_us();
        report.row([case.name.into(), cpu.into(), (baseline / cpu.median).into()]);
    }
    report.note(
        "open and kept read the texts into memory, each by one read, and do not parse them; bpf does not fold what CPUs have \
         counted, bpf-flush does",
    );
    Ok(report.print(common.json)?)
}
