//! A tree of cgroups in which every kind of value is in use; compares their files with `fastproc cat`.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::mount::MountFlags;

use crate::{json, memory::DISK, proofs::FASTPROC, reporter::Reporter};

/// The argument that makes this program a process of a cgroup. The cgroup and the work follow.
pub const MEMBER: &str = "member";

const ROOT: &str = "/sys/fs/cgroup";
pub const TREE: &str = "/sys/fs/cgroup/tree";
const CONTROLLERS: &str = "+cpu +memory +io +pids";
const MIB: usize = 1 << 20;
/// The most comparisons, until the kernel's own texts before and after are the same.
pub const ROUNDS: u32 = 6;

/// Files, and the text to write to them.
type Settings = &'static [(&'static str, &'static str)];

/// Cgroups below the tree, the text to write to their files, and the work of their processes.
const CGROUPS: [(&str, Settings, &str); 7] = [
    (
        "memory",
        &[
            ("memory.high", "64M"),
            ("memory.low", "1M"),
            ("memory.min", "512K"),
        ],
        "memory",
    ),
    ("disk", &[("cpu.weight", "250")], "disk"),
    ("throttled", &[("cpu.max", "2000 10000")], "spin"),
    (
        "killed",
        &[
            ("memory.max", "8M"),
            ("memory.swap.max", "0"),
            ("memory.oom.group", "1"),
        ],
        "much",
    ),
    ("many", &[("pids.max", "7")], "many"),
    ("empty", &[], ""),
    ("nested", &[("memory.max", "512M")], ""),
];
const INNER: &str = "nested/inner";

/// The files that are compared.
const FILES: [&str; 22] = [
    "cpu.stat",
    "cpu.max",
    "cpu.weight",
    "memory.current",
    "memory.peak",
    "memory.min",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.oom.group",
    "memory.events",
    "memory.events.local",
    "memory.swap.current",
    "memory.swap.peak",
    "memory.swap.high",
    "memory.swap.max",
    "memory.swap.events",
    "memory.stat",
    "pids.current",
    "pids.max",
    "pids.peak",
    "io.stat",
];

/// Values that must not be zero, because comparing zeros proves nothing.
const IN_USE: [(&str, &str, &str); 11] = [
    ("memory", "memory.stat", "anon"),
    ("memory", "memory.stat", "shmem"),
    ("memory", "memory.stat", "pgfault"),
    ("disk", "memory.stat", "file"),
    ("disk", "io.stat", "rbytes"),
    ("disk", "io.stat", "wbytes"),
    ("throttled", "cpu.stat", "nr_throttled"),
    ("throttled", "cpu.stat", "throttled_usec"),
    ("killed", "memory.events", "oom_kill"),
    ("killed", "memory.events.local", "max"),
    (INNER, "memory.stat", "anon"),
];

/// Columns of `fastproc cgroups`, and the files and lines with the same numbers.
const TABLE: &str = "path,memory,anon,file,swap,oom_kills,tasks,nr_throttled";
const SHOWN: [(&str, &str, &str); 7] = [
    ("memory_bytes", "memory.current", ""),
    ("anon_bytes", "memory.stat", "anon"),
    ("file_bytes", "memory.stat", "file"),
    ("swap_bytes", "memory.swap.current", ""),
    ("oom_kills", "memory.events", "oom_kill"),
    ("tasks", "pids.current", ""),
    ("nr_throttled", "cpu.stat", "nr_throttled"),
];

/// Builds the tree, and stops its processes.
pub fn build_and_stop() -> io::Result<Vec<Child>> {
    let members = build()?;
    stop_all(&members)?;
    Ok(members)
}

/// Compares the files of the tree.
pub fn compare(reporter: &mut Reporter) -> io::Result<()> {
    let mut unused = Vec::new();
    for (cgroup, file, name) in IN_USE {
        let text = fs::read_to_string(Path::new(TREE).join(cgroup).join(file))?;
        if value(&text, name).is_none_or(|value| value == 0) {
            unused.push(format!("{cgroup}/{file} {name}"));
        }
    }
    reporter.check("values in use", unused.is_empty(), unused.join(", "))?;
    let has_bpf = has_bpf();
    let report = json::of(&[FASTPROC, "doctor", "--json"])?;
    let cgroups = &report["cgroups"];
    let reads = cgroups["memory_stat_as_text"] == !has_bpf
        && cgroups["source"] == if has_bpf { "bpf" } else { "files" };
    reporter.check("source of cgroups", reads, cgroups.to_string())?;
    let paths = paths();
    let mut argv = vec![
        FASTPROC,
        "cat",
        "--source",
        if has_bpf { "bpf" } else { "auto" },
    ];
    argv.extend(paths.iter().filter_map(|path| path.to_str()));
    let mut rounds = 0;
    let (started, before, output, after) = loop {
        rounds += 1;
        let started = Instant::now();
        let before = texts(&paths)?;
        let output = Command::new(argv[0]).args(&argv[1..]).output();
        let after = texts(&paths)?;
        if before == after || rounds == ROUNDS {
            break (started, before, output, after);
        }
    };
    let shown = output
        .as_ref()
        .map(|output| output.stdout.clone())
        .unwrap_or_default();
    // The report does not need the whole output.
    let output = output.map(|output| std::process::Output {
        stdout: Vec::new(),
        ..output
    });
    reporter.command("cat", &argv[..4], started, output)?;
    let differences = differences(&paths, &before, &after, &shown);
    reporter.fact("files of cgroups compared", paths.len())?;
    reporter.check(
        "files of cgroups",
        differences.is_empty(),
        differences.join("; "),
    )?;
    for source in if has_bpf {
        &["bpf", "files"][..]
    } else {
        &["files"]
    } {
        table(reporter, source)?;
    }
    limits(reporter)
}

/// Compares the limits that `fastproc ps` shows for processes with the files of their cgroups. The memory limit of the
/// outer cgroup applies to processes of the inner one.
fn limits(reporter: &mut Reporter) -> io::Result<()> {
    const FIELDS: &str = "cgroup,cgroup_memory_max,cgroup_memory_used,cgroup_cpu_max,cgroup_tasks_max,cgroup_tasks_used";
    let argv = [FASTPROC, "ps", "--json", "--fields", FIELDS];
    let started = Instant::now();
    let output = Command::new(argv[0]).args(&argv[1..]).output();
    let shown = output.as_ref().map(|output| output.stdout.clone());
    let shown = shown.unwrap_or_default();
    reporter.command("limits", &argv, started, output)?;
    let shown: serde_json::Value = serde_json::from_slice(&shown)?;
    let read = |path: &str| -> io::Result<Option<f64>> {
        let text = fs::read_to_string(Path::new(TREE).join(path))?;
        Ok(text.trim().parse().ok())
    };
    let part = |used: Option<f64>, limit: Option<f64>| Some(used? / limit? * 100.0);
    let memory = read("nested/memory.max")?;
    let tasks = read("many/pids.max")?;
    let mut wrong = Vec::new();
    for (cgroup, column, expected) in [
        ("memory", "cgroup_memory_max_bytes", None),
        ("memory", "cgroup_cpu_max", None),
        (INNER, "cgroup_memory_max_bytes", memory),
        (
            INNER,
            "cgroup_memory_used",
            part(read("nested/memory.current")?, memory),
        ),
        ("throttled", "cgroup_cpu_max", Some(20.0)),
        ("many", "cgroup_tasks_max", tasks),
        (
            "many",
            "cgroup_tasks_used",
            part(read("many/pids.current")?, tasks),
        ),
    ] {
        let path = format!("/tree/{cgroup}");
        let rows = shown["processes"].as_array();
        let row = rows.and_then(|rows| rows.iter().find(|row| row["cgroup"] == path.as_str()));
        let value = row.map(|row| &row[column]);
        let is_right = value.is_some_and(|value| match expected {
            None => value.is_null(),
            // JSON has four digits.
            Some(number) => value
                .as_f64()
                .is_some_and(|value| (value - number).abs() < 0.01),
        });
        if !is_right {
            wrong.push(format!(
                "{cgroup}: {column} is {value:?} instead of {expected:?}"
            ));
        }
    }
    reporter.check("limits of processes", wrong.is_empty(), wrong.join("; "))
}

/// Ends the processes of the tree.
pub fn end(members: Vec<Child>) -> io::Result<()> {
    for mut member in members {
        member.kill()?;
        member.wait()?;
    }
    Ok(())
}

/// Whether this kernel has the iterator that the walk by BPF needs.
pub fn has_bpf() -> bool {
    fs::read("/sys/kernel/btf/vmlinux")
        .is_ok_and(|types| types.windows(16).any(|part| part == b"bpf_iter_css_new"))
}

/// Compares values of `fastproc cgroups` with the kernel's files.
fn table(reporter: &mut Reporter, source: &str) -> io::Result<()> {
    let name = format!("cgroups {source}");
    let argv = [
        FASTPROC, "cgroups", "--json", "--source", source, "--fields", TABLE,
    ];
    let paths = paths();
    let mut rounds = 0;
    let (started, output, kernel) = loop {
        rounds += 1;
        let started = Instant::now();
        let before = texts(&paths)?;
        let output = Command::new(argv[0]).args(&argv[1..]).output();
        let after = texts(&paths)?;
        if before == after || rounds == ROUNDS {
            break (started, output, after);
        }
    };
    let shown = output
        .as_ref()
        .map(|output| output.stdout.clone())
        .unwrap_or_default();
    reporter.command(&name, &argv, started, output)?;
    let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap_or_default();
    let rows = shown["cgroups"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut wrong = Vec::new();
    for cgroup in cgroups() {
        let path = format!("/tree/{cgroup}");
        let Some(row) = rows.iter().find(|row| row["path"] == path.as_str()) else {
            wrong.push(format!("{cgroup} is missing"));
            continue;
        };
        for (column, file, line) in SHOWN {
            let path = Path::new(TREE).join(cgroup).join(file);
            let Some(at) = paths.iter().position(|known| *known == path) else {
                wrong.push(format!("{cgroup} has no {file}"));
                continue;
            };
            let text = &kernel[at];
            let kernel = if line.is_empty() {
                text.trim().parse().ok()
            } else {
                value(text, line)
            };
            if row[column].as_u64() != kernel {
                wrong.push(format!(
                    "{cgroup}: {column} is {} instead of {kernel:?}",
                    row[column]
                ));
            }
        }
    }
    reporter.check(&name, wrong.is_empty(), wrong.join("; "))
}

/// Enables the controllers for the children of the root.
pub fn enable_controllers() -> io::Result<()> {
    fs::write(Path::new(ROOT).join("cgroup.subtree_control"), CONTROLLERS)
}

/// Otherwise each move of a process waits for all CPUs. Linux 6.0 has this option.
pub fn move_fast() {
    let _ = rustix::mount::mount_remount(ROOT, MountFlags::empty(), "favordynmods");
}

fn build() -> io::Result<Vec<Child>> {
    enable_controllers()?;
    fs::create_dir(TREE)?;
    fs::write(Path::new(TREE).join("cgroup.subtree_control"), CONTROLLERS)?;
    let mut members = Vec::new();
    for (name, settings, work) in CGROUPS {
        let cgroup = Path::new(TREE).join(name);
        fs::create_dir(&cgroup)?;
        for (file, text) in settings {
            fs::write(cgroup.join(file), text)?;
        }
        if !work.is_empty() {
            members.push(member(&cgroup, work)?);
        }
    }
    fs::write(
        Path::new(TREE).join("nested/cgroup.subtree_control"),
        CONTROLLERS,
    )?;
    let inner = Path::new(TREE).join(INNER);
    fs::create_dir(&inner)?;
    members.push(member(&inner, "memory")?);
    Ok(members)
}

/// Starts a process in a cgroup, and waits until it has done its work or was killed for it.
fn member(cgroup: &Path, work: &str) -> io::Result<Child> {
    let mut child = Command::new("/proc/self/exe")
        .args([MEMBER.as_ref(), cgroup.as_os_str(), work.as_ref()])
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut out) = child.stdout.take() {
        let mut byte = [0];
        // At an end of file the process is gone.
        let _ = out.read(&mut byte)?;
    }
    Ok(child)
}

/// Stops all processes of the tree, and waits until the kernel has folded its counters.
fn stop_all(members: &[Child]) -> io::Result<()> {
    for member in members {
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(member.id() as i32, libc::SIGSTOP) };
    }
    fs::write(Path::new(TREE).join("cgroup.freeze"), "1")?;
    // The kernel writes pages back after a while, and folds its counters every two seconds.
    rustix::fs::sync();
    thread::sleep(Duration::from_secs(3));
    Ok(())
}

/// All cgroups below the tree, by their paths in it.
pub fn cgroups() -> impl Iterator<Item = &'static str> {
    CGROUPS.iter().map(|(name, ..)| *name).chain([INNER])
}

fn paths() -> Vec<PathBuf> {
    let cgroups = cgroups().chain([""]).map(|name| Path::new(TREE).join(name));
    let all = cgroups.flat_map(|cgroup| FILES.map(|file| cgroup.join(file)));
    // Older kernels have fewer of these files.
    all.filter(|path| path.exists()).collect()
}

fn texts(paths: &[PathBuf]) -> io::Result<Vec<String>> {
    paths.iter().map(fs::read_to_string).collect()
}

/// Printed texts that differ from both of the kernel's texts around them, or for which these differ.
fn differences(
    paths: &[PathBuf],
    before: &[String],
    after: &[String],
    shown: &[u8],
) -> Vec<String> {
    let shown = String::from_utf8_lossy(shown);
    let mut rest = &*shown;
    let mut found = Vec::new();
    for ((path, before), after) in paths.iter().zip(before).zip(after) {
        let path = path.strip_prefix(TREE).unwrap_or(path).display();
        if let Some(next) = rest
            .strip_prefix(after.as_str())
            .or_else(|| rest.strip_prefix(before.as_str()))
        {
            rest = next;
            if before != after {
                found.push(format!("{path} has changed meanwhile"));
            }
            continue;
        }
        let mut lines = rest.lines();
        for line in after.lines() {
            let ours = lines.next().unwrap_or_default();
            if ours != line {
                found.push(format!("{path}: {ours:?} instead of {line:?}"));
            }
        }
        // The number of lines of the kernel's text.
        let count: usize = rest
            .split_inclusive('\n')
            .take(after.lines().count())
            .map(str::len)
            .sum();
        rest = &rest[count..];
    }
    if !rest.is_empty() {
        found.push(format!("{rest:?} is left"));
    }
    found
}

/// The number after a name, on a line or after `=`.
pub fn value(text: &str, name: &str) -> Option<u64> {
    let mut words = text.split([' ', '\n', '=']);
    words.find(|word| *word == name)?;
    words.next()?.parse().ok()
}

/// Runs a process of a cgroup: it joins, works, reports that, and waits.
pub fn be_member(arguments: &[OsString]) -> ExitCode {
    let [cgroup, work] = arguments else {
        return ExitCode::from(2);
    };
    match join_and_work(Path::new(cgroup), &work.to_string_lossy()) {
        Ok(()) => loop {
            thread::sleep(Duration::from_secs(60));
        },
        Err(error) => {
            eprintln!("init: {}: {error}", work.display());
            ExitCode::FAILURE
        }
    }
}

fn join_and_work(cgroup: &Path, work: &str) -> io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), std::process::id().to_string())?;
    let mut kept = Vec::new();
    match work {
        "memory" => {
            kept = vec![1_u8; 6 * MIB];
            fs::write(format!("/tmp/member-{}", std::process::id()), &kept[..MIB])?;
        }
        "much" => kept = vec![1_u8; 32 * MIB],
        "disk" => {
            let mut disk = File::open(DISK)?;
            kept.resize(3 * MIB, 0);
            disk.read_exact(&mut kept)?;
            let written = OpenOptions::new().write(true).open(DISK)?;
            written.write_all_at(&kept[..MIB], 8 * MIB as u64)?;
            written.sync_all()?;
            // The cache of a disk is dropped when no process has it open.
            std::mem::forget((disk, written));
        }
        "spin" => {
            let begun = Instant::now();
            let mut count = 0_u64;
            while begun.elapsed() < Duration::from_millis(300) {
                count = std::hint::black_box(count + 1);
            }
        }
        _ => {
            for _ in 0..3 {
                thread::spawn(|| thread::sleep(Duration::from_secs(3600)));
            }
        }
    }
    std::hint::black_box(&kept);
    io::stdout().write_all(b".")?;
    io::stdout().flush()?;
    std::mem::forget(kept);
    Ok(())
}
