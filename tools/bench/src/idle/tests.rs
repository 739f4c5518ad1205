use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use fastproc_testbed::{GUARD, wait_until};

use super::*;

/// Set for the process that [`nothing_remains_after_sigkill`] kills: the file for its spawner's pid.
const HOST: &str = "FASTPROC_TEST_IDLE_HOST";

fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(
        text.rsplit_once(") ")?
            .1
            .split(' ')
            .map(str::to_owned)
            .collect(),
    )
}

/// Pid and start time of each child.
fn children(parent: u32) -> Vec<(u32, String)> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, stat(pid)?)))
        .filter(|(_, stat)| stat[1] == parent.to_string())
        .map(|(pid, mut stat)| (pid, stat.swap_remove(19)))
        .collect()
}

fn is_there((pid, starttime): &(u32, String)) -> bool {
    stat(*pid).is_some_and(|stat| stat[19] == *starttime)
}

fn pid(idle: &Idle) -> u32 {
    idle.spawner.as_raw_nonzero().get() as u32
}

fn wait_until_dead(processes: &[(u32, String)]) {
    // Another process inherits and reaps them, so a zombie counts as dead.
    let lives = |process: &&(u32, String)| {
        is_there(process) && stat(process.0).is_some_and(|stat| stat[0] != "Z")
    };
    wait_until("the end of all of them", || {
        !processes.iter().any(|one| lives(&one))
    });
}

#[test]
fn all_sleep_and_all_are_gone_after_drop() {
    let idle = Idle::start(200).unwrap();
    let children = children(pid(&idle));
    assert_eq!(children.len(), 200);
    assert_eq!(idle.count(), 200);
    for (pid, _) in &children {
        // Between closing the report and pausing a child may still run.
        wait_until("its sleep", || stat(*pid).unwrap()[0] == "S");
        assert_eq!(fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), 0);
    }
    drop(idle);
    // Also reaped, without waiting.
    assert!(!children.iter().any(is_there));
}

#[test]
fn a_tenth_runs_when_it_is_woken() {
    let idle = Idle::start(100).unwrap();
    let ran = || {
        let text = |pid: &Pid| fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
        idle.pids.iter().map(text).collect::<Vec<_>>()
    };
    // Processes that have just started may still run.
    wait_until("ten that run, and others that do not", || {
        let before = ran();
        idle.wake(10).unwrap();
        let after = ran();
        let ran = before.iter().zip(&after);
        ran.filter(|(before, after)| before != after).count() == 10
    });
}

#[test]
fn nothing_remains_after_sigkill() {
    let mut host = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "idle::tests::host_of_idle_processes",
            "--ignored",
            "--nocapture",
        ])
        .env(HOST, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let spawner = lines
        .map(Result::unwrap)
        .find_map(|line| line.split_once("spawner ")?.1.parse().ok())
        .unwrap();
    let mut all = children(spawner);
    assert_eq!(all.len(), 50);
    all.push((spawner, stat(spawner).unwrap().swap_remove(19)));
    host.kill().unwrap();
    host.wait().unwrap();
    wait_until_dead(&all);
}

#[test]
#[ignore = "the process that nothing_remains_after_sigkill kills; by itself it tests nothing"]
fn host_of_idle_processes() {
    if env::var_os(HOST).is_none() {
        return;
    }
    let idle = Idle::start(50).unwrap();
    let mut out = io::stdout();
    writeln!(out, "spawner {}", pid(&idle)).unwrap();
    out.flush().unwrap();
    sleep(GUARD);
    drop(idle);
}
