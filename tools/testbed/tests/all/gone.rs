//! A second, plain reader of `/proc`, and functions that test whether a process has ended.

use std::{collections::HashSet, fs};

/// State and start time of a process or (`PID/task/TID`) a thread.
pub fn stat(path: &str) -> Option<(char, u64)> {
    let text = fs::read(format!("/proc/{path}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.rsplit_once(") ")?.1.split_whitespace().collect();
    Some((words[0].chars().next()?, words[19].parse().ok()?))
}

fn parent(pid: u32) -> Option<u32> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(") ")?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// The threads of a process, in order; none if it has ended.
pub fn threads(pid: u32) -> impl Iterator<Item = u32> {
    let mut tids: Vec<u32> = numbers(&format!("/proc/{pid}/task")).collect();
    tids.sort_unstable();
    tids.into_iter()
}

fn numbers(path: &str) -> impl Iterator<Item = u32> {
    // A process that has ended meanwhile cannot be opened, or ends the list.
    fs::read_dir(path)
        .into_iter()
        .flatten()
        .map_while(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// All descendants, with their start times.
pub fn descendants(root: u32) -> Vec<(u32, u64)> {
    // Read once: while processes start and end all the time, each further read would find more.
    let parents: Vec<(u32, u32)> = numbers("/proc")
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let mut known = HashSet::from([root]);
    loop {
        let before = known.len();
        let found = parents.iter().filter(|(_, parent)| known.contains(parent));
        let found: Vec<u32> = found.map(|(pid, _)| *pid).collect();
        known.extend(found);
        if known.len() == before {
            known.remove(&root);
            return known
                .into_iter()
                .filter_map(|pid| Some((pid, stat(&pid.to_string())?.1)))
                .collect();
        }
    }
}

/// Whether the process has ended and is not even a zombie; another process with its pid does not count.
pub fn is_gone((pid, starttime): (u32, u64)) -> bool {
    stat(&pid.to_string()).is_none_or(|stat| stat.1 != starttime)
}

/// For processes that the kernel kills and their new parent reaps.
pub fn wait_until_gone(processes: &[(u32, u64)]) {
    // A zombie is dead: the init of a container may not reap it.
    let dead = |pid: u32| {
        stat(&pid.to_string()).is_none_or(|stat| stat.0 == 'Z' && threads(pid).count() <= 1)
    };
    for &process in processes {
        let what = format!("the end of {process:?}");
        fastproc_testbed::wait_until(&what, || is_gone(process) || dead(process.0));
    }
}

/// Sends SIGKILL.
pub fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
