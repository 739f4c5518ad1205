//! The command: its output, its exit status, and that its sudden death leaves no process.

use crate::gone;

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use fastproc_testbed::{Folder, gate};

const TESTBED: &str = env!("CARGO_BIN_EXE_fastproc-testbed");

fn testbed(labels: &str) -> Command {
    let mut command = Command::new(TESTBED);
    command
        .args(["--only", labels])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// The test processes of a running command, as it prints them.
fn printed(child: &mut Child, count: usize) -> Vec<(u32, u64)> {
    let lines = BufReader::new(child.stdout.as_mut().unwrap())
        .lines()
        .take(count);
    lines
        .map(|line| {
            let pid = line.unwrap().split_once('\t').unwrap().0.parse().unwrap();
            (pid, gone::stat(&format!("{pid}")).unwrap().1)
        })
        .collect()
}

#[test]
fn exits_with_the_status_of_its_command() {
    let output = testbed("idle,name-newline")
        .args(["--", "sh", "-c", "exit 42"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(42));
    let text = String::from_utf8(output.stdout).unwrap();
    let labels: Vec<_> = text
        .lines()
        .map(|line| line.split_once('\t').unwrap().1)
        .collect();
    assert_eq!(labels, ["idle", "name-newline"]);
}

#[test]
fn a_label_that_does_not_exist_is_its_own_failure() {
    let output = testbed("unicorn").output().unwrap();
    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn lists_every_process() {
    let output = Command::new(TESTBED).arg("--list").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), fastproc_testbed::catalogue().count());
    assert!(text.contains("zombie: state Z"), "{text}");
}

#[test]
fn ends_when_standard_input_does() {
    let mut child = testbed("zombie,stopped")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let processes = printed(&mut child, 2);
    assert!(processes.iter().all(|&process| !gone::is_gone(process)));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(processes.iter().all(|&process| gone::is_gone(process)));
}

#[test]
fn its_processes_die_when_it_is_killed() {
    let mut child = testbed("idle,traced,dead-leader,clone-vm,pidns-3")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let processes = printed(&mut child, 5);
    let mut all = gone::descendants(child.id());
    assert!(all.len() > processes.len());
    all.extend(processes);
    child.kill().unwrap();
    child.wait().unwrap();
    gone::wait_until_gone(&all);
}

#[test]
fn without_privileges_the_testbed_is_smaller() {
    // If the tests run as nobody, the others show the same.
    if !gate::root() {
        return;
    }
    // In a folder in which the user nobody may execute it.
    let folder = Folder::new("testbed");
    let program = folder.join("testbed");
    // Copied by another process: children of other tests would inherit a descriptor for writing, which makes the file
    // busy.
    let copied = Command::new("install")
        .args(["-m", "755", TESTBED])
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    let result = Command::new(&program)
        .uid(65534)
        .gid(65534)
        .args(["--", "true"])
        .output();
    let output = result.unwrap();
    let (processes, absent) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{absent}");
    assert!(
        processes.contains("\tdead-leader\n") && processes.contains("\ttraced\n"),
        "{processes}{absent}"
    );
    assert!(
        absent.contains("absent: groups-300: not permitted: "),
        "{absent}"
    );
    assert!(
        absent.contains("absent: nice-minus-20: not permitted: "),
        "{absent}"
    );
    assert!(!processes.contains("\tgroups-300\n"), "{processes}");
}

#[test]
fn a_storm_is_counted() {
    let mut child = testbed("idle")
        .args(["--storm", "--", "true"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(stderr.contains("Tally { forks: "), "{stderr}");
}
