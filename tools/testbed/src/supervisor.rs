//! The supervisor: starts the test processes one by one, reports those that `/proc` confirms, waits until the opener
//! closes the lifeline, and leaves no process behind.

use std::{
    fs,
    io::Write,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait, waitpid,
};

use crate::{
    context::{Listener, Message, SetUpError},
    expect::Stat,
    fixtures::{self, Fixture},
    role::serve,
    wait::GUARD,
};

/// Keeps the test processes that `wanted` names, separated by commas, or all.
///
/// Prints one line on standard output for each test process: `+ INDEX PID STARTTIME`, or `- INDEX WHY TEXT`; a full
/// stop ends the list.
pub fn main(wanted: &str) -> i32 {
    let lifeline = serve();
    // Orphans of the test processes come to the supervisor and are reaped. Needs no privilege.
    if let Err(errno) = set_child_subreaper(Some(getpid())) {
        eprintln!("fastproc-testbed: PR_SET_CHILD_SUBREAPER: {errno}");
        return 1;
    }
    let wanted: Vec<&str> = wanted
        .split(',')
        .filter(|label| !label.is_empty())
        .collect();
    let mut out = std::io::stdout();
    let mut first = 0;
    for fixture in fixtures::all() {
        let labels = || fixture.processes.iter().map(|process| process.0);
        if wanted.is_empty() || labels().any(|label| wanted.contains(&label)) {
            let lines: Vec<String> = match set_up(fixture) {
                Ok(found) => (first..)
                    .zip(found)
                    .map(|(index, (pid, starttime))| format!("+ {index} {pid} {starttime}\n"))
                    .collect(),
                Err(error) => {
                    let text = error.text.replace('\n', " ");
                    (first..first + fixture.processes.len())
                        .map(|index| format!("- {index} {} {text}\n", error.why.letter()))
                        .collect()
                }
            };
            // If the reader has gone, the lifeline shows that as well.
            let _ = out.write_all(lines.concat().as_bytes());
        }
        first += fixture.processes.len();
    }
    let _ = out.write_all(b".\n").and_then(|()| out.flush());
    lifeline.wait();
    end_all();
    0
}

fn set_up(fixture: &Fixture) -> Result<Vec<(u32, u64)>, SetUpError> {
    let (listener, root) = Listener::spawn(fixture.set_up)?;
    let result = gather(fixture, &listener);
    if result.is_err() {
        // Everything that it has started dies with it, and is reaped at the end.
        let _ = kill_process(root, Signal::KILL);
        let _ = waitpid(Some(root), WaitOptions::empty());
    }
    result
}

fn gather(fixture: &Fixture, listener: &Listener) -> Result<Vec<(u32, u64)>, SetUpError> {
    let limit = Instant::now() + GUARD;
    let mut pids = vec![None; fixture.processes.len()];
    while pids.iter().any(Option::is_none) {
        match listener.listen(limit.saturating_duration_since(Instant::now()))? {
            Message::Ready(label, pid) => {
                match fixture
                    .processes
                    .iter()
                    .position(|process| process.0 == label)
                {
                    Some(index) => pids[index] = Some(pid),
                    None => {
                        return Err(SetUpError::broken(format!(
                            "{label} announced itself elsewhere"
                        )));
                    }
                }
            }
            Message::SetUpError(error) => return Err(error),
            Message::Silence => return Err(SetUpError::broken("ended while it was set up")),
            Message::Late => return Err(SetUpError::broken("was not set up in time")),
        }
    }
    let mut found = Vec::new();
    for (process, pid) in fixture.processes.iter().zip(pids.into_iter().flatten()) {
        // It announced itself before it stopped, exited or went to sleep; that takes a moment.
        while let Err(mismatch) = process.1.iter().try_for_each(|expect| expect.check(pid)) {
            if Instant::now() > limit {
                return Err(SetUpError::broken(format!(
                    "{}: expected {mismatch}",
                    process.0
                )));
            }
            sleep(Duration::from_millis(1));
        }
        let stat = Stat::read(pid).map_err(SetUpError::broken)?;
        found.push((pid, stat.starttime()));
    }
    Ok(found)
}

/// Kills every descendant and reaps it.
pub fn end_all() {
    loop {
        // When a child dies, its children die too and become children of this process; so repeat until none is left.
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        sleep(Duration::from_millis(2));
    }
}

/// The children of this process. Reads all processes, because not every kernel has `/proc/PID/task/TID/children`.
fn children() -> Vec<Pid> {
    let me = i64::from(getpid().as_raw_nonzero().get());
    let Ok(proc) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    proc.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&pid| {
            Stat::read(pid)
                .and_then(|stat| stat.field(4))
                .is_ok_and(|parent| parent == me)
        })
        .filter_map(|pid| Pid::from_raw(pid as i32))
        .collect()
}
