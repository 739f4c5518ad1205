//! The keeper: raises the animals one by one, shows those that `/proc` confirms, waits for the opener to let go, and
//! leaves nothing behind.

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
    expect::Stat,
    nest::{Ear, Heard, Trouble},
    role::serve,
    species::{self, Species},
};

/// How long an animal may take; far beyond need, so that only a defect reaches it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Keeps the animals that `wanted` names, separated by commas, or all.
///
/// Each animal is one line on standard output: `+ INDEX PID STARTTIME`, or `- INDEX WHY TEXT`; a full stop ends the list.
pub fn main(wanted: &str) -> i32 {
    let lifeline = serve();
    // So that orphans of the animals come to the keeper and are reaped. Needs no privilege.
    if let Err(errno) = set_child_subreaper(Some(getpid())) {
        eprintln!("fastproc-zoo: PR_SET_CHILD_SUBREAPER: {errno}");
        return 1;
    }
    let wanted: Vec<&str> = wanted
        .split(',')
        .filter(|label| !label.is_empty())
        .collect();
    let mut out = std::io::stdout();
    let mut first = 0;
    for species in species::all() {
        let labels = || species.animals.iter().map(|animal| animal.0);
        if wanted.is_empty() || labels().any(|label| wanted.contains(&label)) {
            let lines: Vec<String> = match raise(species) {
                Ok(found) => (first..)
                    .zip(found)
                    .map(|(index, (pid, starttime))| format!("+ {index} {pid} {starttime}\n"))
                    .collect(),
                Err(trouble) => {
                    let text = trouble.text.replace('\n', " ");
                    (first..first + species.animals.len())
                        .map(|index| format!("- {index} {} {text}\n", trouble.why.letter()))
                        .collect()
                }
            };
            // If nobody listens, then the lifeline says so as well.
            let _ = out.write_all(lines.concat().as_bytes());
        }
        first += species.animals.len();
    }
    let _ = out.write_all(b".\n").and_then(|()| out.flush());
    lifeline.wait();
    end_all();
    0
}

fn raise(species: &Species) -> Result<Vec<(u32, u64)>, Trouble> {
    let (ear, root) = Ear::raise(species.raise)?;
    let result = gather(species, &ear);
    if result.is_err() {
        // Whatever it has started dies with it, and is reaped at the end.
        let _ = kill_process(root, Signal::KILL);
        let _ = waitpid(Some(root), WaitOptions::empty());
    }
    result
}

fn gather(species: &Species, ear: &Ear) -> Result<Vec<(u32, u64)>, Trouble> {
    let limit = Instant::now() + PATIENCE;
    let mut pids = vec![None; species.animals.len()];
    while pids.iter().any(Option::is_none) {
        match ear.listen(limit.saturating_duration_since(Instant::now()))? {
            Heard::Ready(label, pid) => {
                match species.animals.iter().position(|animal| animal.0 == label) {
                    Some(index) => pids[index] = Some(pid),
                    None => {
                        return Err(Trouble::broken(format!(
                            "{label} announced itself elsewhere"
                        )));
                    }
                }
            }
            Heard::Trouble(trouble) => return Err(trouble),
            Heard::Silence => return Err(Trouble::broken("ended while it was set up")),
            Heard::Late => return Err(Trouble::broken("was not set up in time")),
        }
    }
    let mut found = Vec::new();
    for (animal, pid) in species.animals.iter().zip(pids.into_iter().flatten()) {
        // It said that it is ready before it stopped, died or went to sleep; the rest is a matter of time.
        while let Err(mismatch) = animal.1.iter().try_for_each(|expect| expect.check(pid)) {
            if Instant::now() > limit {
                return Err(Trouble::broken(format!(
                    "{}: expected {mismatch}",
                    animal.0
                )));
            }
            sleep(Duration::from_millis(1));
        }
        let stat = Stat::read(pid).map_err(Trouble::broken)?;
        found.push((pid, stat.starttime()));
    }
    Ok(found)
}

/// Kills every descendant and reaps it.
pub fn end_all() {
    loop {
        // A child that dies takes its own along, which become ours; so look again until there is nothing to wait for.
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

/// The children of this process. By a look at all processes, as not every kernel has `/proc/PID/task/TID/children`.
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
