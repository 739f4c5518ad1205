use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use fastproc_testbed::{GUARD, wait_until};

use super::*;

/// Set for the process that [`nothing_remains_after_sigkill`] kills.
const HOST: &str = "FASTPROC_TEST_IDLE_HOST";

fn state(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1[..1].to_owned())
}

#[test]
fn all_sleep_and_all_are_gone_after_drop() {
    let idle = Idle::start(200).unwrap();
    let pids: Vec<u32> = idle.pids().collect();
    assert_eq!((pids.len(), idle.count()), (200, 200));
    for &pid in &pids {
        // Between closing the pipe and pausing a child may still run.
        wait_until("its sleep", || state(pid).unwrap() == "S");
        assert_eq!(fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), 0);
    }
    drop(idle);
    // Also reaped, without waiting.
    assert!(pids.iter().all(|&pid| state(pid).is_none()));
}

#[test]
fn a_tenth_runs_when_it_is_woken() {
    let idle = Idle::start(100).unwrap();
    let ran = || {
        let text = |pid| fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
        idle.pids().map(text).collect::<Vec<_>>()
    };
    // Processes that have just started may still run.
    wait_until("ten that run, and others that do not", || {
        let before = ran();
        idle.wake(Some(10)).unwrap();
        let after = ran();
        let ran = before.iter().zip(&after);
        ran.filter(|(before, after)| before != after).count() == 10
    });
}

#[test]
fn nothing_remains_after_sigkill() {
    let mut host = Command::new(env::current_exe().unwrap())
        .args("--exact idle::tests::host_of_idle_processes --ignored --nocapture".split(' '))
        .env(HOST, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let pids: Vec<u32> = lines
        .map(Result::unwrap)
        .find_map(|line| {
            let pids = line.split_once("pids ")?.1.split(' ');
            pids.map(|pid| pid.parse().ok()).collect()
        })
        .unwrap();
    assert_eq!(pids.len(), 50);
    assert!(pids.iter().all(|&pid| state(pid).is_some()));
    host.kill().unwrap();
    host.wait().unwrap();
    // Another process inherits and reaps them, so a zombie counts as dead.
    let lives = |&pid: &u32| state(pid).is_some_and(|state| state != "Z");
    wait_until("the end of all of them", || !pids.iter().any(lives));
}

#[test]
#[ignore = "the process that nothing_remains_after_sigkill kills; by itself it tests nothing"]
fn host_of_idle_processes() {
    if env::var_os(HOST).is_none() {
        return;
    }
    let idle = Idle::start(50).unwrap();
    let pids: Vec<_> = idle.pids().map(|pid| pid.to_string()).collect();
    println!("pids {}", pids.join(" "));
    sleep(GUARD);
    drop(idle);
}
