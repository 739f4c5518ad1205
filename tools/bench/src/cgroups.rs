//! `fastproc bench cgroups`: the cost of reading every cgroup once, by their files and by a snapshot.

use std::{
    cell::Cell,
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::Path,
    time::{Duration, Instant},
};

use fastproc::cgroups::{Cgroups, Fields, Source};
use serde::Serialize;

use super::{
    idle::Idle,
    measure::{Case, Failure, Measured, Plan, measure},
    report::{Column, Report, Row, Spread, column, four_decimals, progress},
    scan_proc::raise_open_files,
    tree::Tree,
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
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Stay on this CPU.
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Why no cgroups can be created.
#[derive(Debug, thiserror::Error)]
#[error(
    "the controller {0} is not enabled on version 2 (cgroup.subtree_control of {1}): where it is on version 1, run this in an \
     emulator, make test-kernels KERNELS=6.12 SCENARIOS=cgroup_cost"
)]
struct NoController(&'static str, String);

#[derive(Debug, Serialize)]
struct Head {
    cgroups: usize,
    processes: u32,
}

#[derive(Debug, Serialize)]
struct Look {
    case: &'static str,
    cpu_us_per_cgroup: Spread,
    /// How many times cheaper than the baseline: its median CPU time divided by this one's.
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_open_14: f64,
}

impl Row for Look {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("CPU us/cgroup", 0),
        column("min", 1),
        column("max", 1),
        column("times cheaper", 0),
    ];

    fn cells(&self) -> Vec<String> {
        let us = |value: f64| format!("{value:.3}");
        let cpu = self.cpu_us_per_cgroup;
        vec![
            self.case.to_owned(),
            us(cpu.median),
            us(cpu.min),
            us(cpu.max),
            format!("{:.2}", self.ratio_vs_open_14),
        ]
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
    let mut tree = Tree::new(mount)?;
    let top = tree.top().to_owned();
    enable(&top)?;
    for at in 0..PARENTS {
        let parent = top.join(format!("g{at}"));
        tree.add(parent.clone())?;
        enable(&parent)?;
    }
    for at in 0..wanted {
        tree.add_leaf(top.join(format!("g{}/c{at}", at % PARENTS)))?;
    }
    Ok(tree)
}

/// Enables the controllers for the children of this cgroup.
fn enable(cgroup: &Path) -> io::Result<()> {
    let all = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
    fs::write(cgroup.join("cgroup.subtree_control"), all)
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let wanted = args.cgroups as usize;
    let mount = {
        let files = Cgroups::builder().source(Some(Source::Files)).open()?;
        files.mount().to_owned()
    };
    let tree = tree(&mount, wanted)?;
    // Dropped before the cgroups of these processes.
    let idle = Idle::start_some(args.processes.min(args.cgroups) as usize)?;
    if let Some(idle) = &idle {
        tree.settle(idle)?;
    }
    raise_open_files();
    let leaves = &tree.leaves;
    let opened = |count: usize| {
        let paths: Vec<_> = leaves
            .iter()
            .flat_map(|leaf| FILES[..count].iter().map(|file| leaf.join(file)))
            .collect();
        move || -> Result<usize, Failure> {
            let mut buffer = vec![0; 8 << 10];
            for path in &paths {
                let file = File::open(path)?;
                let _ = file.read_at(&mut buffer, 0)?;
            }
            Ok(wanted)
        }
    };
    let kept = |count: usize| -> io::Result<_> {
        let files: Vec<_> = leaves
            .iter()
            .flat_map(|leaf| {
                FILES[..count]
                    .iter()
                    .map(|file| File::open(leaf.join(file)))
            })
            .collect::<io::Result<_>>()?;
        Ok(move || -> Result<usize, Failure> {
            let mut buffer = vec![0; 8 << 10];
            for file in &files {
                let _ = file.read_at(&mut buffer, 0)?;
            }
            Ok(wanted)
        })
    };
    let longest_section = &Cell::new(Duration::ZERO);
    let snapshots = |source, fields, age| -> Result<_, Failure> {
        let builder = Cgroups::builder().source(Some(source)).fields(fields);
        let mut cgroups = builder.max_age(age).open()?;
        Ok(move || -> Result<usize, Failure> {
            if cgroups.snapshot()?.len() < wanted {
                return Err("cgroups are missing".into());
            }
            longest_section.set(longest_section.get().max(cgroups.longest_section()));
            Ok(wanted)
        })
    };
    let old = Duration::from_secs(24 * 3600);
    let all = Fields::all() - Fields::RARE;
    let by_bpf = all - Fields::PRESSURE;
    let mut cases = vec![
        Case {
            name: BASELINE,
            run: Box::new(opened(FILES.len())),
        },
        Case {
            name: "open-11",
            run: Box::new(opened(WITHOUT_PRESSURE)),
        },
        Case {
            name: "kept-14",
            run: Box::new(kept(FILES.len())?),
        },
        Case {
            name: "kept-11",
            run: Box::new(kept(WITHOUT_PRESSURE)?),
        },
        Case {
            name: "files",
            run: Box::new(snapshots(Source::Files, all, old)?),
        },
        Case {
            name: "bpf-identity",
            run: Box::new(snapshots(Source::Bpf, Fields::empty(), old)?),
        },
        Case {
            name: "bpf-cpu",
            run: Box::new(snapshots(Source::Bpf, Fields::CPU, old)?),
        },
        Case {
            name: "bpf-memory.stat",
            run: Box::new(snapshots(Source::Bpf, Fields::MEMORY_STAT, old)?),
        },
        Case {
            name: "bpf",
            run: Box::new(snapshots(Source::Bpf, by_bpf, old)?),
        },
        Case {
            name: "bpf-flush",
            run: Box::new(snapshots(Source::Bpf, by_bpf, Duration::ZERO)?),
        },
        Case {
            name: "bpf-pressure",
            run: Box::new(snapshots(Source::Bpf, all, old)?),
        },
        Case {
            name: "bpf-pressure-flush",
            run: Box::new(snapshots(Source::Bpf, all, Duration::ZERO)?),
        },
    ];
    let plan = Plan {
        prime: 0,
        warm_up: 2,
        rounds: args.rounds,
        repeat: 1,
        cpu: args.cpu,
    };
    let progress = progress(u64::from(plan.runs()) * cases.len() as u64, "runs");
    let wake = |_| Ok(idle.as_ref().map_or(Ok(()), |idle| idle.wake(1))?);
    let measured = measure(&mut cases, plan, wake, || progress.inc(1))?;
    progress.finish_and_clear();
    drop(cases);
    let mut report = report(&measured, wanted, args.processes)?;
    report.note(format!(
        "the longest section of a walk took {} us",
        longest_section.get().as_micros()
    ));
    Idle::wake_some(idle.as_ref(), Some(1))?;
    report.note(format!(
        "of that with pressure, the walk alone takes {:.3} us per cgroup",
        walk()?.as_secs_f64() * 1e6 / wanted as f64
    ));
    report.note(format!(
        "to fold the counts of all {wanted} cgroups at once, the kernel took {}",
        flushes(tree.top())?.join(", ")
    ));
    drop(idle);
    report.print("A snapshot of every cgroup", args.json)?;
    Ok(())
}

/// How long the program takes for all cgroups and all that they have.
fn walk() -> Result<Duration, Failure> {
    let builder = Cgroups::builder().source(Some(Source::Bpf));
    let builder = builder.fields(Fields::all()).max_age(Duration::MAX);
    // In one section.
    let mut cgroups = builder.section(Duration::from_secs(3600)).open()?;
    let mut least = Duration::MAX;
    for _ in 0..5 {
        cgroups.snapshot()?;
        least = least.min(cgroups.longest_section());
    }
    Ok(least)
}

/// How long the kernel takes to fold the counts of a cgroup and its descendants. It holds a lock with interrupts off for
/// the greatest part of that.
fn flushes(top: &Path) -> io::Result<Vec<String>> {
    let files = ["cpu.stat", "memory.stat", "io.stat"].into_iter();
    let flush = |name: &str| {
        let file = File::open(top.join(name))?;
        let started = Instant::now();
        let _ = file.read_at(&mut [0; 8 << 10], 0)?;
        Ok(format!("{} us for {name}", started.elapsed().as_micros()))
    };
    files.map(flush).collect()
}

fn report(
    measured: &[Measured],
    cgroups: usize,
    processes: u32,
) -> Result<Report<Head, Look>, Failure> {
    let baseline = measured
        .iter()
        .find(|case| case.name == BASELINE)
        .ok_or("there is nothing to compare with")?;
    let cpu = baseline.cpu_us().median;
    let row = |case: &Measured| Look {
        case: case.name,
        cpu_us_per_cgroup: case.cpu_us(),
        ratio_vs_open_14: cpu / case.cpu_us().median,
    };
    let head = Head { cgroups, processes };
    let rows = measured.iter().map(row).collect();
    let mut report = Report::new("cgroups", head, rows, Vec::new());
    report.note(
        "open and kept read the texts into memory, each by one read, and do not parse them; bpf does not fold what CPUs have \
         counted, bpf-flush does"
            .into(),
    );
    Ok(report)
}
