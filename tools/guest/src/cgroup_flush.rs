//! How long a CPU runs with interrupts off while the kernel folds the counts of cgroups: it holds a lock meanwhile, and
//! its tracepoints say when. The figures are in docs/cgroups.md.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{cgroups::move_fast, mounts, proofs::FASTPROC, reporter::Reporter};

const MOUNT: &str = "/sys/fs/cgroup";
const TREE: &str = "/sys/fs/cgroup/flush";
const TRACING: &str = "/sys/kernel/tracing";
/// When the lock was taken and is released.
const LOCKED: &str = "cgroup_rstat_locked";
const UNLOCK: &str = "cgroup_rstat_unlock";
const CGROUPS: usize = 1000;
const PARENTS: usize = 10;
/// How many of them change before a snapshot.
const CHANGED: [usize; 3] = [10, 100, CGROUPS];
const SNAPSHOTS: usize = 3;
/// Everything that has to be folded.
const FIELDS: &str = "path,cpu_time,anon,read";
/// What a machine that counts instructions executes in a microsecond.
const INSTRUCTIONS: u64 = 500;
/// The most instructions with interrupts off: for each cgroup that changed, and once.
const EACH: u64 = 20_000;
const ONCE: u64 = 200_000;

/// Measures flushes of few and of many changed cgroups.
pub fn measure(reporter: &mut Reporter) -> io::Result<()> {
    move_fast();
    mounts::mount("tracefs", TRACING)?;
    let leaves = make()?;
    reporter.fact("cgroups", leaves.len())?;
    for changed in CHANGED {
        let mut holds = Vec::new();
        let mut others = Vec::new();
        for _ in 0..SNAPSHOTS {
            change(&leaves[..changed])?;
            let text = traced(|| {
                let mut command = Command::new(FASTPROC);
                command.args(["cgroups", "--json", "--source", "bpf", "--fields", FIELDS]);
                let status = command.stdout(Stdio::null()).status()?;
                if status.success() {
                    Ok(())
                } else {
                    Err(io::Error::other("fastproc cgroups has failed"))
                }
            })?;
            for (task, hold) in find(&text) {
                let list = if task.starts_with("fastproc") {
                    &mut holds
                } else {
                    &mut others
                };
                list.push(hold);
            }
        }
        for (whose, list) in [("fastproc", &mut holds), ("the kernel", &mut others)] {
            list.sort_unstable();
            let name =
                format!("{changed} changed cgroups, instructions with interrupts off by {whose}");
            let (most, median) = (list.last().copied(), list.get(list.len() / 2).copied());
            reporter.fact(
                &name,
                format!(
                    "{} at most, {} in the middle of {} times",
                    most.unwrap_or(0) * INSTRUCTIONS,
                    median.unwrap_or(0) * INSTRUCTIONS,
                    list.len()
                ),
            )?;
        }
        let most = holds.last().copied().unwrap_or(0) * INSTRUCTIONS;
        let bound = EACH * changed as u64 + ONCE;
        reporter.check(
            &format!("{changed} changed cgroups"),
            !holds.is_empty() && most <= bound,
            format!("{most} instructions; at most {bound} are asked"),
        )?;
    }
    Ok(())
}

/// Makes the cgroups, all below one top-level cgroup.
fn make() -> io::Result<Vec<PathBuf>> {
    let enable = |folder: &Path| {
        fs::write(
            folder.join("cgroup.subtree_control"),
            "+cpu +memory +io +pids",
        )
    };
    let top = Path::new(TREE);
    fs::create_dir(top)?;
    enable(top)?;
    let mut leaves = Vec::new();
    for parent in 0..PARENTS {
        let parent = top.join(format!("parent{parent}"));
        fs::create_dir(&parent)?;
        enable(&parent)?;
        for leaf in 0..CGROUPS / PARENTS {
            let leaf = parent.join(format!("leaf{leaf}"));
            fs::create_dir(&leaf)?;
            leaves.push(leaf);
        }
    }
    Ok(leaves)
}

/// Runs in each of these cgroups, and uses memory there.
fn change(leaves: &[PathBuf]) -> io::Result<()> {
    let own = std::process::id().to_string();
    for leaf in leaves {
        fs::write(leaf.join("cgroup.procs"), &own)?;
        let memory = vec![1_u8; 256 << 10];
        std::hint::black_box(&memory);
    }
    fs::write(Path::new(MOUNT).join("cgroup.procs"), &own)
}

/// The kernel's trace of the lock while `act` runs.
fn traced(act: impl FnOnce() -> io::Result<()>) -> io::Result<String> {
    let folder = Path::new(TRACING);
    let switch = |is_on: &str| -> io::Result<()> {
        [LOCKED, UNLOCK].into_iter().try_for_each(|event| {
            fs::write(folder.join(format!("events/cgroup/{event}/enable")), is_on)
        })
    };
    // Writing to it empties it.
    fs::write(folder.join("trace"), "")?;
    switch("1")?;
    let result = act();
    switch("0")?;
    result?;
    fs::read_to_string(folder.join("trace"))
}

/// The tasks that held the lock, and for how many microseconds. A line of the trace:
/// `fastproc-71  [001] d..2.  12.345678: cgroup_rstat_locked: root=0 …`
fn find(text: &str) -> Vec<(String, u64)> {
    let mut since = HashMap::new();
    let mut holds = Vec::new();
    for line in text.lines() {
        let Some((task, rest)) = line.split_once(" [") else {
            continue;
        };
        let Some((cpu, rest)) = rest.split_once(']') else {
            continue;
        };
        let mut words = rest.split_ascii_whitespace().skip(1);
        let (Some(time), Some(event)) = (words.next().and_then(micros), words.next()) else {
            continue;
        };
        match event.trim_end_matches(':') {
            LOCKED => {
                since.insert(cpu.to_owned(), time);
            }
            UNLOCK => {
                if let Some(began) = since.remove(cpu) {
                    holds.push((task.trim().to_owned(), time - began));
                }
            }
            _ => {}
        }
    }
    holds
}

/// The microseconds of `12.345678:`.
fn micros(word: &str) -> Option<u64> {
    let (seconds, micros) = word.trim_end_matches(':').split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_says_how_long_each_task_held_the_lock() {
        let text = "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n\
            \x20       fastproc-71      [001] d..2.    12.345678: cgroup_rstat_locked: root=0 id=2 level=1 path=/a cpu=-1 contended=0\n\
            \x20   kworker/0:1-9        [000] d..2.    12.345679: cgroup_rstat_locked: root=0 id=1 level=0 path=/ cpu=0 contended=0\n\
            \x20       fastproc-71      [001] d..2.    12.345700: cgroup_rstat_unlock: root=0 id=2 level=1 path=/a cpu=-1 contended=0\n\
            \x20   kworker/0:1-9        [000] d..2.    13.000000: cgroup_rstat_unlock: root=0 id=1 level=0 path=/ cpu=0 contended=0\n\
            \x20   kworker/0:1-9        [000] d..2.    13.000001: cgroup_rstat_unlock: root=0 id=1 level=0 path=/ cpu=0 contended=0\n";
        let expected = [("fastproc-71", 22), ("kworker/0:1-9", 654_321)];
        let found = find(text);
        let found: Vec<_> = found.iter().map(|(task, hold)| (&**task, *hold)).collect();
        assert_eq!(found, expected);
    }
}
