//! Many cgroups, deep ones, and a storm of them: every snapshot shows each once, and no other.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use crate::{
    cgroups::{MEMBER, enable_controllers, has_bpf, move_fast},
    enter::Place,
    proofs::FASTPROC,
    reporter::Reporter,
};

pub const TREE: &str = "/sys/fs/cgroup/scale";
pub const MOUNT: &str = "/sys/fs/cgroup";
/// The numbers of cgroups that are made.
pub const SIZES: &[usize] = &[1_000, 10_000];
/// The same on a machine with many CPUs, for which the kernel needs more memory and time.
pub const SIZES_OF_MANY_CPUS: &[usize] = &[1_000];
/// Cgroups of one parent.
const SIBLINGS: usize = 500;
const DEPTH: usize = 30;
/// Snapshots during a storm, of cgroups that stay among others that come and go.
const SNAPSHOTS: usize = 30;
const STAYING: usize = 50;

/// Does it all. `sizes`: how many cgroups to make.
pub fn check(reporter: &mut Reporter, sizes: &[usize]) -> io::Result<()> {
    enable_controllers()?;
    move_fast();
    fs::create_dir(TREE)?;
    enable(Path::new(TREE))?;
    deep(reporter)?;
    kinds(reporter)?;
    in_namespace(reporter)?;
    storm(reporter)?;
    for &size in sizes {
        many(reporter, size)?;
    }
    Ok(())
}

fn enable(folder: &Path) -> io::Result<()> {
    fs::write(
        folder.join("cgroup.subtree_control"),
        "+cpu +memory +io +pids",
    )
}

pub fn sources() -> &'static [&'static str] {
    if has_bpf() {
        &["bpf", "files"]
    } else {
        &["files"]
    }
}

type Rows = HashMap<String, Vec<serde_json::Value>>;

/// The rows of the tree by their paths, how often each is shown, and how long that took.
fn shown(source: &str, fields: &str) -> io::Result<(Rows, f64)> {
    shown_below("/scale/", &[], source, fields)
}

/// The same of the paths that begin like this. `enter`: words before the command.
pub fn shown_below(
    start: &str,
    enter: &[&str],
    source: &str,
    fields: &str,
) -> io::Result<(Rows, f64)> {
    let fields = format!("path,{fields}");
    let command = [
        FASTPROC, "cgroups", "--json", "--source", source, "--fields", &fields,
    ];
    let argv = [enter, &command].concat();
    let started = Instant::now();
    let output = Command::new(argv[0]).args(&argv[1..]).output()?;
    let took = started.elapsed().as_secs_f64();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(error));
    }
    let mut all: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let mut rows = Rows::new();
    for row in all["cgroups"].as_array_mut().into_iter().flatten() {
        let path = row["path"].as_str().unwrap_or_default().to_owned();
        if path.starts_with(start) {
            rows.entry(path).or_default().push(row.take());
        }
    }
    Ok((rows, took))
}

/// The paths of folders below the mount.
fn paths(folders: &[PathBuf]) -> impl Iterator<Item = String> {
    let path = |folder: &PathBuf| folder.to_string_lossy()[MOUNT.len()..].to_owned();
    folders.iter().map(path)
}

/// Compares what is shown with the folders that exist.
pub fn compare(reporter: &mut Reporter, name: &str, folders: &[PathBuf]) -> io::Result<()> {
    for source in sources() {
        let (rows, took) = shown(source, "memory,cpu_time,descendants")?;
        let is_once = |path: &String| rows.get(path).is_some_and(|rows| rows.len() == 1);
        let wrong = paths(folders).filter(|path| !is_once(path)).count();
        let others = rows.len().saturating_sub(folders.len());
        reporter.fact(
            &format!("{name}, seconds with {source}"),
            format!("{took:.2}"),
        )?;
        reporter.check(
            &format!("{name} {source}"),
            wrong == 0 && others == 0,
            format!(
                "{wrong} of {} missing or twice, {others} too many",
                folders.len()
            ),
        )?;
    }
    Ok(())
}

fn remove(folders: &[PathBuf]) -> io::Result<()> {
    folders.iter().rev().try_for_each(fs::remove_dir)
}

fn deep(reporter: &mut Reporter) -> io::Result<()> {
    let mut folders = Vec::new();
    let mut folder = PathBuf::from(TREE);
    for level in 0..DEPTH {
        folder.push(format!("level{level}"));
        fs::create_dir(&folder)?;
        enable(&folder)?;
        folders.push(folder.clone());
    }
    compare(reporter, "depth 30", &folders)?;
    remove(&folders)
}

/// Frozen, threaded, and with a controller switched off and on.
fn kinds(reporter: &mut Reporter) -> io::Result<()> {
    let [frozen, domain, switched] =
        ["frozen", "domain", "switched"].map(|name| Path::new(TREE).join(name));
    let threaded = domain.join("threaded");
    let below = switched.join("below");
    let folders = [
        frozen.clone(),
        domain,
        threaded.clone(),
        switched.clone(),
        below,
    ];
    folders.iter().try_for_each(fs::create_dir)?;
    fs::write(frozen.join("cgroup.freeze"), "1")?;
    fs::write(threaded.join("cgroup.type"), "threaded")?;
    for source in sources() {
        let mut wrong = Vec::new();
        for is_on in [true, false, true] {
            let control = if is_on { "+memory" } else { "-memory" };
            fs::write(switched.join("cgroup.subtree_control"), control)?;
            let (rows, _) = shown(source, "frozen,memory")?;
            let value = |path: &str, name: &str| {
                let row = rows.get(path).and_then(|rows| rows.first());
                row.map(|row| row[name].clone()).unwrap_or_default()
            };
            for (path, column, is_right) in [
                (
                    "/scale/frozen",
                    "frozen",
                    value("/scale/frozen", "frozen") == true,
                ),
                (
                    "/scale/domain",
                    "frozen",
                    value("/scale/domain", "frozen") == false,
                ),
                (
                    "/scale/domain/threaded",
                    "memory",
                    value("/scale/domain/threaded", "memory_bytes").is_null(),
                ),
                (
                    "/scale/switched/below",
                    "memory",
                    value("/scale/switched/below", "memory_bytes").is_null() != is_on,
                ),
            ] {
                if !is_right {
                    wrong.push(format!("{path}: {column} (memory on: {is_on})"));
                }
            }
        }
        reporter.check(
            &format!("kinds {source}"),
            wrong.is_empty(),
            wrong.join("; "),
        )?;
    }
    remove(&folders)
}

fn many(reporter: &mut Reporter, size: usize) -> io::Result<()> {
    let mut folders = Vec::with_capacity(size);
    while folders.len() < size {
        let parent = Path::new(TREE).join(format!("parent{}", folders.len()));
        fs::create_dir(&parent)?;
        enable(&parent)?;
        folders.push(parent.clone());
        for child in 0..SIBLINGS.min(size - folders.len()) {
            let child = parent.join(format!("child{child}"));
            fs::create_dir(&child)?;
            folders.push(child);
        }
    }
    compare(reporter, &format!("{size} cgroups"), &folders)?;
    // Reading one of these makes the kernel add up the counts of all CPUs, for all descendants, at once.
    for file in ["cpu.stat", "memory.stat", "io.stat"] {
        let started = Instant::now();
        fs::read(Path::new(TREE).join(file))?;
        reporter.fact(
            &format!("{size} cgroups, microseconds of {file}"),
            started.elapsed().as_micros(),
        )?;
    }
    remove(&folders)
}

/// A reader in a cgroup namespace sees its own cgroup as the root, and nothing beside it.
fn in_namespace(reporter: &mut Reporter) -> io::Result<()> {
    let folders = ["namespace", "namespace/below", "beside"].map(|name| Path::new(TREE).join(name));
    folders.iter().try_for_each(fs::create_dir)?;
    let own = std::process::id().to_string();
    fs::write(folders[0].join("cgroup.procs"), &own)?;
    let enter = Place::CgroupNamespace.enter();
    for source in sources() {
        let (rows, _) = shown_below("/", &enter, source, "cpu_time")?;
        let mut paths: Vec<_> = rows.into_keys().collect();
        paths.sort();
        reporter.check(
            &format!("cgroup namespace {source}"),
            paths == ["/", "/below"],
            paths.join(" "),
        )?;
    }
    fs::write(Path::new(MOUNT).join("cgroup.procs"), &own)?;
    remove(&folders)
}

/// What stays is in each snapshot once, while others are made and removed beside it, and a process moves between them.
fn storm(reporter: &mut Reporter) -> io::Result<()> {
    let at = |number: usize| Path::new(TREE).join(format!("stay{number}"));
    let folders: Vec<_> = (0..STAYING).map(at).collect();
    folders.iter().try_for_each(fs::create_dir)?;
    let ends = AtomicBool::new(false);
    let blow = |name: &str| -> io::Result<u64> {
        let mut member = Command::new("/proc/self/exe");
        member.args([MEMBER, MOUNT, "idle"]);
        let mut sleeper = member.stdout(Stdio::null()).spawn().ok();
        let pid = sleeper.as_ref().map(|child| child.id().to_string());
        let mut made = 0;
        while !ends.load(Ordering::Relaxed) {
            let folder = Path::new(TREE).join(format!("{name}{made}"));
            fs::create_dir(&folder)?;
            if let Some(pid) = &pid {
                // It may have ended.
                let _ = fs::write(folder.join("cgroup.procs"), pid);
                let _ = fs::write(Path::new(MOUNT).join("cgroup.procs"), pid);
            }
            fs::remove_dir(&folder)?;
            made += 1;
        }
        if let Some(child) = &mut sleeper {
            let _ = child.kill();
            let _ = child.wait();
        }
        Ok(made)
    };
    let (found, made) = thread::scope(|scope| {
        let storms = ["a", "b"].map(|name| scope.spawn(move || blow(name)));
        let found = during_storm(&folders);
        ends.store(true, Ordering::Relaxed);
        let made = storms.map(|storm| storm.join().unwrap_or(Ok(0)));
        (found, made)
    });
    let (compared, wrong) = found?;
    let [one, other] = made;
    reporter.fact("cgroups made in a storm", one? + other?)?;
    reporter.fact("rows compared in a storm", compared)?;
    reporter.check("storm", wrong == 0, format!("{wrong} missing or twice"))?;
    remove(&folders)
}

fn during_storm(folders: &[PathBuf]) -> io::Result<(usize, usize)> {
    let (mut compared, mut wrong) = (0, 0);
    for source in sources() {
        for _ in 0..SNAPSHOTS {
            let (rows, _) = shown(source, "memory,cpu_time")?;
            compared += rows.len();
            wrong += rows.values().filter(|rows| rows.len() != 1).count();
            wrong += paths(folders)
                .filter(|path| !rows.contains_key(path))
                .count();
        }
    }
    Ok((compared, wrong))
}
